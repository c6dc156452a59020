"""The queue of pairs that people judge, blind, and what they say of them.

Which pairs are drawn depends on what the evaluator says and on a hash of the pair's name: discordant ones at one
chance, concordant ones at another, both written down with the item. An item's id is a hash as well, and items
are given out in its order, so that at any moment those labelled are a random part of those drawn. Side `a` is
the baseline or the candidate by a coin of its own, tossed when the item is queued; nothing that leaves here,
but the counts, tells which.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, exists, func, or_, select, update

from service.store.adjudication_tables import (
    adjudication_access,
    adjudication_items,
    adjudication_labels,
    adjudication_texts,
)
from service.store.capture import Keyring, SealBroken
from service.store.database import Database
from service.store.kept_text import AnswerText, PairText, Turn, open_text
from service.store.schema import key_of, units

log = logging.getLogger("tiergate.adjudication")

MOST_TRIED = 16
"""Items whose text does not open, before the queue says that none does."""
JUDGE = "judge:"
"""Begins the name of a labeller that is a language model."""


class Said(StrEnum):
    """Which sides pass by the rubric."""

    A = "a"
    B = "b"
    BOTH = "both"
    NEITHER = "neither"
    SKIP = "skip"
    """Cannot be told."""


class Where(NamedTuple):
    """Whose evidence items belong to."""

    model: str
    tier: str
    epoch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A pair drawn for judgement, with its text sealed."""

    unit_id: str
    item: int
    model: str
    tier: str
    epoch: str
    evaluator: str
    version: str
    baseline_failed: bool
    candidate_failed: bool
    chance: float
    """Of being drawn, by what the evaluator says."""
    by_two: bool
    sealed: bytes
    queued_at: float
    """Unix seconds."""
    expires_at: float
    """When its text goes."""

    @property
    def id(self) -> str:
        return item_id(self.unit_id, self.item)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindItem:
    """What a labeller is shown."""

    id: str
    model: str
    """The name clients send."""
    evaluator: str
    turns: tuple[Turn, ...]
    asked: str
    a: AnswerText
    b: AnswerText
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one labeller says of one item."""

    item_id: str
    labeller: str
    said: Said
    at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A labeller who said something else before."""

    item_id: str
    labeller: str
    had: Said
    said: Said


@dataclass(slots=True, kw_only=True)
class Recorded:
    """What became of labels."""

    recorded: int = 0
    replaced: int = 0
    unchanged: int = 0
    """Said before, in the same words."""
    conflicts: list[Conflict] = field(default_factory=list)
    """Kept as they were."""
    unknown: list[str] = field(default_factory=list)
    """Items that are not in the queue."""


def item_id(unit_id: str, item: int) -> str:
    """Of one pair; also its place in the random order of labelling."""
    return key_of("adjudication item", unit_id, str(item))


def lot(purpose: str, unit_id: str, item: int) -> float:
    """A number in [0, 1) that is the same whoever draws it: which pairs are drawn is no accident of a run."""
    return int(key_of("adjudication", purpose, unit_id, str(item))[:13], 16) / 16**13


def queue(db: Database, connection: Connection, drawn: Sequence[Drawn]) -> None:
    """Add what is not there yet, in the transaction that records the units."""
    if not drawn:
        return
    names = ("unit_id", "item", "model", "tier", "epoch", "evaluator", "version")
    more = ("baseline_failed", "candidate_failed", "chance", "by_two", "queued_at")
    connection.execute(
        db.insert(adjudication_items).on_conflict_do_nothing(),
        [
            {
                "item_id": each.id,
                **{name: getattr(each, name) for name in (*names, *more)},
                "swapped": secrets.randbits(1) == 1,
                "judge_attempts": 0,
                "judge_until": 0.0,
            }
            for each in drawn
        ],
    )
    connection.execute(
        db.insert(adjudication_texts).on_conflict_do_nothing(),
        [{"item_id": each.id, "expires_at": each.expires_at, "sealed": each.sealed} for each in drawn],
    )


