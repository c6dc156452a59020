"""A first configuration follows from the budget, and refuses what cannot run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.capacity.initial import (
    Lengths,
    NothingFits,
    Setting,
    initial,
    initial_transformers,
    lengths_of,
)
from service.capacity.memory import Budget, Cache
from service.capacity.precision import FP8, Precision
from service.capacity.shape import Attention, Shape

GIB = 1 << 30
SHAPE = Shape(layers=((36, Attention(kv_heads=8, head_size=128)),), vocabulary=151_936, context=40_960)


def budget(sequences: int = 256, weights: int = 6 * GIB) -> Budget:
    return Budget(memory=24 * GIB, weights=weights, activations=GIB, sequences=sequences, vocabulary=151_936)


def cache(of: Budget, precision: Precision = FP8) -> Cache:
    return Cache(shape=SHAPE, precision=precision, memory=of.kv)


def values(settings: tuple[Setting, ...]) -> dict[str, str | None]:
    assert all(each.reason for each in settings)
    return {each.option: each.value for each in settings}


def test_values_are_the_budget_s() -> None:
    of = budget()
    found = values(initial(of, cache(of), Lengths(longest=16_384, typical=3_000), kv_name="fp8"))
    assert found == {
        "--max-model-len": "16384",
        "--max-num-seqs": str(cache(of).concurrency(3_000)),
        "--max-num-batched-tokens": "2048",
        "--gpu-memory-utilization": "0.92",
        "--enable-chunked-prefill": None,
        "--enable-prefix-caching": None,
        "--kv-cache-dtype": "fp8",
    }


def test_no_more_sequences_than_there_will_be() -> None:
    of = budget(sequences=8)
    settings = initial(of, cache(of), Lengths(longest=4_096, typical=1_000), kv_name="fp8")
    assert values(settings)["--max-num-seqs"] == "8"
    assert any("asked for; the cache would hold" in each.reason for each in settings)


def test_each_sequence_has_a_token_in_a_batch() -> None:
    of = budget(sequences=4_000)
    found = values(initial(of, cache(of), Lengths(longest=64, typical=16), kv_name="fp8"))
    assert found["--max-num-seqs"] == found["--max-num-batched-tokens"] == "4000"


def test_transformers_has_16_bits_and_holds_half_as_many() -> None:
    of = budget()
    lengths = Lengths(longest=16_384, typical=3_000)
    found = values(initial_transformers(of, cache(of), lengths))
    vllm = values(initial(of, cache(of), lengths, kv_name="fp8"))
    assert int(found["max_requests_per_batch"] or 0) == int(vllm["--max-num-seqs"] or 0) // 2
    share = float(found["max_memory_percent"] or 0)
    assert share * (of.memory - of.weights) <= of.kv < (share + 0.001) * (of.memory - of.weights)
    assert "block_size" not in found


def test_a_share_of_memory_that_would_be_nothing_is_refused() -> None:
    of = Budget(memory=24 * GIB, share=0.3, weights=6 * GIB, activations=GIB, sequences=2, vocabulary=9)
    with pytest.raises(NothingFits, match="a thousandth"):
        initial_transformers(
            replace(of, activations=of.kv + GIB - 3 * 16 * 147_456), cache(of), Lengths(longest=9, typical=9)
        )


def test_what_cannot_run_is_refused_with_what_is_lacking() -> None:
    of = budget(weights=22 * GIB)
    with pytest.raises(NothingFits, match=r"one request of 4,096 tokens lacks [\d,]+ bytes"):
        initial(of, cache(of), Lengths(longest=4_096, typical=100), kv_name="fp8")
    of = budget()
    with pytest.raises(NothingFits, match="made for 40,960"):
        initial(of, cache(of), Lengths(longest=40_961, typical=100), kv_name="fp8")


def test_a_typical_request_is_no_longer_than_the_longest() -> None:
    with pytest.raises(ValueError, match="no more than the longest"):
        Lengths(longest=10, typical=11)
    with pytest.raises(ValueError, match="at least 1 token"):
        Lengths(longest=10, typical=0)


def test_classes_of_prompts_tell_what_must_fit_and_what_is_typical() -> None:
    assert lengths_of([8192, 512, 2048], answer=512) == Lengths(longest=8704, typical=2560)
    assert lengths_of([512], answer=1) == Lengths(longest=513, typical=513)
    with pytest.raises(ValueError, match="at least one class"):
        lengths_of([], answer=5)
