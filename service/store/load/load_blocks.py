"""Blocks of load as SQL leases: who runs which, what it showed, and which is next.

A block is due, leased, and then settled once. Who comes second, by a message delivered twice or after the
lease ran out under it, gets nothing and leaves. A job's blocks follow one another, by its `turns`; those that
have one turn are run at the same time, so they are leased, kept and settled together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import zstandard
from sqlalchemy import Connection, Row, func, select, update

from service.store.load.jobs import BlockState, JobState, end_within
from service.store.load.turns import Ending
from service.store.sql.database import Database
from service.store.sql.job_tables import load_blocks, shadow_jobs

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
    beside: tuple[Block, ...] = ()
    """Other blocks of the same lease, to be run at the same time."""

    @property
    def together(self) -> tuple[Block, ...]:
        """All blocks of its lease, itself included, in their order."""
        return tuple(sorted((self, *self.beside), key=lambda each: each.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one block of a lease showed."""

    block: Block
    figures: Mapping[str, Any] = field(repr=False)
    """As `service.load.figures.BlockFigures` has them."""
    tokens: int
    """Of prompts and answers."""
    clients: int = 0
    """Answers that clients had meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grip:
    """What a holder learns at a heartbeat."""

    held: bool
    """Whether the lease is still its own."""
    cancelled_by: str | None = None


def to_enqueue(db: Database, *, now: float, again_after: float) -> list[tuple[str, int]]:
    """Blocks that nobody holds and of which the broker was not told, or not within `again_after` seconds.

    Of several that run at the same time, the first. Marked as told: the caller tells it now. If it cannot,
    they come up again in time.
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
        first: dict[str, int] = {}
        for row in rows:
            first.setdefault(row.job_id, row.number)
        return list(first.items())


def lease_block(
    db: Database, job_id: str, number: int, *, owner: str, now: float, seconds: float = LEASE_SECONDS
) -> Block | None:
    """The block and what is to be run beside it, which `owner` now holds; None when it is settled, or held.

    `owner` names this lease and no other, since it tells which blocks are held by it.
    """
    of = load_blocks.c
    open_now = (of.state == BlockState.DUE) | ((of.state == BlockState.LEASED) & (of.lease_until <= now))
    with db.write() as connection:
        asked_for = select(of.number).where(of.job_id == job_id, open_now).order_by(of.number)
        numbers = list(connection.execute(asked_for.with_for_update()).scalars())
        if number not in numbers:
            return None
        mine = (of.job_id == job_id) & of.number.in_(numbers)
        connection.execute(
            update(load_blocks)
            .where(mine)
            .values(
                state=BlockState.LEASED,
                owner=owner,
                lease_until=now + seconds,
                leases=of.leases + 1,
                started_at=now,
            )
        )
        blocks = {row.number: _block(row) for row in connection.execute(select(load_blocks).where(mine))}
        asked = blocks.pop(number)
        connection.execute(
            update(shadow_jobs)
            .where(shadow_jobs.c.job_id == job_id, shadow_jobs.c.active.is_not(None))
            .values(
                state=JobState.RUNNING,
                part=asked.part,
                started_at=func.coalesce(shadow_jobs.c.started_at, now),
            )
        )
        return replace(asked, beside=tuple(blocks[each] for each in sorted(blocks)))


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
    """Give the lease up unsettled, so that the next who asks gets its blocks at once; as if never begun."""
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
    """`finish_blocks` for a block that is alone."""
    return finish_blocks(db, [Outcome(block=block, figures=figures, tokens=tokens, clients=clients)], now=now)


def finish_blocks(db: Database, outcomes: Sequence[Outcome], *, now: float) -> bool:
    """Record what blocks of one lease showed; False, and nothing, when they are not the holder's any more."""
    with db.write() as connection:
        asked_for = select(load_blocks.c.number).where(*_held_by(outcomes[0].block))
        held = set(connection.execute(asked_for.with_for_update()).scalars())
        if not held.issuperset(each.block.number for each in outcomes):
            return False
        for each in outcomes:
            _settle(connection, each, now=now)
    return True


def _settle(connection: Connection, outcome: Outcome, *, now: float) -> None:
    told, requests = _apart(outcome.figures)
    connection.execute(
        update(load_blocks)
        .where(*_held_by(outcome.block), load_blocks.c.number == outcome.block.number)
        .values(
            state=BlockState.DONE,
            lease_until=0.0,
            ended_at=now,
            tokens=outcome.tokens,
            clients=outcome.clients,
            figures=told,
            requests=requests,
        )
    )


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
    """What tells the blocks of its lease, and no other, while it lasts."""
    of = load_blocks.c
    return (
        of.job_id == block.job_id,
        of.state == BlockState.LEASED,
        of.owner == block.owner,
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