def next_item(
    db: Database,
    keyring: Keyring,
    places: Collection[Where],
    *,
    labeller: str,
    actor: str,
    now: float,
    evaluator: str | None = None,
) -> BlindItem | None:
    """The next that this labeller is to judge, None when there is none. Writes down that its text was seen.

    Raises SealBroken when there are some and none of them opens.
    """
    wanted = _waiting(places, now, evaluator) & ~_labelled_by(labeller) & (_people() < _people_wanted())
    return next(iter(_opened(db, keyring, wanted, actor=actor, action="next", now=now, limit=1)), None)


def export_items(
    db: Database,
    keyring: Keyring,
    places: Collection[Where],
    *,
    actor: str,
    now: float,
    after: str = "",
    limit: int = 20,
    evaluator: str | None = None,
    labeller: str | None = None,
) -> list[BlindItem]:
    """Items beyond `after`, in the order of labelling; of a `labeller`, those still to be judged by them."""
    wanted = _waiting(places, now, evaluator) & (adjudication_items.c.item_id > after)
    if labeller is not None:
        wanted &= ~_labelled_by(labeller) & (_people() < _people_wanted())
    return _opened(db, keyring, wanted, actor=actor, action="export", now=now, limit=limit)


def record_labels(
    db: Database, given: Iterable[Given], *, token: str, judge: bool = False, replace: bool = False
) -> Recorded:
    """Add what was said; a labeller who said something else before is a conflict unless `replace`."""
    told = Recorded()
    listed = {(each.item_id, each.labeller): each for each in given}
    with db.write() as connection:
        ids = sorted({each.item_id for each in listed.values()})
        known = set(
            connection.execute(
                select(adjudication_items.c.item_id).where(adjudication_items.c.item_id.in_(ids))
            ).scalars()
        )
        had = {
            (row.item_id, row.labeller): Said(row.said)
            for row in connection.execute(
                select(adjudication_labels).where(adjudication_labels.c.item_id.in_(ids))
            )
        }
        for key in sorted(listed):
            each, before = listed[key], had.get(key)
            if each.item_id not in known:
                told.unknown.append(each.item_id)
            elif before is None:
                told.recorded += 1
                _write(db, connection, each, token=token, judge=judge, action="label")
            elif before is each.said:
                told.unchanged += 1
            elif replace:
                told.replaced += 1
                _write(db, connection, each, token=token, judge=judge, action="relabel")
            else:
                told.conflicts.append(
                    Conflict(item_id=each.item_id, labeller=each.labeller, had=before, said=each.said)
                )
    return told


def _write(
    db: Database, connection: Connection, given: Given, *, token: str, judge: bool, action: str
) -> None:
    insert = db.insert(adjudication_labels).values(
        item_id=given.item_id,
        labeller=given.labeller,
        judge=judge,
        said=given.said.value,
        at=given.at,
        token=token,
    )
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[adjudication_labels.c.item_id, adjudication_labels.c.labeller],
            set_={name: insert.excluded[name] for name in ("judge", "said", "at", "token")},
        )
    )
    note(connection, [given.item_id], actor=token, action=action, at=given.at, detail=_told(given))


def _told(given: Given) -> str:
    return f"{given.labeller}: {given.said.value}"


def note(
    connection: Connection, ids: Iterable[str], *, actor: str, action: str, at: float, detail: str = ""
) -> None:
    """Write down who did what with these items."""
    rows = [
        {"at": at, "actor": actor, "action": action, "item_id": each, "detail": detail} for each in ids
    ]
    if rows:
        connection.execute(adjudication_access.insert(), rows)


def expire_texts(db: Database, *, now: float) -> int:
    """Delete the texts whose retention has ended; how many. What was said of them stays."""
    with db.write() as connection:
        return connection.execute(
            delete(adjudication_texts).where(adjudication_texts.c.expires_at <= now)
        ).rowcount


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
        _waiting(places, now, None)
        & ~_labelled_by(labeller)
        & (adjudication_items.c.judge_attempts < attempts)
        & (adjudication_items.c.judge_until <= now)
    )
    with db.write() as connection:
        ids = list(
            connection.execute(
                _items(adjudication_items.c.item_id).where(wanted).limit(limit).with_for_update(
                    of=adjudication_items, skip_locked=True
                )
            ).scalars()
        )
        if ids:
            connection.execute(
                update(adjudication_items)
                .where(adjudication_items.c.item_id.in_(ids))
                .values(
                    judge_attempts=adjudication_items.c.judge_attempts + 1, judge_until=now + seconds
                )
            )
    return ids


