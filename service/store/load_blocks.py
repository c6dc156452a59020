"""Blocks of load as SQL leases: who runs which, what it showed, and which is next.

A block is due, leased, and then settled once. Who comes second, by a message delivered twice or after the
lease ran out under it, gets nothing and leaves. A job's blocks follow one another: it has at most one that is
not settled, and one without any waits for its next turn, which whoever comes first takes: the worker that
settled the last block, or the guard where that died in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import zstandard
from sqlalchemy import Connection, Row, func, select, update

from service.store.database import Database
from service.store.job_tables import load_blocks, shadow_jobs
from service.store.jobs import BlockState, JobState, Outlook, cancelled, end_within
from service.store.manifest import canonical

LOAD_TASK = "workers.tasks.run_load_block"
"""Runs one block; called with the job's id and the block's number."""
LEASE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a job."""

    job_id: str
    number: int
    """From 0, in the order of running."""
    tier: str
    part: str
    plan: Mapping[str, Any]
    """As `service.load.plan.BlockPlan` has it."""
    state: BlockState
    owner: str = ""
    lease_until: float = 0.0
    leases: int = 0
    """How often it was begun; more than once: a holder died."""
    started_at: float | None = None
    """Unix seconds, of the attempt that counts."""
    ended_at: float | None = None
    tokens: int = 0
    """Of prompts and answers, warm-up included."""
    clients: int = 0
    """Answers that clients had meanwhile, of a job on capacity that serves."""
    figures: Mapping[str, Any] | None = field(default=None, repr=False)
    """As `service.load.figures.BlockFigures` has them; None before it is done. Without `columns` unless these
    were asked for."""


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
    outlook: Outlook
    remarks: Sequence[str] = ()
    findings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grip:
    """What a holder learns at a heartbeat."""

    held: bool
    """Whether the lease is still its own."""
    cancelled_by: str | None = None


def take_turn(db: Database, job_id: str, number: int, turn: Turn, *, now: float) -> bool:
    """Give a job its block of that number, or its end; whether it was this call that did.

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
            _add(connection, job_id, number, turn.then)
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


def to_enqueue(db: Database, *, now: float, again_after: float) -> list[tuple[str, int]]:
    """Blocks that nobody holds and of which the broker was not told, or not within `again_after` seconds.

    Marked as told: the caller tells it now. If it cannot, they come up again in time.
    """
    of = load_blocks.c
    idle = (of.state == BlockState.DUE) | ((of.state == BlockState.LEASED) & (of.lease_until <= now))
    with db.write() as connection:
        rows = connection.execute(
            select(of.job_id, of.number)
            .where(idle, of.enqueued_at <= now - again_after)
            .order_by(of.job_id, of.number)
        ).all()
        for row in rows:
            connection.execute(
                update(load_blocks)
                .where(of.job_id == row.job_id, of.number == row.number)
                .values(enqueued_at=now)
            )
        return [(row.job_id, row.number) for row in rows]


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


def lease_block(
    db: Database, job_id: str, number: int, *, owner: str, now: float, seconds: float = LEASE_SECONDS
) -> Block | None:
    """The block, which `owner` now holds; None when it is settled, or somebody holds it."""
    of = load_blocks.c
    with db.write() as connection:
        taken = connection.execute(
            update(load_blocks)
            .where(
                of.job_id == job_id,
                of.number == number,
                (of.state == BlockState.DUE) | ((of.state == BlockState.LEASED) & (of.lease_until <= now)),
            )
            .values(
                state=BlockState.LEASED,
                owner=owner,
                lease_until=now + seconds,
                leases=of.leases + 1,
                started_at=now,
            )
        )
        if not taken.rowcount:
            return None
        row = connection.execute(select(load_blocks).where(of.job_id == job_id, of.number == number)).one()
        connection.execute(
            update(shadow_jobs)
            .where(shadow_jobs.c.job_id == job_id, shadow_jobs.c.active.is_not(None))
            .values(
                state=JobState.RUNNING,
                part=row.part,
                started_at=func.coalesce(shadow_jobs.c.started_at, now),
            )
        )
        return _block(row)


def hold_on(db: Database, block: Block, *, now: float, seconds: float = LEASE_SECONDS) -> Grip:
    """A heartbeat: the lease runs `seconds` longer if it is still the holder's."""
    with db.write() as connection:
        kept = connection.execute(
            update(load_blocks).where(*_held_by(block)).values(lease_until=now + seconds)
        )
        told = connection.execute(
            select(shadow_jobs.c.cancelled_by).where(shadow_jobs.c.job_id == block.job_id)
        ).scalar()
    return Grip(held=bool(kept.rowcount), cancelled_by=told)


