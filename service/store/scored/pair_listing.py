"""Pairs in which one arm failed and the other did not, as people look through them: filtered, page by page.

What may be filtered by is counted over the latest `MOST_LISTED` of them, so that a page costs the same
whatever the number of pairs. Labels and one-sentence reasons; texts are `pair_texts`' to open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, case, func, or_, select, true

from service.store.labels.adjudication import item_id
from service.store.scored.units import Arm, PairOutcome, PairRow
from service.store.sql.adjudication_tables import adjudication_texts
from service.store.sql.corpus_tables import kept_answers
from service.store.sql.database import Database
from service.store.sql.schema import pairs, units

MOST_LISTED = 20_000
"""The latest of a tier in an epoch; older ones are in the counts of the verdict, and not in the list."""


class Way(StrEnum):
    """Which arm failed."""

    HARM = "harm"
    """The candidate alone."""
    BENEFIT = "benefit"
    """The baseline alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which pairs are asked for; an empty filter leaves all in."""

    model: str
    tier: str
    epoch: str
    evaluators: tuple[str, ...]
    """Those that are listed unless one is chosen; none = all."""
    evaluator: str = ""
    label: str = ""
    """Of the answer that failed."""
    stratum: str = ""
    way: str = ""
    """A Way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPair:
    """One pair, where it belongs, and whether its texts are still there."""

    unit_id: str
    capture_id: str
    conversation: str
    model: str
    tier: str
    epoch: str
    evaluator: str
    version: str
    stratum: str
    counted: bool
    waits: bool
    at: float
    """Unix seconds."""
    pair: PairRow
    kept_until: float | None = None
    """When its texts go; None when there are none."""

    @property
    def id(self) -> str:
        """Of its page. Not the id under which it is queued: that one is known to who labels it blind."""
        return f"{self.unit_id}.{self.pair.item}"

    @property
    def item_id(self) -> str:
        """Under which it is queued, if it is."""
        return item_id(self.unit_id, self.pair.item)

    @property
    def way(self) -> Way:
        return Way.HARM if self.pair.harm else Way.BENEFIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of pairs, newest first, and what there is to filter by."""

    pairs: tuple[ListedPair, ...]
    amount: int
    """Of all pages."""
    is_cut: bool
    """Whether there are older ones than are listed."""
    evaluators: Mapping[str, int]
    """Pairs by each filter's word, the other filters applied; the most frequent first."""
    labels: Mapping[str, int]
    strata: Mapping[str, int]
    ways: Mapping[str, int]


def list_pairs(db: Database, wanted: Wanted, *, page: int, size: int, now: float) -> Listing:
    """A page, counted from 1; ValueError for one below. Of a page beyond the last there are no pairs."""
    if page < 1 or size < 1:
        raise ValueError(f"page and size are at least 1, got {page} and {size}")
    with db.read() as connection:
        groups = connection.execute(_groups(wanted)).all()
        matching = [group for group in groups if _matches(wanted, group)]
        amount = sum(group.amount for group in matching)
        listed: Sequence[ListedPair] = ()
        if (page - 1) * size < amount:
            rows = connection.execute(
                _rows(_of(wanted) & _chosen(wanted))
                .order_by(units.c.at.desc(), units.c.unit_id, pairs.c.item)
                .limit(min(size, amount - (page - 1) * size))
                .offset((page - 1) * size)
            ).all()
            listed = _with_texts(connection, [_listed(row) for row in rows], now)
    return Listing(
        pairs=tuple(listed),
        amount=amount,
        is_cut=sum(group.amount for group in groups) >= MOST_LISTED,
        evaluators=_facet(wanted, groups, "evaluator"),
        labels=_facet(wanted, groups, "label"),
        strata=_facet(wanted, groups, "stratum"),
        ways=_facet(wanted, groups, "way"),
    )


def find_pair(db: Database, unit_id: str, item: int, *, now: float) -> ListedPair | None:
    """The scored pair of a candidate of that name, whatever its epoch and outcome."""
    with db.read() as connection:
        row = connection.execute(
            _rows(
                (units.c.unit_id == unit_id)
                & (pairs.c.item == item)
                & (units.c.arm == Arm.CANDIDATE.value)
                & (pairs.c.outcome == PairOutcome.SCORED.value)
            )
        ).one_or_none()
        return None if row is None else _with_texts(connection, [_listed(row)], now)[0]


