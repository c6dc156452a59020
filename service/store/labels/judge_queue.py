"""Queued pairs in the hands of the judge: held for a while, tried a few times, given back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import update

from service.store.labels.access_log import note
from service.store.labels.adjudication import (
    BlindItem,
    Where,
    labelled_by,
    opened_items,
    queued_items,
    waiting,
)
from service.store.redis.capture import Keyring, SealBroken
from service.store.sql.adjudication_tables import adjudication_items
from service.store.sql.database import Database


def claim_for_judge(
    db: Database,
    places: Collection[Where],
    *,
    labeller: str,
    now: float,
    seconds: float,
    attempts: int,
    limit: int,
) -> list[str]:
    """Items that the judge has not labelled, held for so many seconds; each is tried `attempts` times."""
    wanted = (
        waiting(places, now, None)
        & ~labelled_by(labeller)
        & (adjudication_items.c.judge_attempts < attempts)
        & (adjudication_items.c.judge_until <= now)
    )
    with db.write() as connection:
        ids = list(
            connection.execute(
                queued_items(adjudication_items.c.item_id)
                .where(wanted)
                .limit(limit)
                .with_for_update(of=adjudication_items, skip_locked=True)
            ).scalars()
        )
        if ids:
            connection.execute(
                update(adjudication_items)
                .where(adjudication_items.c.item_id.in_(ids))
                .values(judge_attempts=adjudication_items.c.judge_attempts + 1, judge_until=now + seconds)
            )
    return ids


def open_for_judge(db: Database, keyring: Keyring, ids: Sequence[str]) -> list[BlindItem]:
    """Their texts; those that do not open are left out and logged. Who sends one away calls `note_judge`."""
    wanted = adjudication_items.c.item_id.in_(ids)
    try:
        return opened_items(db, keyring, wanted, limit=len(ids))
    except SealBroken:
        return []


def note_judge(db: Database, ids: Iterable[str], *, actor: str, now: float) -> None:
    """Write down that these texts go to a judge."""
    with db.write() as connection:
        note(connection, ids, actor=actor, action="judge", at=now)


def release_judged(db: Database, ids: Collection[str], *, untried: bool, until: float = 0.0) -> None:
    """Let others try these from `until` on; `untried` takes back the attempt, as of a judge that is away."""
    if not ids:
        return
    attempts = adjudication_items.c.judge_attempts
    with db.write() as connection:
        connection.execute(
            update(adjudication_items)
            .where(adjudication_items.c.item_id.in_(sorted(ids)))
            .values(judge_until=until, judge_attempts=attempts - 1 if untried else attempts)
        )
