"""A first configuration of vLLM and of Transformers from a budget: where to begin measuring, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.capacity.memory import Budget, Cache
from service.capacity.precision import FP16

CHUNK_TOKENS = 2048
"""Of prefill in one step: above about 2k the answers of others stand still for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of requests: what must fit, and what is typical."""

    longest: int
    """Prompt and answer of the longest that is to be answered."""
    typical: int
    """Prompt and answer of a request in the middle."""

    def __post_init__(self) -> None:
        if not 1 <= self.typical <= self.longest:
            raise ValueError("a typical request has at least 1 token, and no more than the longest")


def lengths_of(prompts: Sequence[int], *, answer: int) -> Lengths:
    """Of classes of prompts with answers of so many tokens at most; of an even number the longer middle."""
    if not prompts or answer < 1:
        raise ValueError("at least one class of prompts, and answers of at least 1 token")
    rising = sorted(prompts)
    return Lengths(longest=rising[-1] + answer, typical=rising[len(rising) // 2] + answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One option of `vllm serve`, or one field of Transformers' `ContinuousBatchingConfig`."""

    option: str
    value: str | None
    """`None`: the option stands alone."""
    reason: str

    def __str__(self) -> str:
        return self.option if self.value is None else f"{self.option} {self.value}"


class NothingFits(ValueError):
    """No configuration holds even one request of the longest."""


def initial(budget: Budget, cache: Cache, lengths: Lengths, *, kv_name: str) -> tuple[Setting, ...]:
    """Options in the order of a command line; `NothingFits` where one longest request has no room."""
    known = cache.shape.context
    if known is not None and lengths.longest > known:
        raise NothingFits(
            f"the longest request has {lengths.longest:,} tokens, the model was made for {known:,}"
        )
    if not cache.concurrency(lengths.longest):
        lacking = cache.sequence_bytes(lengths.longest) - cache.memory + max(0, budget.lacking)
        raise NothingFits(
            f"one request of {lengths.longest:,} tokens lacks {lacking:,} bytes: fewer bits, shorter "
            "requests, or more memory"
        )
    fitting = cache.concurrency(lengths.typical)
    sequences = min(fitting, budget.sequences)
    why = (
        f"the cache holds {fitting:,} of {lengths.typical:,} tokens"
        if fitting <= budget.sequences
        else f"asked for; the cache would hold {fitting:,} of {lengths.typical:,} tokens"
    )
    return (
        Setting(
            option="--max-model-len",
            value=str(lengths.longest),
            reason="the longest request: prompt and answer; longer ones are refused at once",
        ),
        Setting(option="--max-num-seqs", value=str(sequences), reason=why),
        Setting(
            option="--max-num-batched-tokens",
            value=str(max(CHUNK_TOKENS, sequences)),
            reason="a chunk of prefill that answers in flight can bear, and a token for each sequence",
        ),
        Setting(
            option="--gpu-memory-utilization",
            value=f"{budget.share:g}",
            reason="the share that the budget was computed with",
        ),
        Setting(option="--enable-chunked-prefill", value=None, reason="long prompts let answers go on"),
        Setting(
            option="--enable-prefix-caching",
            value=None,
            reason="costs little; after a day `tiergate capacity prefix` says whether it stays",
        ),
        Setting(option="--kv-cache-dtype", value=kv_name, reason="the tier's"),
    )


BLOCK_REASON = "the block size stays the engine's own until the waste in last blocks is measured"


def initial_transformers(budget: Budget, cache: Cache, lengths: Lengths) -> tuple[Setting, ...]:
    """Fields of `ContinuousBatchingConfig` for the same memory; its cache has the model's 16 bits."""
    plain = replace(cache, precision=FP16)
    initial(budget, plain, lengths, kv_name="auto")
    sequences = min(plain.concurrency(lengths.typical), budget.sequences)
    part = int(1000 * budget.kv / (budget.memory - budget.weights)) / 1000
    if not part:
        raise NothingFits("the cache is less than a thousandth of what is free beside the weights")
    return (
        Setting(
            option="max_memory_percent",
            value=f"{part:g}",
            reason="of what is free beside the weights, less activations and logits",
        ),
        Setting(
            option="max_batch_tokens",
            value=str(max(CHUNK_TOKENS, sequences)),
            reason="a chunk of prefill that answers in flight can bear",
        ),
        Setting(
            option="max_requests_per_batch",
            value=str(sequences),
            reason=f"what a cache of 16 bits holds of {lengths.typical:,} tokens, or was asked for",
        ),
        Setting(
            option="scheduler_type", value='"fifo"', reason="answers in flight first, then who came first"
        ),
        Setting(
            option="safety_margin",
            value="0.2",
            reason="no new prefill while less than this share of blocks is free",
        ),
    )
