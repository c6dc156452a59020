"""Shadow jobs as SQL has them: begun, watched, cancelled, over. Their blocks are in `load_blocks`.

SQL is the outbox: who begins a job writes rows and tells nobody. The guard finds what is due and tells the
broker, again and again until somebody has leased it, so that a lost message costs seconds and no block.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, case, func, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from service.store.decided.decisions import append_within
from service.store.load.manifest import Manifest
from service.store.sql.database import Database
from service.store.sql.job_tables import load_blocks, shadow_jobs


class JobState(StrEnum):
    """Where a shadow job is."""

    WAITING = "waiting"
    """No block of it was begun yet."""
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    """By a person."""
    ABORTED = "aborted"
    """Because going on would have hurt: the clients' SLO, a backend that came into service."""
    FAILED = "failed"
    """It could not go on: a block that ends its workers, a configuration that changed."""

    @property
    def over(self) -> bool:
        return self not in (JobState.WAITING, JobState.RUNNING)


class Cause(StrEnum):
    """Why a job was begun."""

    SCHEDULE = "schedule"
    REQUEST = "request"
    REPLAY = "replay"


class BlockState(StrEnum):
    """Where a block of load is; of a job, only those of its last turn are not over."""

    DUE = "due"
    LEASED = "leased"
    DONE = "done"
    ABANDONED = "abandoned"
    """Its job was over before it was."""


class JobRuns(RuntimeError):
    """The model has a job that is not over; `job_id` is its name."""

    def __init__(self, model: str, job_id: str) -> None:
        super().__init__(f"job {job_id} of {model!r} is not over yet: one at a time")
        self.job_id = job_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How much a job is expected to be in all, as far as it can be told; what is done included."""

    blocks: int = 0
    seconds: float = 0.0
    """In which load is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One shadow job."""

    job_id: str
    model: str
    state: JobState
    part: str
    """What is measured now, or was last: `slo`, `sweep`, `cost`, `concurrency`; empty before the first."""
    cause: Cause
    actor: str
    """Who began it: the name of a token, or `schedule`."""
    own_capacity: bool = False
    """It may load backends that serve, and is aborted at the first breach of the clients' SLO."""
    created_at: float
    """Unix seconds, as every time here."""
    started_at: float | None = None
    ended_at: float | None = None
    cancelled_by: str | None = None
    reason: str = ""
    """Why it ended as it did, in a sentence; empty while it runs and when all went well."""
    manifest: Manifest = field(repr=False)
    replay_of: str | None = None
    """Digest of the manifest that it repeats."""
    differences: tuple[str, ...] = ()
    """From the manifest that it repeats, in sentences."""
    remarks: tuple[str, ...] = ()
    """What was not measured, and why."""
    findings: Mapping[str, Any] | None = None
    """What it found by part, as `workers.load_findings` writes it; None before the first part is over."""
    outlook: Outlook = Outlook()
    blocks_done: int = 0
    seconds_done: float = 0.0
    """Of load, by blocks that are done."""
    seconds_spent: float = 0.0
    """Of load, attempts that died included: what counts against the budget of minutes."""
    tokens_spent: int = 0
    """Of prompts and answers; a block that died is taken to have spent what it spent when it was done."""

    @property
    def progress(self) -> float:
        """Share of the expected seconds that are done, 0 to 1."""
        if self.state is JobState.DONE:
            return 1.0
        return min(1.0, self.seconds_done / self.outlook.seconds) if self.outlook.seconds else 0.0


def begin_job(
    db: Database,
    *,
    manifest: Manifest,
    cause: Cause,
    actor: str,
    now: float,
    own_capacity: bool = False,
    replay_of: str | None = None,
    differences: Sequence[str] = (),
) -> Job:
    """Write the job down, which the guard opens; JobRuns while the model has one that is not over.

    Loading backends that serve is a decision: it goes into the decision log as well.
    """
    job_id = _new_id(now)
    row = {
        "job_id": job_id,
        "model": manifest.model,
        "active": manifest.model,
        "state": JobState.WAITING,
        "part": "",
        "cause": cause,
        "actor": actor,
        "own_capacity": own_capacity,
        "created_at": now,
        "reason": "",
        "manifest": manifest.text,
        "manifest_digest": manifest.digest,
        "replay_of": replay_of,
        "differences": json.dumps(list(differences)),
        "remarks": "[]",
        "expected_blocks": 0,
        "expected_seconds": 0.0,
    }
    try:
        with db.write() as connection:
            if own_capacity:
                db.lock(connection, "decisions")
            connection.execute(shadow_jobs.insert().values(row))
            if own_capacity:
                append_within(
                    db,
                    connection,
                    at=now,
                    actor=actor,
                    action="load_own_capacity",
                    model=manifest.model,
                    tier=None,
                    detail={"job": job_id, "manifest": manifest.digest},
                )
    except IntegrityError:
        running = active_job(db, manifest.model)
        if running is None:
            raise
        raise JobRuns(manifest.model, running.job_id) from None
    return read_job(db, job_id)


def read_job(db: Database, job_id: str) -> Job:
    """The job of that name, or of a name that begins so if there is one; KeyError when there is none."""
    with db.read() as connection:
        rows = connection.execute(
            select(shadow_jobs).where(shadow_jobs.c.job_id.startswith(job_id, autoescape=True)).limit(2)
        ).all()
        exact = [row for row in rows if row.job_id == job_id]
        if len(exact or rows) != 1:
            raise KeyError(job_id)
        return _jobs(connection, exact or rows)[0]


