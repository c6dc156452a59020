from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from service.load.crowd import Crowd, Step, crowd, next_concurrency

TPOT = 0.1


def search(asked: Callable[[int], Step], *, most: int = 512, blocks: int = 30) -> tuple[Crowd, list[Step]]:
    steps: list[Step] = []
    while (count := next_concurrency(steps, tpot_seconds=TPOT, most=most, blocks=blocks)) is not None:
        steps.append(asked(count))
        assert len(steps) <= blocks
    return crowd(steps, tpot_seconds=TPOT), steps


def tier(keeps: int) -> Callable[[int], Step]:
    """P95 of TPOT grows with the crowd, and is at 80 % of the SLO just above `keeps`."""
    return lambda count: Step(
        concurrency=count, tpot_p95=0.08 * count / (keeps + 0.5), throughput=100.0 * min(count, keeps)
    )


@pytest.mark.parametrize("keeps", [1, 2, 3, 7, 11, 16])
def test_the_most_at_once_that_keeps_tpot_is_found_exactly_where_it_is_small(keeps: int) -> None:
    found, _ = search(tier(keeps))
    assert found.reached
    assert found.concurrency == keeps
    assert found.limit_seconds == pytest.approx(0.08)


@pytest.mark.parametrize("keeps", [100, 300])
def test_and_within_five_per_cent_where_it_is_large(keeps: int) -> None:
    found, steps = search(tier(keeps))
    assert found.reached
    assert found.concurrency is not None
    assert keeps / 1.06 <= found.concurrency <= keeps
    assert len(steps) <= 16
    assert [step.concurrency for step in found.curve] == sorted(step.concurrency for step in steps)


def test_what_was_never_seen_to_fail_was_not_reached() -> None:
    found, steps = search(tier(1000), most=48)
    assert (found.concurrency, found.reached) == (48, False)
    assert found.reason.startswith("not reached: 48 at once keeps P95 of TPOT at most 80 ms, 80% of its SLO")
    assert [step.concurrency for step in steps] == [1, 2, 4, 8, 16, 32, 48]


def test_a_tier_that_is_too_slow_alone_reaches_nothing() -> None:
    found, steps = search(lambda count: Step(concurrency=count, tpot_p95=0.2, throughput=1.0))
    assert (found.concurrency, found.reached) == (None, False)
    assert found.reason.startswith("not reached: 1 at once does not keep")
    assert len(steps) == 1


@pytest.mark.parametrize(("slots", "asked"), [(1, 32), (8, 256)])
def test_what_only_waits_in_the_engines_queue_ends_the_search_and_is_not_taken_for_at_work(
    slots: int, asked: int
) -> None:
    """It serves so many at once; the others wait, and where they are 32 times as many, nobody is in time."""
    found, steps = search(
        lambda count: Step(
            concurrency=count, tpot_p95=0.01, throughput=100.0 * min(count, slots), in_time=count < 32 * slots
        )
    )
    assert [step.concurrency for step in steps][-1] == asked
    assert (found.concurrency, found.reached) == (asked // 2, False)
    assert found.reason.endswith(f"and of {asked} at once none met the SLO, all first tokens being late")
    assert len(found.curve) == len(steps)


def test_one_that_is_late_alone_ends_the_search() -> None:
    found, steps = search(lambda count: Step(concurrency=count, tpot_p95=0.01, throughput=1.0, in_time=False))
    assert [step.concurrency for step in steps] == [1]
    assert (found.concurrency, found.reached) == (None, False)
    assert found.reason == "not reached: of 1 at once none met the SLO, all first tokens being late"


def test_a_batch_that_is_too_slow_as_well_as_late_does_not_keep_tpot() -> None:
    slow = tier(5)
    found, _ = search(lambda count: replace(slow(count), in_time=count < 6))
    assert (found.concurrency, found.reached) == (5, True)


def test_requests_that_fail_do_not_keep_tpot() -> None:
    found, _ = search(
        lambda count: Step(concurrency=count, tpot_p95=None if count > 5 else 0.01, throughput=1.0)
    )
    assert found.concurrency == 5


def test_a_spoiled_block_is_made_once_more_and_then_given_up() -> None:
    found, steps = search(
        lambda count: Step(concurrency=count, tpot_p95=0.01, throughput=1.0, valid=count < 4)
    )
    assert [step.concurrency for step in steps] == [1, 2, 4, 4]
    assert (found.concurrency, found.reached) == (2, False)
    assert [step.concurrency for step in found.curve] == [1, 2]


def test_of_several_blocks_all_must_keep_it() -> None:
    steps = [Step(concurrency=4, tpot_p95=p95, throughput=1.0) for p95 in (0.07, 0.09)]
    assert (
        crowd([*steps, Step(concurrency=2, tpot_p95=0.05, throughput=1.0)], tpot_seconds=TPOT).concurrency
        == 2
    )


@pytest.mark.parametrize(("tpot", "most"), [(0.0, 8), (0.1, 0)])
def test_bounds_that_cannot_be_are_refused(tpot: float, most: int) -> None:
    with pytest.raises(ValueError, match="TPOT"):
        next_concurrency([], tpot_seconds=tpot, most=most)