def open_for_judge(
    db: Database, keyring: Keyring, ids: Sequence[str], *, actor: str, now: float
) -> list[BlindItem]:
    """Their texts, for the judge; those that do not open are left out and logged."""
    wanted = adjudication_items.c.item_id.in_(ids)
    try:
        return _opened(db, keyring, wanted, actor=actor, action="judge", now=now, limit=len(ids))
    except SealBroken:
        return []


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


def _items(*columns: Any) -> Select[Any]:
    """Queued pairs with their texts and units, in the order of labelling."""
    return (
        select(*columns)
        .select_from(
            adjudication_items.join(
                adjudication_texts, adjudication_texts.c.item_id == adjudication_items.c.item_id
            ).join(units, units.c.unit_id == adjudication_items.c.unit_id)
        )
        .order_by(adjudication_items.c.item_id)
    )


def _waiting(places: Collection[Where], now: float, evaluator: str | None) -> ColumnElement[bool]:
    """Items of these places whose text is still there, of units that count or will."""
    found = or_(
        *(
            and_(
                adjudication_items.c.model == place.model,
                adjudication_items.c.tier == place.tier,
                adjudication_items.c.epoch == place.epoch,
            )
            for place in sorted(places)
        )
    )
    wanted = found & (adjudication_texts.c.expires_at > now) & (units.c.counted | units.c.waits)
    return wanted if evaluator is None else wanted & (adjudication_items.c.evaluator == evaluator)


def _labelled_by(labeller: str) -> ColumnElement[bool]:
    return exists().where(
        adjudication_labels.c.item_id == adjudication_items.c.item_id,
        adjudication_labels.c.labeller == labeller,
    )


def _people() -> ColumnElement[int]:
    """How many people labelled an item."""
    return (
        select(func.count())
        .select_from(adjudication_labels)
        .where(
            adjudication_labels.c.item_id == adjudication_items.c.item_id, ~adjudication_labels.c.judge
        )
        .correlate(adjudication_items)
        .scalar_subquery()
    )


def _people_wanted() -> ColumnElement[int]:
    return case((adjudication_items.c.by_two, 2), else_=1)


def _opened(
    db: Database,
    keyring: Keyring,
    wanted: ColumnElement[bool],
    *,
    actor: str,
    action: str,
    now: float,
    limit: int,
) -> list[BlindItem]:
    """The first of them that open, each written down as seen. SealBroken when there are some and none opens."""
    columns = (
        *(adjudication_items.c[name] for name in ("item_id", "model", "evaluator", "swapped")),
        adjudication_texts.c.expires_at,
        adjudication_texts.c.sealed,
    )
    found: list[BlindItem] = []
    broken: SealBroken | None = None
    with db.write() as connection:
        rows = connection.execute(_items(*columns).where(wanted).limit(limit + MOST_TRIED))
        for row in rows:
            if len(found) == limit:
                break
            try:
                text = open_text(row.item_id, row.sealed, keyring)
            except SealBroken as error:
                log.error("%s", error)
                broken = error
                continue
            found.append(_blind(row, text))
        note(connection, [each.id for each in found], actor=actor, action=action, at=now)
    if broken is not None and not found:
        raise broken
    return found


def _blind(row: Any, text: PairText) -> BlindItem:
    first, second = text.baseline, text.candidate
    return BlindItem(
        id=row.item_id,
        model=row.model,
        evaluator=row.evaluator,
        turns=text.turns,
        asked=text.asked,
        a=second if row.swapped else first,
        b=first if row.swapped else second,
        expires_at=row.expires_at,
    )
