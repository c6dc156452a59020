from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

import pytest
from scipy.stats import kstest

from service.load.arrivals import dues, picks
from service.load.plan import Arrivals, BlockPlan, Part


def plan(arrivals: Arrivals, rate: float | None = None, seed: int = 1) -> BlockPlan:
    return BlockPlan(tier="a", part=Part.SLO, arrivals=arrivals, rate=rate, seed=seed)


def first(count: int, asked: BlockPlan, trace: Sequence[float] = ()) -> list[float]:
    return [at for at, _ in islice(dues(asked, trace), count)]


def test_constant_arrivals_are_equally_far_apart() -> None:
    assert first(5, plan(Arrivals.CONSTANT, 4.0)) == [0, 0.25, 0.5, 0.75, 1.0]


def test_poisson_arrivals_are_exponentially_far_apart_and_the_same_for_a_seed() -> None:
    asked = plan(Arrivals.POISSON, 5.0)
    times = first(5000, asked)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert kstest(gaps, "expon", args=(0, 0.2)).pvalue > 0.01
    assert times == first(5000, asked)
    assert times != first(5000, plan(Arrivals.POISSON, 5.0, seed=2))


def test_a_trace_keeps_its_distances_from_wherever_the_seed_enters_it() -> None:
    trace = [10.0, 10.5, 10.5, 12.0]
    distances = {0: 0.5, 1: 0.0, 2: 1.5, 3: 2 / 3}
    entered = set()
    for seed in range(20):
        seen = list(islice(dues(plan(Arrivals.TRACE, seed=seed), trace), 9))
        assert seen[0][0] == 0
        entered.add(seen[0][1])
        for (at, place), (later, following) in pairwise(seen):
            assert following == (place + 1) % 4
            assert later - at == pytest.approx(distances[place])
    assert entered == {0, 1, 2, 3}


def test_a_rate_stretches_a_traces_clock() -> None:
    trace = [0.0, 1.0, 1.5, 4.0, 7.0]
    times = first(5001, plan(Arrivals.TRACE, rate=20.0), trace)
    assert 5000 / times[-1] == pytest.approx(20.0)


@pytest.mark.parametrize("trace", [[], [1.0], [2.0, 2.0], [0.0, 2.0, 1.0]])
def test_a_trace_without_duration_or_that_runs_backwards_is_refused(trace: list[float]) -> None:
    with pytest.raises(ValueError, match="trace"):
        first(3, plan(Arrivals.TRACE), trace)


def test_a_closed_loop_has_no_schedule() -> None:
    asked = BlockPlan(tier="a", part=Part.CONCURRENCY, arrivals=Arrivals.CLOSED, concurrency=2)
    with pytest.raises(ValueError, match="closed"):
        dues(asked)


def test_every_request_comes_once_before_any_comes_twice() -> None:
    drawn = list(islice(picks(50, 3), 150))
    for begin in (0, 50, 100):
        assert sorted(drawn[begin : begin + 50]) == list(range(50))
    assert drawn[:50] != drawn[50:100]
    assert drawn == list(islice(picks(50, 3), 150))
    assert drawn != list(islice(picks(50, 4), 150))


def test_nothing_to_send_is_refused() -> None:
    with pytest.raises(ValueError, match="no requests"):
        picks(0, 1)
