"""A load run of one tier as advice reads it: pooled over blocks, the window of each, and a price for all."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.capacity.batch import Step
from service.store.load.jobs import JobState
from service.store.load.tier_load import TierLoad, last_load, tier_load
from service.store.sql.database import Database
from tests.report.gathering.jobs import NOW, job_over, run


def block(part: str = "slo", **more: Any) -> dict[str, Any]:
    plan = {"part": part, "concurrency": None, "warm_up_seconds": 10.0, "window_seconds": 20.0}
    told = {
        "plan": {**plan, **more.pop("plan", {})},
        "offered": 4,
        "failed": {},
        "invalid": [],
        "throughput": 100.0,
        "goodput": 90.0,
        "ttft": {"n": 4, "p50": 0.1, "p95": 0.3},
        "tpot": {"n": 4, "p50": 0.01, "p95": 0.02},
        "columns": {},
        "engine": [],
    }
    return {**told, **more}


def load(*blocks: dict[str, Any], best_rate: float | None = None) -> TierLoad:
    return TierLoad(
        job_id="j",
        began_at=0.0,
        ended_at=1.0,
        ttft_seconds=0.25,
        tpot_seconds=0.05,
        price_per_hour=None,
        currency="EUR",
        best_rate=best_rate,
        blocks=blocks,
    )


def columns(ttft: list[float | None], tokens: list[int]) -> dict[str, Any]:
    return {"ttft": ttft, "tpot": [None] * len(ttft), "tokens": tokens}


def test_times_are_pooled_over_the_requests_of_all_blocks() -> None:
    first = block(columns=columns([0.1] * 18, [5] * 18))
    second = block(columns=columns([0.9, 0.2], [5, 5]))
    assert load(first, second).quantiles("ttft") == (0.1, 0.2)


def test_a_request_that_failed_never_came() -> None:
    told = load(block(columns=columns([0.1, None], [5, 0]), failed={"timeout": 1}, offered=2)).signals()
    assert told.ttft_p95 == math.inf
    assert told.failed_share == 0.5
    assert told.tpot_p95 == math.inf


def test_an_answer_of_one_token_has_no_tpot_and_misses_none() -> None:
    assert load(block(columns=columns([0.1, 0.2], [1, 1]))).quantiles("tpot")[1] == 0.02


def test_where_requests_are_forgotten_the_worst_block_speaks() -> None:
    worse = block(ttft={"n": 4, "p50": 0.2, "p95": 0.7})
    assert load(block(), worse).quantiles("ttft") == (0.2, 0.7)
    gone = block(ttft={"n": 4, "p50": 0.2, "p95": None})
    assert load(block(), gone).quantiles("ttft")[1] == math.inf
    assert load(block("sweep")).quantiles("ttft") == (None, None)


def test_blocks_that_the_generator_spoiled_count_nowhere_and_those_of_a_slow_tier_do() -> None:
    spoiled = block(ttft={"n": 4, "p50": 9.0, "p95": 9.0}, invalid=["generator_lag: late"])
    slow = block(ttft={"n": 4, "p50": 2.0, "p95": 3.0}, invalid=["over_saturated: grew"])
    assert load(block(), spoiled).quantiles("ttft")[1] == 0.3
    assert load(block(), slow).quantiles("ttft")[1] == 3.0


def test_engines_count_in_the_windows_of_the_slo_part_alone() -> None:
    def look(at: float, waiting: float) -> dict[str, Any]:
        return {"at": at, "backend": "a", "load": {"waiting": waiting}}

    slo = block(engine=[look(5, 70), look(12, 2), look(28, 4), look(31, 80)])
    told = load(slo, block("sweep", engine=[look(15, 500)])).signals()
    assert told.waiting == 3.0


def test_steps_come_from_the_search_for_the_most_at_once() -> None:
    one = block("concurrency", plan={"concurrency": 1}, tpot={"n": 4, "p50": 0.01, "p95": 0.015})
    bad = block("concurrency", plan={"concurrency": 2}, invalid=["generator_lag"])
    found = load(one, bad, block())
    assert found.steps() == (Step(concurrency=1, tpot_p95=0.015, throughput=100.0, goodput=90.0),)
    assert found.signals().tpot_alone == 0.015


def test_how_much_of_the_best_rate_is_used_needs_both() -> None:
    assert load(block(), best_rate=8.0).signals(rate=2.0).utilisation == 0.25
    assert load(block(), best_rate=8.0).signals().utilisation is None
    assert load(block()).signals(rate=2.0).utilisation is None


def test_the_last_job_that_is_done_and_measured_the_tier_is_read(database: Database) -> None:
    manifest, blocks = run()
    done = job_over(database, manifest, blocks)
    later = job_over(database, manifest, blocks[:2], began=NOW + 90_000, state=JobState.FAILED)
    found = last_load(database, "m", "w8a8")
    assert found is not None
    assert found.job_id == done.job_id
    assert found.currency == "EUR"
    assert found.best_rate == pytest.approx(20.0, rel=0.3)
    assert found.steps()
    assert tier_load(database, later, "none") is None
    assert last_load(database, "another", "w8a8") is None
