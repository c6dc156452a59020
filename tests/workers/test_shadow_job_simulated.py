"""Whole shadow jobs in simulated time: what they say of tiers whose speed is arithmetic, to the last digit.

Only the blocks themselves are not run: their requests have the times that a queue would give them. Turns,
figures, gates and what is kept in SQL are those of any job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.decision.evidence import Shown
from service.decision.policy import Gate
from service.load.block import Block, Load, Watch
from service.load.plan import BlockPlan
from service.settings import Settings
from service.store.load.jobs import Job, JobState
from service.store.sql.database import Database
from service.store.verdicts.measurements import latest_measurement
from tests.load import queues
from tests.workers.load_walk import begin_by_hand, break_answers, fill_corpus, run_all, settings_of
from tests.workers.walk import MODEL
from workers.shadow_job import LoadRoom

PLAN: dict[str, Any] = {
    "warm_up": "4s",
    "settle": "4s",
    "window": "160s",
    "blocks": 8,
    "rate": "4/s",
    "arrivals": "constant",
    "parts": ["slo", "sweep", "cost"],
}
SLO = {"ttft": "1s", "tpot": "100ms"}


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A tier that serves one request after the other."""

    served_in: float
    """Seconds."""
    late: float = 0.0
    """By which every first token comes later, as if something held it back."""


def simulated(tiers: Mapping[str, Queue]) -> Callable[..., tuple[Block, ...]]:
    """In place of running blocks by the clock."""

    def together(arms: Sequence[tuple[BlockPlan, Load]], watch: Watch) -> tuple[Block, ...]:
        return tuple(
            queues.served(
                plan,
                served_in=tiers[plan.tier].served_in,
                late=tiers[plan.tier].late,
                requests=len(load.requests),
                slo=load.slo,
            )
            for plan, load in arms
        )

    return together


@pytest.fixture
def job_of(
    tmp_path: Path, sqlite_url: str, db: Database, room_of: Callable[..., LoadRoom]
) -> Callable[..., Job]:
    """Runs a whole job of a baseline and a candidate at the same price that broke so many of 80 answers."""

    def run(baseline: Queue, candidate: Queue, *, broken: int = 0) -> Job:
        settings = settings_of(
            tmp_path,
            redis_url="redis://127.0.0.1:9/0",
            database_url=sqlite_url,
            tiers=[("bf16", "http://127.0.0.1:11", 60.0), ("w8a8", "http://127.0.0.1:10", 60.0)],
            plan=PLAN,
            slo=SLO,
        )
        fill_corpus(db)
        break_answers(db, epoch=epoch_of(settings), broken=broken, of=80)
        room = room_of(settings, together=simulated({"bf16": baseline, "w8a8": candidate}))
        return run_all(room, begin_by_hand(settings, db, time.time()))

    return run


def epoch_of(settings: Settings) -> str:
    return settings.epoch_of(MODEL, "w8a8")


def gate_of(job: Job, gate: Gate) -> dict[str, Any]:
    assert (job.state, job.reason) == (JobState.DONE, "")
    assert job.findings is not None
    [found] = [each for each in job.findings["gates"] if (each["gate"], each["tier"]) == (gate, "w8a8")]
    return dict(found)


SLOW, FAST = Queue(served_in=0.2), Queue(served_in=0.1)


def test_a_tier_twice_as_fast_at_the_same_price_costs_half(job_of: Callable[..., Job], db: Database) -> None:
    job = job_of(SLOW, FAST)
    money = gate_of(job, Gate.MONEY)
    told = money["numbers"]
    # One is served every 0.2 s: 5 requests, or 500 tokens, a second, or 1.8 million in the hour of 60.
    assert told["baseline per 1M tokens"] == pytest.approx(60 / 1.8, rel=0.1)
    assert told["candidate per 1M tokens"] / told["baseline per 1M tokens"] == pytest.approx(0.5, rel=0.1)
    assert told["net benefit per request"] == pytest.approx(60 / 1.8e6 * queues.TOKENS / 2, rel=0.15)
    assert (money["shown"], money["run"]) == ("passed", 1)
    best = {each["tier"]: each["rate"] for each in (job.findings or {})["best"]}
    assert best["bf16"] == pytest.approx(5, rel=0.1)
    assert best["w8a8"] == pytest.approx(10, rel=0.1)
    kept = latest_measurement(db, MODEL, "w8a8", Gate.MONEY, money["epoch"], since=0.0)
    assert kept is not None
    assert kept.shown is Shown.PASSED


def test_a_tier_as_fast_as_the_baseline_costs_as_much(job_of: Callable[..., Job]) -> None:
    job = job_of(SLOW, SLOW)
    money = gate_of(job, Gate.MONEY)
    assert money["numbers"]["candidate per 1M tokens"] == pytest.approx(
        money["numbers"]["baseline per 1M tokens"]
    )
    assert money["shown"] != "passed", "that it saves something is not shown"
    assert gate_of(job, Gate.SLO)["shown"] == "passed"


def test_a_tier_twice_as_fast_that_breaks_half_of_its_answers_is_no_bargain(
    job_of: Callable[..., Job],
) -> None:
    money = gate_of(job_of(SLOW, FAST, broken=40), Gate.MONEY)
    told = money["numbers"]
    assert told["candidate per 1M tokens"] / told["baseline per 1M tokens"] == pytest.approx(0.5, rel=0.1)
    # c - c / 2 is saved, and half of the answers cost 4 c: a retry, and half of those a bigger model at 6 c.
    request = told["baseline per 1M tokens"] * queues.TOKENS / 1e6
    assert told["net benefit per request"] == pytest.approx(-1.5 * request, rel=0.1)
    assert money["shown"] == "failed"


def test_a_tier_whose_first_tokens_are_held_back_fails_the_slo_gate_and_has_no_best_rate(
    job_of: Callable[..., Job],
) -> None:
    """A request takes 0.1 s until its first token by itself: with 0.95 s more it is late by 0.05 s."""
    job = job_of(SLOW, Queue(served_in=0.2, late=0.95))
    gate = gate_of(job, Gate.SLO)
    assert gate["shown"] == "failed", gate["reason"]
    arms = {each["tier"]: each for each in (job.findings or {})["slo"]["arms"]}
    assert arms["w8a8"]["passed"] == 0
    assert arms["bf16"]["passed"] == arms["bf16"]["offered"] == arms["w8a8"]["offered"] > 0
    assert "no token met the SLO" in (job.findings or {})["best"][1]["told"]
    assert "the best rate of w8a8 was not reached" in gate_of(job, Gate.MONEY)["reason"]
