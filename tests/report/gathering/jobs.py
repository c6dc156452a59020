"""A whole job in a database: blocks that are arithmetic, findings by the worker's own hands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import zstandard
from sqlalchemy import update

from service.decision.evidence import Evidence
from service.decision.policy import Asked, Criterion, Gate, Policy
from service.fleet import Backend, Ladder, Tier
from service.load.figures import BlockFigures
from service.report.gathering.composing import Sources
from service.store.load.jobs import BlockState, Cause, Job, JobState, Outlook, begin_job, read_job
from service.store.load.manifest import Manifest, canonical
from service.store.load.turns import Ending, Turn, take_turn
from service.store.sql.database import Database
from service.store.sql.job_tables import load_blocks, shadow_jobs
from service.store.verdicts.standing import Question
from tests.approval.live import add_pairs
from tests.workers.load_tiers import ModelTier, tiers
from tests.workers.test_load_plan import PLAN, whole
from workers.load_findings import Court, concurrency_findings, cost_findings, slo_findings, sweep_findings
from workers.load_plan import Opening

NOW = 1_800_000_000.0
TIERS = tiers(bf16=ModelTier(capacity=10.0, misses=0.002), w8a8=ModelTier(capacity=20.0, misses=0.002))
SOON = replace(PLAN, window_seconds=400.0)
"""Blocks of 50 s: 200 requests each."""
MONEY = {
    "currency": "EUR",
    "failure": {"steps": [{"name": "retry", "share": 1.0, "multiple": 1.0, "price": 0.0}]},
}
WIDE = Policy(
    criteria=(Criterion(evaluator="structured_output", margin=0.3, min_pairs=20),),
    gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED},
)


def sources(db: Database, names: Sequence[str] = ("bf16", "w8a8")) -> Sources:
    """Where reports of the model come from, without Redis."""
    backend = (Backend(url="http://127.0.0.1:9"),)
    ladder = Ladder(
        model="m", tiers=tuple(Tier(name=name, model="m", backends=backend, shadow=backend) for name in names)
    )
    return Sources(
        db=db,
        captures=None,
        ladders={"m": ladder},
        question=Question(policy=WIDE, epoch_of=lambda model, tier: f"epoch of {tier}"),
    )


def pairs(db: Database, **kinds: int) -> None:
    """Pairs of w8a8 that count."""
    add_pairs(db, "w8a8", epoch="epoch of w8a8", criteria=("structured_output",), model="m", **kinds)


def run(known: Mapping[str, ModelTier] = TIERS) -> tuple[Manifest, list[BlockFigures]]:
    """The blocks that a worker would have measured."""
    return _measured(tuple(known.items()))


@cache
def _measured(known: tuple[tuple[str, ModelTier], ...]) -> tuple[Manifest, list[BlockFigures]]:
    manifest, blocks, _ = whole(dict(known), SOON, Opening(slo_block_seconds=SOON.block_seconds))
    return Manifest.of({**manifest.document, "money": MONEY}), blocks


def job_over(
    db: Database,
    manifest: Manifest,
    blocks: Sequence[BlockFigures],
    *,
    began: float = NOW,
    state: JobState | None = JobState.DONE,
    reason: str = "",
) -> Job:
    """A job with these blocks, a minute each, and what was found in them; without a state it still runs."""
    job = begin_job(db, manifest=manifest, cause=Cause.SCHEDULE, actor="schedule", now=began)
    at = began + 60 * len(blocks)
    outlook = Outlook(blocks=len(blocks), seconds=sum(each.plan.seconds for each in blocks))
    rows = [_row(job.job_id, number, each, began + 60 * number) for number, each in enumerate(blocks)]
    with db.write() as connection:
        connection.execute(load_blocks.insert(), rows)
        running = update(shadow_jobs).where(shadow_jobs.c.job_id == job.job_id)
        connection.execute(running.values(started_at=began, state=JobState.RUNNING))
    if state is None:
        return read_job(db, job.job_id)
    found = findings(db, job, blocks, at=at)
    last = Turn(
        then=Ending(state=state, reason=reason), outlook=outlook, remarks=("a remark",), findings=found
    )
    take_turn(db, job.job_id, len(blocks), last, now=at)
    return read_job(db, job.job_id)


def _row(job_id: str, number: int, figures: BlockFigures, at: float) -> dict[str, Any]:
    """A block as `finish_block` leaves it; one by one, a job's blocks would take a test seconds."""
    document = figures.document()
    columns = json.dumps(document.pop("columns")).encode()
    return {
        "job_id": job_id,
        "number": number,
        "tier": figures.plan.tier,
        "part": figures.plan.part.value,
        "plan": canonical(figures.plan.document()),
        "seconds": figures.plan.seconds,
        "state": BlockState.DONE,
        "owner": "w",
        "lease_until": 0.0,
        "leases": 1,
        "enqueued_at": at,
        "started_at": at,
        "ended_at": at + 60,
        "tokens": 1000,
        "clients": 0,
        "figures": json.dumps(document),
        "requests": zstandard.compress(columns),
    }


def findings(db: Database, job: Job, blocks: Sequence[BlockFigures], *, at: float) -> dict[str, Any]:
    """As `workers.shadow_job` puts them together."""
    court = Court(
        db=db,
        policy=WIDE,
        evidence_of=lambda model, tier: Evidence(model=model, tier=tier, epoch=f"epoch of {tier}"),
        unsettled_of=lambda model, tier: "",
        operations=0.0,
    )
    slo = slo_findings(court, job, blocks, at=at, unequal="")
    cost = cost_findings(court, job, blocks, at=at, unequal="")
    gates = [*slo.pop("gates"), *cost.pop("gates")]
    return {**slo, **cost, **sweep_findings(job, blocks), **concurrency_findings(job, blocks), "gates": gates}
