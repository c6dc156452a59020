"""The queue of pairs that people judge, blind.

Which pairs are drawn depends on what the evaluator says and on a hash of the pair's name: discordant ones at
one chance, concordant ones at another, both written down with the item. An item's id is a hash as well, and
items are given out in its order, so that at any moment those labelled are a random part of those drawn. Side
`a` is the baseline or the candidate by a coin of its own, tossed when the item is queued; nothing that leaves
here, but the counts, tells which.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, exists, false, func, or_, select

from service.store.labels.access_log import LOOK, note
from service.store.labels.kept_text import AnswerText, PairText, Turn, open_text
from service.store.redis.capture import Keyring, SealBroken
from service.store.sql.adjudication_tables import (
    adjudication_access,
    adjudication_items,
    adjudication_labels,
    adjudication_texts,
)
from service.store.sql.database import Database
from service.store.sql.schema import key_of, units

log = logging.getLogger("tiergate.adjudication")

PAGE = 16
"""Items that are read at a time, besides those asked for."""
MOST_TRIED = 2000
"""Items whose text does not open, before the queue says that none does: as many as a lost key may leave."""


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
    item: str | None = None,
) -> BlindItem | None:
    """The next that this labeller is to judge, None when there is none; of an `item`, that one or none.
    Writes down that its text was seen.

    Raises SealBroken when there are some and none of them opens.
    """
    wanted = to_judge(places, now, evaluator, labeller=labeller, actor=actor)
    if item is not None:
        wanted &= adjudication_items.c.item_id == item
    return next(iter(opened_items(db, keyring, wanted, actor=actor, action="next", now=now, limit=1)), None)


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
    wanted: ColumnElement[bool] = waiting(places, now, evaluator) & ~seen_openly(actor)
    if labeller is not None:
        wanted = to_judge(places, now, evaluator, labeller=labeller, actor=actor)
    wanted &= adjudication_items.c.item_id > after
    return opened_items(db, keyring, wanted, actor=actor, action="export", now=now, limit=limit)


def expire_texts(db: Database, *, now: float) -> int:
    """Delete the texts whose retention has ended; how many. What was said of them stays."""
    with db.write() as connection:
        return connection.execute(
            delete(adjudication_texts).where(adjudication_texts.c.expires_at <= now)
        ).rowcount


def queued_items(*columns: Any) -> Select[Any]:
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


def waiting(places: Collection[Where], now: float, evaluator: str | None) -> ColumnElement[bool]:
    """Items of these places whose text is still there, of units that count or will."""
    found = or_(
        false(),
        *(
            and_(
                adjudication_items.c.model == place.model,
                adjudication_items.c.tier == place.tier,
                adjudication_items.c.epoch == place.epoch,
            )
            for place in sorted(places)
        ),
    )
    wanted = found & (adjudication_texts.c.expires_at > now) & (units.c.counted | units.c.waits)
    return wanted if evaluator is None else wanted & (adjudication_items.c.evaluator == evaluator)


def to_judge(
    places: Collection[Where], now: float, evaluator: str | None, *, labeller: str, actor: str
) -> ColumnElement[bool]:
    """Items that this labeller, who shows this token, may judge blind, and that need one more judgement."""
    open_ = waiting(places, now, evaluator) & ~seen_openly(actor)
    return open_ & ~labelled_by(labeller) & (_people() < _people_wanted())


def left_to_judge(
    db: Database,
    places: Collection[Where],
    *,
    labeller: str,
    actor: str,
    now: float,
    evaluator: str | None = None,
) -> int:
    """How many there are of these."""
    wanted = to_judge(places, now, evaluator, labeller=labeller, actor=actor)
    counted = queued_items(adjudication_items.c.item_id).where(wanted).order_by(None).subquery()
    with db.read() as connection:
        return int(connection.execute(select(func.count()).select_from(counted)).scalar_one())


def seen_openly(actor: str) -> ColumnElement[bool]:
    """Those whose sides this token was shown by name: what it says of them is not blind any more."""
    return exists().where(
        adjudication_access.c.item_id == adjudication_items.c.item_id,
        adjudication_access.c.actor == actor,
        adjudication_access.c.action == LOOK,
    )


def labelled_by(labeller: str) -> ColumnElement[bool]:
    return exists().where(
        adjudication_labels.c.item_id == adjudication_items.c.item_id,
        adjudication_labels.c.labeller == labeller,
    )


def _people() -> ColumnElement[int]:
    """How many people labelled an item."""
    return (
        select(func.count())
        .select_from(adjudication_labels)
        .where(adjudication_labels.c.item_id == adjudication_items.c.item_id, ~adjudication_labels.c.judge)
        .correlate(adjudication_items)
        .scalar_subquery()
    )


def _people_wanted() -> ColumnElement[int]:
    return case((adjudication_items.c.by_two, 2), else_=1)


def opened_items(
    db: Database,
    keyring: Keyring,
    wanted: ColumnElement[bool],
    *,
    limit: int,
    actor: str = "",
    action: str = "",
    now: float = 0.0,
) -> list[BlindItem]:
    """The first of them that open, written down as seen if by an `action`. SealBroken when none opens."""
    columns = (
        *(adjudication_items.c[name] for name in ("item_id", "model", "evaluator", "swapped")),
        adjudication_texts.c.expires_at,
        adjudication_texts.c.sealed,
    )
    found: list[BlindItem] = []
    broken: list[SealBroken] = []
    with db.write() as connection:
        for row in _paged(connection, queued_items(*columns).where(wanted), size=limit + PAGE):
            if len(found) == limit or len(broken) == MOST_TRIED:
                break
            try:
                text = open_text(row.item_id, row.sealed, keyring)
            except SealBroken as error:
                broken.append(error)
                continue
            found.append(_blind(row, text))
        if action:
            note(connection, [each.id for each in found], actor=actor, action=action, at=now)
    if broken:
        log.error("%s (%d texts like this one, passed over)", broken[0], len(broken))
    if broken and not found:
        raise broken[0]
    return found


def _paged(connection: Connection, rows: Select[Any], *, size: int) -> Iterator[Any]:
    """Items in their order, some at a time: their texts are large, and mostly the first is what is wanted."""
    after = ""
    while page := connection.execute(rows.where(adjudication_items.c.item_id > after).limit(size)).all():
        yield from page
        if len(page) < size:
            return
        after = page[-1].item_id


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
