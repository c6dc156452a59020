"""P95 of a load run, arm beside arm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.decision.bootstrap import Block, quantile_difference
from service.decision.latency import LatencyBlock, read_latency
from service.decision.quantile import quantile_limits


def blocks(count: int = 8, *, slower: float = 0.0, never: int = 0) -> list[LatencyBlock]:
    generator = np.random.default_rng(2)
    found = []
    for _ in range(count):
        slow_minute = generator.normal(0, 0.05)
        baseline, candidate = (
            (generator.exponential(0.2, 60) + 0.2 + slow_minute + more).tolist() for more in (0.0, slower)
        )
        found.append(LatencyBlock(baseline=baseline, candidate=candidate[never:] + [None] * never))
    return found


def test_each_arm_has_limits_by_order_and_the_difference_by_blocks() -> None:
    listed = blocks(slower=0.3)
    found = read_latency(listed, limit_seconds=1.5, seed=7, repeats=200)
    assert found.baseline == quantile_limits([value for each in listed for value in each.baseline], 0.95)
    plain = [Block(baseline=each.baseline, candidate=each.candidate) for each in listed]  # type: ignore[arg-type]
    assert found.difference == quantile_difference(plain, 0.95, seed=7, level=0.95, repeats=200)
    assert found.difference is not None
    assert found.difference.lower > 0
    assert found.within[0] is True


def test_within_is_said_of_the_upper_limit_alone() -> None:
    found = read_latency(blocks(), repeats=100)
    assert found.within == (None, None)
    assert found.baseline.value is not None
    tight = read_latency(blocks(), limit_seconds=found.baseline.value + 1e-6, repeats=100)
    assert tight.within[0] is False


def test_requests_that_never_came_are_slower_than_all_others() -> None:
    few, many = read_latency(blocks(never=1), repeats=100), read_latency(blocks(never=6), repeats=100)
    assert few.difference is not None
    assert few.why == "8 requests that never came so far count as the slowest"
    assert many.difference is None
    assert many.candidate.value == math.inf
    assert many.why.startswith("so many requests never came so far")


def test_an_arm_that_loses_its_slowest_requests_is_not_the_faster_one() -> None:
    times = [float(second) for second in range(50)]
    lost = LatencyBlock(baseline=times, candidate=[*times[:48], None, None])
    found = read_latency([lost] * 8, repeats=100)
    assert found.difference is not None
    assert found.candidate.value == found.baseline.value
    assert found.difference.value == 0


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ([], "at least 2 blocks, got 0"),
        (blocks(1), "at least 2 blocks, got 1"),
        ([*blocks(2), LatencyBlock(baseline=[0.1], candidate=[None])], "no request came so far"),
    ],
)
def test_where_there_is_no_difference_it_says_why(listed: list[LatencyBlock], why: str) -> None:
    found = read_latency(listed, repeats=100)
    assert found.difference is None
    assert why in found.why
