"""P95 from an engine's own histograms, over a while, as Prometheus would tell it."""

from __future__ import annotations

import math

import pytest

from service.engines.histograms import latencies, quantile, spell

BOUNDS = ("0.1", "0.25", "0.5", "1.0", "+Inf")


def page(
    *counts: float,
    name: str = "vllm:time_to_first_token_seconds",
    engine: str = "0",
) -> str:
    lines = [
        f'{name}_bucket{{engine="{engine}",le="{le}"}} {n}' for le, n in zip(BOUNDS, counts, strict=True)
    ]
    return "\n".join(
        (f"# TYPE {name} histogram", *lines, f'{name}_count{{engine="{engine}"}} {counts[-1]}', "")
    )


def test_a_quantile_lies_evenly_within_its_bucket() -> None:
    buckets = dict(zip((0.1, 0.25, 0.5, 1.0, math.inf), (50, 90, 100, 100, 100), strict=True))
    assert quantile(buckets, 0.5) == pytest.approx(0.1)
    assert quantile(buckets, 0.95) == pytest.approx(0.25 + 0.25 * 5 / 10)
    assert quantile({}, 0.95) is None
    assert quantile({0.1: 0.0, math.inf: 0.0}, 0.95) is None


def test_beyond_the_last_bound_the_last_bound_is_told() -> None:
    assert quantile({0.1: 1.0, 1.0: 2.0, math.inf: 100.0}, 0.95) == 1.0


def test_only_what_came_meanwhile_counts() -> None:
    before = latencies(page(100, 100, 100, 100, 100))
    after = latencies(page(100, 100, 110, 110, 110))
    found = spell([("a", before), ("a", after)])
    assert found.requests == 10
    assert found.ttft_p95 == pytest.approx(0.25 + 0.25 * 0.95)
    assert found.tpot_p95 is None


def test_several_backends_and_replicas_are_one() -> None:
    both = page(5, 5, 5, 5, 5) + page(0, 0, 5, 5, 5, engine="1")
    empty = page(0, 0, 0, 0, 0)
    found = spell(
        [
            ("a", latencies(empty)),
            ("b", latencies(empty)),
            ("a", latencies(both)),
            ("b", latencies(page(10, 10, 10, 10, 10))),
        ]
    )
    assert found.requests == 20
    assert found.ttft_p95 == pytest.approx(0.25 + 0.25 * 4 / 5)


def test_an_engine_that_began_anew_counts_from_0() -> None:
    found = spell([("a", latencies(page(90, 90, 90, 90, 90))), ("a", latencies(page(0, 4, 4, 4, 4)))])
    assert found.requests == 4
    assert found.ttft_p95 == pytest.approx(0.1 + 0.15 * 0.95)


def test_an_engine_that_began_anew_and_counted_more_since_is_told_by_any_bucket_that_fell() -> None:
    found = spell([("a", latencies(page(9, 9, 9, 9, 9))), ("a", latencies(page(0, 20, 20, 20, 20)))])
    assert found.requests == 20


@pytest.mark.parametrize(
    "name",
    [
        "vllm:request_time_per_output_token_seconds",
        "vllm:time_per_output_token_seconds",
        "vllm:inter_token_latency_seconds",
        "sglang:inter_token_latency_seconds",
    ],
)
def test_times_of_further_tokens_are_read_by_each_of_their_names(name: str) -> None:
    before, after = page(0, 0, 0, 0, 0, name=name), page(20, 20, 20, 20, 20, name=name)
    found = spell([("a", latencies(before)), ("a", latencies(after))])
    assert found.tpot_p95 == pytest.approx(0.095)
    assert found.ttft_p95 is None


def test_means_of_requests_come_before_times_of_tokens() -> None:
    both = page(20, 20, 20, 20, 20, name="vllm:request_time_per_output_token_seconds") + page(
        0, 0, 0, 20, 20, name="vllm:inter_token_latency_seconds"
    )
    assert latencies(both).tpot[0.1] == 20


def test_nothing_is_told_of_nothing_and_what_is_no_number_is_left_out() -> None:
    assert spell([]).ttft_p95 is None
    assert spell([("a", latencies(""))]).requests == 0
    broken = 'vllm:time_to_first_token_seconds_bucket{le="0.1"} many\n'
    odd = (
        'vllm:time_to_first_token_seconds_bucket{le="soon"} 3\nvllm:time_to_first_token_seconds_bucket{} 3\n'
    )
    assert latencies(broken + odd).ttft == {}