def give_back(db: Database, block: Block) -> bool:
    """Give the lease up unsettled, so that the next who asks gets the block at once; as if never begun."""
    with db.write() as connection:
        done = connection.execute(
            update(load_blocks)
            .where(*_held_by(block))
            .values(
                state=BlockState.DUE,
                owner="",
                lease_until=0.0,
                leases=load_blocks.c.leases - 1,
                enqueued_at=0.0,
            )
        )
        return bool(done.rowcount)


def finish_block(
    db: Database,
    block: Block,
    *,
    figures: Mapping[str, Any],
    tokens: int,
    now: float,
    clients: int = 0,
) -> bool:
    """Record what the block showed; False, and nothing, when it is not the holder's any more."""
    told, requests = _apart(figures)
    with db.write() as connection:
        settled = connection.execute(
            update(load_blocks)
            .where(*_held_by(block))
            .values(
                state=BlockState.DONE,
                lease_until=0.0,
                ended_at=now,
                tokens=tokens,
                clients=clients,
                figures=told,
                requests=requests,
            )
        )
        return bool(settled.rowcount)


def break_off(db: Database, block: Block, ending: Ending, *, now: float) -> bool:
    """End the job in the middle of its block, which shows nothing; False when it is not the holder's."""
    with db.write() as connection:
        mine = connection.execute(select(load_blocks.c.number).where(*_held_by(block))).first()
        return mine is not None and end_within(
            connection, block.job_id, ending.state, reason=ending.reason, now=now
        )


def read_blocks(db: Database, job_id: str, *, columns: bool = False, done: bool = True) -> list[Block]:
    """A job's blocks in order, by default those that are done; `columns` are the requests of the window."""
    of = load_blocks.c
    listed = [each for each in of if columns or each.name != "requests"]
    asked = select(*listed).where(of.job_id == job_id).order_by(of.number)
    if done:
        asked = asked.where(of.state == BlockState.DONE)
    with db.read() as connection:
        return [_block(row) for row in connection.execute(asked)]


def forget_columns(db: Database, *, before: float) -> int:
    """Take away the requests of blocks that ended before a time (unix seconds); their figures stay."""
    of = load_blocks.c
    with db.write() as connection:
        return connection.execute(
            update(load_blocks).where(of.ended_at < before, of.requests.is_not(None)).values(requests=None)
        ).rowcount


def _held_by(block: Block) -> tuple[Any, ...]:
    of = load_blocks.c
    return (
        of.job_id == block.job_id,
        of.number == block.number,
        of.state == BlockState.LEASED,
        of.owner == block.owner,
    )


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


def _apart(figures: Mapping[str, Any]) -> tuple[str, bytes]:
    """The figures as JSON, and beside them the requests of the window, compressed."""
    columns = json.dumps(figures["columns"], separators=(",", ":"), allow_nan=False)
    told = {name: value for name, value in figures.items() if name != "columns"}
    return json.dumps(told, separators=(",", ":"), allow_nan=False), zstandard.compress(columns.encode())


def _block(row: Row[Any]) -> Block:
    figures = None
    if row.figures is not None:
        packed = getattr(row, "requests", None)
        columns = {} if packed is None else json.loads(zstandard.decompress(packed))
        figures = {**json.loads(row.figures), "columns": columns}
    return Block(
        job_id=row.job_id,
        number=row.number,
        tier=row.tier,
        part=row.part,
        plan=json.loads(row.plan),
        state=BlockState(row.state),
        owner=row.owner,
        lease_until=row.lease_until,
        leases=row.leases,
        started_at=row.started_at,
        ended_at=row.ended_at,
        tokens=row.tokens,
        clients=row.clients,
        figures=figures,
    )