def list_jobs(
    db: Database, model: str | None = None, *, limit: int = 50, after: Job | None = None
) -> list[Job]:
    """The latest first; with `after`, those older than it."""
    order = (shadow_jobs.c.created_at, shadow_jobs.c.job_id)
    asked = select(shadow_jobs).order_by(*(column.desc() for column in order))
    if model is not None:
        asked = asked.where(shadow_jobs.c.model == model)
    if after is not None:
        asked = asked.where(tuple_(*order) < (after.created_at, after.job_id))
    with db.read() as connection:
        return _jobs(connection, connection.execute(asked.limit(limit)).all())


def active_job(db: Database, model: str) -> Job | None:
    """The model's job that is not over."""
    with db.read() as connection:
        rows = connection.execute(select(shadow_jobs).where(shadow_jobs.c.active == model)).all()
        return _jobs(connection, rows)[0] if rows else None


def cancel_job(db: Database, job_id: str, *, actor: str, now: float) -> Job:
    """End it; a block that is being run is broken off by its holder within seconds. KeyError.

    A job that is over stays as it is.
    """
    job = read_job(db, job_id)
    with db.write() as connection:
        asked = connection.execute(
            update(shadow_jobs)
            .where(
                shadow_jobs.c.job_id == job.job_id,
                shadow_jobs.c.active.is_not(None),
                shadow_jobs.c.cancelled_by.is_(None),
            )
            .values(cancelled_by=actor)
        )
        held = connection.execute(
            select(load_blocks.c.number).where(
                load_blocks.c.job_id == job.job_id,
                load_blocks.c.state == BlockState.LEASED,
                load_blocks.c.lease_until > now,
            )
        ).first()
        if asked.rowcount and held is None:
            end_within(connection, job.job_id, JobState.CANCELLED, reason=cancelled(actor), now=now)
    return read_job(db, job.job_id)


def cancelled(actor: str) -> str:
    """The reason of a job that somebody cancelled."""
    return f"cancelled by {actor}"


def end_within(connection: Connection, job_id: str, state: JobState, *, reason: str, now: float) -> bool:
    """Put an end to a job that is not over, and to its block; whether it was not over."""
    if not state.over:
        raise ValueError(f"{state} is no end")
    ended = connection.execute(
        update(shadow_jobs)
        .where(shadow_jobs.c.job_id == job_id, shadow_jobs.c.active.is_not(None))
        .values(state=state, active=None, ended_at=now, reason=reason)
    )
    if not ended.rowcount:
        return False
    connection.execute(
        update(load_blocks)
        .where(
            load_blocks.c.job_id == job_id,
            load_blocks.c.state.in_([BlockState.DUE, BlockState.LEASED]),
        )
        .values(state=BlockState.ABANDONED, ended_at=now)
    )
    return True


def end_job(db: Database, job_id: str, state: JobState, *, reason: str, now: float) -> bool:
    """`end_within` as a transaction of its own."""
    with db.write() as connection:
        return end_within(connection, job_id, state, reason=reason, now=now)


def _new_id(now: float) -> str:
    """Sorts by time; the rest tells two of one second apart."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    return f"{moment}-{secrets.token_hex(3)}"


def _jobs(connection: Connection, rows: Sequence[Row[Any]]) -> list[Job]:
    of = load_blocks.c
    done = of.state == BlockState.DONE
    took = of.ended_at - of.started_at
    # A block may wait for its last answers long after its window; of an attempt that died, the plan must do.
    spent = case(
        (done & (took > of.seconds), took + of.seconds * (of.leases - 1)), else_=of.seconds * of.leases
    )
    sums: dict[str, dict[str, Any]] = {
        row.job_id: {
            "blocks_done": row.blocks,
            "seconds_done": float(row.seconds),
            "seconds_spent": float(row.spent),
            "tokens_spent": int(row.tokens),
        }
        for row in connection.execute(
            select(
                of.job_id,
                func.count().filter(done).label("blocks"),
                func.coalesce(func.sum(of.seconds).filter(done), 0.0).label("seconds"),
                func.coalesce(func.sum(spent), 0.0).label("spent"),
                func.coalesce(func.sum(of.tokens * of.leases), 0).label("tokens"),
            )
            .where(of.job_id.in_([row.job_id for row in rows]))
            .group_by(of.job_id)
        )
    }
    return [
        Job(
            job_id=row.job_id,
            model=row.model,
            state=JobState(row.state),
            part=row.part,
            cause=Cause(row.cause),
            actor=row.actor,
            own_capacity=row.own_capacity,
            created_at=row.created_at,
            started_at=row.started_at,
            ended_at=row.ended_at,
            cancelled_by=row.cancelled_by,
            reason=row.reason,
            manifest=Manifest.read(row.manifest),
            replay_of=row.replay_of,
            differences=tuple(json.loads(row.differences)),
            remarks=tuple(json.loads(row.remarks)),
            findings=None if row.findings is None else json.loads(row.findings),
            outlook=Outlook(blocks=row.expected_blocks, seconds=row.expected_seconds),
            **sums.get(row.job_id, {}),
        )
        for row in rows
    ]