def beside(db: Database, wanted: Wanted, pair: ListedPair) -> tuple[str | None, str | None]:
    """Ids of the pages before and after a pair's in its list: a newer and an older one."""
    older = or_(
        units.c.at < pair.at,
        and_(units.c.at == pair.at, units.c.unit_id > pair.unit_id),
        and_(units.c.at == pair.at, units.c.unit_id == pair.unit_id, pairs.c.item > pair.pair.item),
    )
    newer = or_(
        units.c.at > pair.at,
        and_(units.c.at == pair.at, units.c.unit_id < pair.unit_id),
        and_(units.c.at == pair.at, units.c.unit_id == pair.unit_id, pairs.c.item < pair.pair.item),
    )
    down = (units.c.at.desc(), units.c.unit_id, pairs.c.item)
    up = (units.c.at, units.c.unit_id.desc(), pairs.c.item.desc())
    rows = select(units.c.unit_id, pairs.c.item).join(pairs, pairs.c.unit_id == units.c.unit_id)
    within = _of(wanted) & _chosen(wanted)
    with db.read() as connection:
        before = connection.execute(rows.where(within & newer).order_by(*up).limit(1)).one_or_none()
        after = connection.execute(rows.where(within & older).order_by(*down).limit(1)).one_or_none()
    return _page_of(before), _page_of(after)


def _page_of(row: Any) -> str | None:
    return None if row is None else f"{row.unit_id}.{row.item}"


_LABEL = case((pairs.c.baseline_passed, pairs.c.candidate_label), else_=pairs.c.baseline_label)
_WAY = case((pairs.c.baseline_passed, Way.HARM.value), else_=Way.BENEFIT.value)


def _of(wanted: Wanted) -> ColumnElement[bool]:
    """What is listed before any filter."""
    found = (
        (units.c.model == wanted.model)
        & (units.c.tier == wanted.tier)
        & (units.c.arm == Arm.CANDIDATE.value)
        & units.c.discordant
        & (units.c.epoch == wanted.epoch)
        & (pairs.c.outcome == PairOutcome.SCORED.value)
        & (pairs.c.baseline_passed != pairs.c.candidate_passed)
    )
    return found & units.c.evaluator.in_(sorted(wanted.evaluators)) if wanted.evaluators else found


def _chosen(wanted: Wanted) -> ColumnElement[bool]:
    filters = (
        (units.c.evaluator, wanted.evaluator),
        (_LABEL, wanted.label),
        (units.c.stratum, wanted.stratum),
        (_WAY, wanted.way),
    )
    return and_(true(), *(column == word for column, word in filters if word))


def _groups(wanted: Wanted) -> Select[Any]:
    latest = (
        select(
            units.c.evaluator.label("evaluator"),
            units.c.stratum.label("stratum"),
            _LABEL.label("label"),
            _WAY.label("way"),
        )
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .where(_of(wanted))
        .order_by(units.c.at.desc(), units.c.unit_id, pairs.c.item)
        .limit(MOST_LISTED)
        .subquery()
    )
    return select(*latest.c, func.count().label("amount")).group_by(*latest.c)


_FILTERS = ("evaluator", "label", "stratum", "way")


def _matches(wanted: Wanted, group: Row[Any], apart: str = "") -> bool:
    return all(
        not getattr(wanted, name) or getattr(wanted, name) == getattr(group, name)
        for name in _FILTERS
        if name != apart
    )


def _facet(wanted: Wanted, groups: Iterable[Row[Any]], name: str) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for group in groups:
        if _matches(wanted, group, apart=name):
            counted[getattr(group, name)] += group.amount
    return dict(sorted(counted.items(), key=lambda each: (-each[1], each[0])))


_OF_UNIT = tuple(each.name for each in fields(ListedPair) if each.name in units.c)
_OF_PAIR = tuple(column.name for column in pairs.columns if column.name != "unit_id")


def _rows(where: ColumnElement[bool]) -> Select[Any]:
    return (
        select(*(units.c[name] for name in _OF_UNIT), *(pairs.c[name] for name in _OF_PAIR))
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .where(where)
    )


def _listed(row: Row[Any]) -> ListedPair:
    return ListedPair(
        **{name: getattr(row, name) for name in _OF_UNIT},
        pair=PairRow(**{name: getattr(row, name) for name in _OF_PAIR}),
    )


def _with_texts(connection: Connection, listed: Sequence[ListedPair], now: float) -> list[ListedPair]:
    """The pairs with the time until which their texts are there, in the queue or with the kept answers."""
    queued = _ends(connection, adjudication_texts, "item_id", {each.item_id for each in listed}, now)
    kept = _ends(connection, kept_answers, "capture_id", {each.capture_id for each in listed}, now)
    return [replace(pair, kept_until=queued.get(pair.item_id, kept.get(pair.capture_id))) for pair in listed]


def _ends(
    connection: Connection, table: Any, key: str, wanted: Collection[str], now: float
) -> dict[str, float]:
    rows = connection.execute(
        select(table.c[key], table.c.expires_at).where(
            table.c[key].in_(sorted(wanted)), table.c.expires_at > now
        )
    )
    return {row[0]: float(row[1]) for row in rows}
