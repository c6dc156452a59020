"""The table of diagnosis: for each stage its causes, the evidence each needs, remedies, and the experiment.

Remedies for the batch of decode stand in no rule of TTFT: a queue in front of prefill is not made shorter by
a smaller batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from service.capacity.symptoms import (
    FULL_KV,
    LOW_REUSE,
    MOST_FAILURES,
    MOST_WASTE,
    MOST_WEIGHTS,
    QUEUED,
    Signals,
    Stage,
    idle,
)


class Cause(StrEnum):
    """Why a stage hurts."""

    QUEUE = "queue"
    PREFILL = "prefill"
    CACHE = "cache"
    BATCH = "batch"
    BANDWIDTH = "bandwidth"
    PREEMPTION = "preemption"
    WEIGHTS = "weights"
    KV = "kv"
    FRAGMENTATION = "fragmentation"
    UTILISATION = "utilisation"
    FAILURES = "failures"
    UNKNOWN = "unknown"


class Remedy(StrEnum):
    """What may help, in the words in which it is told."""

    SMALLER_BATCH = "fewer sequences at once (max-num-seqs)"
    LARGER_BATCH = "more requests at once on fewer backends"
    CHUNKED_PREFILL = "chunked prefill, chunks of about 2k tokens"
    PREFIX_CACHE = "a larger or separate prefix cache"
    SPLIT = "prefill and decode on backends of their own"
    WEIGHTS = "weights of fewer bits"
    KV = "a KV cache of fewer bits"
    SHORTER = "shorter prompts: truncation or a summary"
    FALLBACK = "a smaller model as fallback"
    SEMANTIC_CACHE = "a semantic cache of frequent questions"
    OFFLOAD = "KV offloaded to the CPU, with the time of each transfer recorded"
    BLOCKS = "smaller blocks"
    BACKENDS = "more backends"
    FAILURES = "the failures first: their tokens are paid for"


DECODE_BATCH = frozenset({Remedy.SMALLER_BATCH, Remedy.LARGER_BATCH})
"""Advice about the batch of decode, which no rule of TTFT gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One cause of one stage: evidence or `None`, what may help, and what would confirm it."""

    stage: Stage
    cause: Cause
    evidence: Callable[[Signals], str | None]
    remedies: tuple[Remedy, ...]
    experiment: str


def _queue(told: Signals) -> str | None:
    if told.waiting is None or told.waiting < QUEUED:
        return None
    running = "" if told.running is None else f" beside {told.running:.1f} that run"
    return f"{told.waiting:.1f} requests wait on average{running}"


def _prefill(told: Signals) -> str | None:
    if told.waiting is None or told.waiting >= QUEUED:
        return None
    return f"{told.waiting:.1f} requests wait on average: the time goes into prefill"


def _cache(told: Signals) -> str | None:
    if told.prefix_rate is None or told.prefix_rate >= LOW_REUSE:
        return None
    return f"{told.prefix_rate:.1%} of prompt tokens come from the prefix cache"


def _batch(told: Signals) -> str | None:
    if told.tpot_alone is None or told.tpot_limit is None or told.tpot_alone > told.tpot_limit:
        return None
    return f"one at a time has {told.tpot_alone * 1e3:.4g} ms, within the limit: it is lost to the batch"


def _bandwidth(told: Signals) -> str | None:
    if told.tpot_alone is None or told.tpot_limit is None or told.tpot_alone <= told.tpot_limit:
        return None
    return f"even one at a time has {told.tpot_alone * 1e3:.4g} ms: reading the weights takes too long"


def _preemption(told: Signals) -> str | None:
    return f"{told.preemptions:,.0f} sequences were preempted" if told.preemptions else None


def _kv(told: Signals) -> str | None:
    if told.kv_usage is not None and told.kv_usage >= FULL_KV:
        return f"the KV cache is {told.kv_usage:.0%} full"
    return _preemption(told)


def _weights(told: Signals) -> str | None:
    if told.weights_share is None or told.weights_share <= MOST_WEIGHTS:
        return None
    return f"weights take {told.weights_share:.0%} of the memory"


def _fragmentation(told: Signals) -> str | None:
    if told.waste_share is None or told.waste_share <= MOST_WASTE:
        return None
    return f"{told.waste_share:.0%} of the KV cache is reserved and empty"


def _utilisation(told: Signals) -> str | None:
    if not idle(told):
        return None
    return f"{told.utilisation:.0%} of the best rate that keeps the SLO is used, and no latency misses"


def _failures(told: Signals) -> str | None:
    if told.failed_share is None or told.failed_share <= MOST_FAILURES:
        return None
    return f"{told.failed_share:.1%} of requests fail"


RULES: tuple[Rule, ...] = (
    Rule(
        stage=Stage.TTFT,
        cause=Cause.QUEUE,
        evidence=_queue,
        remedies=(Remedy.BACKENDS, Remedy.FALLBACK, Remedy.SEMANTIC_CACHE),
        experiment="the same prompts at half the rate: the queue's part of TTFT goes, prefill's stays",
    ),
    Rule(
        stage=Stage.TTFT,
        cause=Cause.PREFILL,
        evidence=_prefill,
        remedies=(Remedy.SHORTER, Remedy.CHUNKED_PREFILL, Remedy.SPLIT, Remedy.FALLBACK),
        experiment="the same rate with prompts of half the length: TTFT of prefill falls by about half",
    ),
    Rule(
        stage=Stage.TTFT,
        cause=Cause.CACHE,
        evidence=_cache,
        remedies=(Remedy.PREFIX_CACHE,),
        experiment="`tiergate capacity replay` with your trace: it reuses more only if some size shows more",
    ),
    Rule(
        stage=Stage.TPOT,
        cause=Cause.PREEMPTION,
        evidence=_preemption,
        remedies=(Remedy.SMALLER_BATCH, Remedy.KV, Remedy.SHORTER),
        experiment="max-num-seqs at what `tiergate capacity kv` says fits: preemptions end, and TPOT falls",
    ),
    Rule(
        stage=Stage.TPOT,
        cause=Cause.BATCH,
        evidence=_batch,
        remedies=(Remedy.SMALLER_BATCH, Remedy.CHUNKED_PREFILL, Remedy.SPLIT),
        experiment="max-num-seqs at what `tiergate capacity batch` says, all else equal: TPOT keeps it",
    ),
    Rule(
        stage=Stage.TPOT,
        cause=Cause.BANDWIDTH,
        evidence=_bandwidth,
        remedies=(Remedy.WEIGHTS, Remedy.FALLBACK),
        experiment="a tier of fewer bits one at a time: TPOT falls about as the bytes of its weights do",
    ),
    Rule(
        stage=Stage.MEMORY,
        cause=Cause.KV,
        evidence=_kv,
        remedies=(Remedy.KV, Remedy.SHORTER, Remedy.OFFLOAD),
        experiment="a tier with FP8 KV under the same arrivals: its cache is half as full, if quality holds",
    ),
    Rule(
        stage=Stage.MEMORY,
        cause=Cause.WEIGHTS,
        evidence=_weights,
        remedies=(Remedy.WEIGHTS, Remedy.FALLBACK),
        experiment="`tiergate capacity kv` with a tier of fewer bits, then the same load on it",
    ),
    Rule(
        stage=Stage.MEMORY,
        cause=Cause.FRAGMENTATION,
        evidence=_fragmentation,
        remedies=(Remedy.BLOCKS,),
        experiment="blocks of half the size under the same load: more tokens fit at the same usage",
    ),
    Rule(
        stage=Stage.COST,
        cause=Cause.UTILISATION,
        evidence=_utilisation,
        remedies=(Remedy.LARGER_BATCH, Remedy.SEMANTIC_CACHE),
        experiment="the same arrivals on one backend fewer: cost falls, and the SLO must still be kept",
    ),
    Rule(
        stage=Stage.COST,
        cause=Cause.FAILURES,
        evidence=_failures,
        remedies=(Remedy.FAILURES,),
        experiment="the failing requests one at a time: those that still fail do not fail of load",
    ),
)
"""By stage; all rules with evidence are told, since causes come together."""

TO_MEASURE = {
    Stage.TTFT: "measure with an engine that tells its queue, or at half the rate: queues go, prefill stays",
    Stage.TPOT: "measure one request at a time: `tiergate shadow run` with the part concurrency does",
    Stage.MEMORY: "measure with an engine that tells its KV use and preemptions",
    Stage.COST: "measure the best rate: `tiergate shadow run` with the part sweep does",
}
"""Where a stage hurts and nothing tells why."""
