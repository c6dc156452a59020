"""A job's turns: what it does next, taken once by whoever comes first, and what is over without one.

A job has no blocks that are not settled but those of its last turn, and one without any waits for its turn:
the worker that settled the last block takes it, or the guard where that died in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select, update

from service.store.load.jobs import BlockState, JobState, Outlook, cancelled, end_within
from service.store.load.manifest import canonical
from service.store.sql.database import Database
from service.store.sql.job_tables import load_blocks, shadow_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a job ends."""

    state: JobState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a job does next, and what it has found by now."""

    then: Mapping[str, Any] | Ending
    """The plan of the next block, or the end."""
    beside: Sequence[Mapping[str, Any]] = ()
    """Plans of blocks that are run at the same time as the next."""
    outlook: Outlook
    remarks: Sequence[str] = ()
    findings: Mapping[str, Any] | None = None


def take_turn(db: Database, job_id: str, number: int, turn: Turn, *, now: float) -> bool:
    """Give a job its block of that number and those beside it, or its end; whether it was this call that did.

    Nothing is done when it has a block of that number already, or is over. One that was cancelled ends.
    """
    with db.write() as connection:
        db.lock(connection, f"job {job_id}")
        of = shadow_jobs.c
        job = connection.execute(select(of.active, of.cancelled_by).where(of.job_id == job_id)).one_or_none()
        known = connection.execute(
            select(func.count()).select_from(load_blocks).where(load_blocks.c.job_id == job_id)
        ).scalar_one()
        if job is None or job.active is None or known != number:
            return False
        _keep(connection, job_id, turn)
        if isinstance(turn.then, Ending):
            end_within(connection, job_id, turn.then.state, reason=turn.then.reason, now=now)
        elif job.cancelled_by is not None:
            end_within(connection, job_id, JobState.CANCELLED, reason=cancelled(job.cancelled_by), now=now)
        else:
            for place, plan in enumerate((turn.then, *turn.beside)):
                _add(connection, job_id, number + place, plan)
        return True


def waiting_for_turn(db: Database) -> list[str]:
    """Jobs that are not over and have no block that is not settled: new ones, and those whose worker died."""
    of = load_blocks.c
    open_block = (
        select(of.number)
        .where(of.job_id == shadow_jobs.c.job_id, of.state.in_([BlockState.DUE, BlockState.LEASED]))
        .exists()
    )
    with db.read() as connection:
        return list(
            connection.execute(
                select(shadow_jobs.c.job_id)
                .where(shadow_jobs.c.active.is_not(None), ~open_block)
                .order_by(shadow_jobs.c.created_at)
            ).scalars()
        )


def settle_dropped(db: Database, *, now: float) -> list[str]:
    """End cancelled jobs whose block nobody holds any more; their ids."""
    held = (
        select(load_blocks.c.number)
        .where(
            load_blocks.c.job_id == shadow_jobs.c.job_id,
            load_blocks.c.state == BlockState.LEASED,
            load_blocks.c.lease_until > now,
        )
        .exists()
    )
    with db.write() as connection:
        rows = connection.execute(
            select(shadow_jobs.c.job_id, shadow_jobs.c.cancelled_by).where(
                shadow_jobs.c.active.is_not(None), shadow_jobs.c.cancelled_by.is_not(None), ~held
            )
        ).all()
        return [
            row.job_id
            for row in rows
            if end_within(
                connection, row.job_id, JobState.CANCELLED, reason=cancelled(row.cancelled_by), now=now
            )
        ]


def _keep(connection: Connection, job_id: str, turn: Turn) -> None:
    values: dict[str, Any] = {
        "remarks": json.dumps(list(turn.remarks)),
        "expected_blocks": turn.outlook.blocks,
        "expected_seconds": turn.outlook.seconds,
    }
    if turn.findings is not None:
        values["findings"] = canonical(turn.findings)
    connection.execute(update(shadow_jobs).where(shadow_jobs.c.job_id == job_id).values(values))


def _add(connection: Connection, job_id: str, number: int, plan: Mapping[str, Any]) -> None:
    connection.execute(
        load_blocks.insert().values(
            job_id=job_id,
            number=number,
            tier=plan["tier"],
            part=plan["part"],
            plan=canonical(plan),
            seconds=plan["warm_up_seconds"] + plan["window_seconds"],
            state=BlockState.DUE,
            owner="",
            lease_until=0.0,
            leases=0,
            enqueued_at=0.0,
            tokens=0,
            clients=0,
        )
    )
