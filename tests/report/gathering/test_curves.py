"""The sweep, the search for concurrency, and engines' counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.engines.load import EngineLoad
from service.load.figures import BlockFigures, EngineSample, Quantiles
from service.load.plan import Arrivals, BlockPlan, Part
from service.report.gathering.curves import MOST_POINTS, concurrency, engine, sweep


def at_rate(rate: float, goodput: float, part: Part = Part.SWEEP, **more: Any) -> BlockFigures:
    told: dict[str, Any] = {
        "offered": 100,
        "passed": 99,
        "ttft": Quantiles(n=100, p95=0.2),
        "goodput": goodput,
    }
    return BlockFigures(plan=BlockPlan(tier="w8a8", part=part, rate=rate, window_seconds=10), **(told | more))


def at_once(many: int, p95: float | None) -> BlockFigures:
    plan = BlockPlan(
        tier="w8a8", part=Part.CONCURRENCY, arrivals=Arrivals.CLOSED, concurrency=many, window_seconds=10
    )
    return BlockFigures(plan=plan, offered=9, passed=9, tpot=Quantiles(n=9, p95=p95), throughput=10.0 * many)


def documents(*blocks: BlockFigures) -> list[Any]:
    return [each.document() for each in blocks]


def test_a_sweep_has_its_search_and_the_fresh_blocks_apart() -> None:
    blocks = documents(
        at_rate(4, 400),
        at_rate(8, 790, invalid=("over_saturated: x",)),
        at_rate(8, 800, part=Part.COST),
        at_once(4, 0.02),
    )
    found = sweep(blocks, {"rate": 8.0, "goodput": 800.0, "reached": True, "told": "highest of three"})
    assert found is not None
    assert [(each.rate, each.goodput, each.fresh) for each in found.points] == [
        (4, 400, False),
        (8, 790, False),
        (8, 800, True),
    ]
    assert found.points[1].invalid == ("over_saturated: x",)
    assert (
        found.points[0].pass_rate,
        found.points[0].ttft_p95_seconds,
        found.points[0].tpot_p95_seconds,
    ) == (0.99, 0.2, None)
    assert (found.best_rate, found.note) == (8.0, "highest of three")


def test_a_best_rate_that_was_not_reached_is_none() -> None:
    found = sweep(
        documents(at_rate(4, 400)), {"rate": 4.0, "goodput": 400.0, "reached": False, "told": "budget"}
    )
    assert found is not None
    assert (found.best_rate, found.note) == (None, "budget")
    assert sweep([], None) is None
    running = sweep(documents(at_rate(4, 400)), None)
    assert running is not None
    assert running.best_rate is None


def test_the_search_for_concurrency_has_its_curve_and_limit() -> None:
    blocks = documents(at_once(4, 0.02), at_once(8, 0.05), at_once(16, None), at_rate(4, 1))
    told = {"concurrency": 4, "reached": True, "limit_seconds": 0.04, "told": "8 is too many"}
    found = concurrency(blocks, told, 0.05)
    assert found is not None
    assert [(each.concurrency, each.tpot_p95_seconds) for each in found.points] == [
        (4, 0.02),
        (8, 0.05),
        (16, None),
    ]
    assert (found.largest, found.limit_seconds, found.note) == (4, 0.04, "8 is too many")
    not_reached = concurrency(blocks, {**told, "reached": False}, 0.05)
    assert not_reached is not None
    assert not_reached.largest is None
    assert concurrency(documents(at_rate(4, 1)), None, 0.05) is None
    running = concurrency(blocks, None, 0.05)
    assert running is not None
    assert running.limit_seconds == pytest.approx(0.04)


def looks(*samples: EngineSample) -> dict[str, Any]:
    """One block with these looks; the rest told by the caller."""
    return replace(at_rate(4, 1), engine=samples).document()


def sample(at: float, backend: str = "a", **load: float) -> EngineSample:
    return EngineSample(at=at, backend=backend, load=EngineLoad(**load) if load else None)


def test_levels_are_told_over_all_backends_and_holes_stay_holes() -> None:
    block = looks(
        sample(0, "a", running=3, kv_usage=0.5),
        sample(0.1, "b", running=2, kv_usage=0.7),
        sample(5, "a"),
        sample(6, "a", running=1, kv_usage=0.1),
    )
    told, silent = engine([(100.0, block)])
    series = {each.metric: each.points for each in told}
    assert series["running"] == ((100, 3), (100.1, 5), (105, None), (106, 3))
    assert series["kv_usage"] == ((100, 0.5), (100.1, 0.7), (105, None), (106, 0.7))
    assert silent == ("waiting", "preemptions", "prefix_hit_rate")


def test_counters_are_told_as_what_was_added_also_over_a_restart() -> None:
    block = looks(
        sample(0, preemptions=7),
        sample(1, preemptions=9),
        sample(2, "b", preemptions=100),
        sample(3, preemptions=1),
        sample(4, "b", preemptions=101),
    )
    (told,), _ = engine([(0.0, block)])
    assert told.points == ((0, 0), (1, 2), (2, 2), (3, 3), (4, 4))


def test_hits_are_a_share_of_what_was_looked_up_between_two_looks() -> None:
    block = looks(
        sample(0, prefix_queries=100, prefix_hits=10),
        sample(1, prefix_queries=200, prefix_hits=90),
        sample(2, prefix_queries=200, prefix_hits=90),
        sample(3, prefix_queries=50, prefix_hits=0),
        sample(4, prefix_queries=60, prefix_hits=5),
    )
    (told,), _ = engine([(0.0, block)])
    assert told.metric == "prefix_hit_rate"
    assert told.points == ((1, 0.8), (4, 0.5))


def test_a_tier_that_was_never_asked_tells_nothing_and_misses_nothing() -> None:
    assert engine([(0.0, at_rate(4, 1).document())]) == ((), ())
    assert engine([]) == ((), ())


def test_a_long_run_is_thinned_out() -> None:
    block = looks(*(sample(float(at), running=1) for at in range(3 * MOST_POINTS + 1)))
    (told,), _ = engine([(0.0, block)])
    assert MOST_POINTS / 2 < len(told.points) <= MOST_POINTS
