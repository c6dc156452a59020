"""Reading what was said: labels by what the evaluator says, for findings; agreement and errors, for people.

An item that two people labelled counts once: as they say if they agree, as open if they do not. Skips of all
who saw it leave it open, one label beside a skip does not. The judge's labels are never in a finding: they
are a second instrument, measured against people where both exist.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import Connection, Select, String, bindparam, case, func, select

from service.decision.agreement import Agreement, agreement
from service.decision.correction import Cell, Labels
from service.store.labels.adjudication import Where
from service.store.labels.labelling import Said
from service.store.scored.evidence import ANY_VERSION, Place, Versions
from service.store.sql.adjudication_tables import adjudication_items, adjudication_labels, adjudication_texts
from service.store.sql.database import Database
from service.store.sql.schema import units

LabelsAt = Mapping[Place, Mapping[str, Labels]]
"""By place and evaluator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledItem:
    """One counted pair that somebody labelled."""

    id: str
    tier: str
    epoch: str
    evaluator: str
    version: str
    scored: Cell
    """What the evaluator says."""
    people: Mapping[str, Cell | None]
    """By labeller; None for a skip."""
    judges: Mapping[str, Cell | None]

    @property
    def told(self) -> list[Cell]:
        """What people say, without skips."""
        return [said for _, said in sorted(self.people.items()) if said is not None]

    @property
    def truth(self) -> Cell | None:
        """What people say of it together; None while it is open or nobody of them saw it."""
        told = set(self.told)
        return told.pop() if len(told) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCount:
    """One evaluator's queue on one tier."""

    tier: str
    epoch: str
    evaluator: str
    queued: int
    """Pairs drawn that count."""
    kept: int
    """Of these, those whose text is still there."""
    discordant: int
    """Of the drawn ones, those in which the evaluator says that the arms differ."""


def cell_of(said: Said, *, swapped: bool) -> Cell | None:
    """What a label says of baseline and candidate; None for a skip."""
    if said is Said.SKIP:
        return None
    a_failed, b_failed = said not in (Said.A, Said.BOTH), said not in (Said.B, Said.BOTH)
    return Cell(b_failed, a_failed) if swapped else Cell(a_failed, b_failed)


def labels_at(
    connection: Connection, model: str, places: Collection[Place], present: Versions = ANY_VERSION
) -> LabelsAt:
    """What people say of the counted pairs of these places; summed up by the database, at every verdict."""
    by_epoch = {(place.tier, place.epoch): place for place in places}
    asked = {"model": model, "epochs": sorted({epoch for _, epoch in by_epoch})}
    tables: defaultdict[tuple[Place, str], Counter[tuple[Cell, Cell]]] = defaultdict(Counter)
    open_: defaultdict[tuple[Place, str], Counter[Cell]] = defaultdict(Counter)
    twice: Counter[tuple[Place, str]] = Counter()
    for row in connection.execute(_SUMMED, asked):
        place = by_epoch.get((row.tier, row.epoch))
        if place is None or present.get(row.evaluator, row.version) != row.version:
            continue
        key, scored = (place, row.evaluator), Cell(bool(row.baseline_failed), bool(row.candidate_failed))
        truth = _agreed(row.first, row.last, swapped=bool(row.swapped))
        if truth is None:
            open_[key][scored] += row.pairs
        else:
            tables[key][scored, truth] += row.pairs
        if row.told > 1:
            twice[key] += row.pairs
    kappas = _kappas(connection, asked, by_epoch, present) if twice else {}
    found: dict[Place, dict[str, Labels]] = {place: {} for place in places}
    for place, name in sorted({*tables, *open_}):
        key = (place, name)
        found[place][name] = Labels(
            table=tables[key], open=open_[key], by_two=twice[key], kappa=kappas.get(key)
        )
    return found


def _agreed(first: str | None, last: str | None, *, swapped: bool) -> Cell | None:
    """What all who did not skip say; None where nobody is left, or they disagree."""
    return None if first is None or first != last else cell_of(Said(first), swapped=swapped)


def _kappas(
    connection: Connection,
    asked: Mapping[str, Any],
    by_epoch: Mapping[tuple[str, str], Place],
    present: Versions,
) -> dict[tuple[Place, str], float | None]:
    said: defaultdict[tuple[Place, str], list[tuple[str, str]]] = defaultdict(list)
    for row in connection.execute(_PAIRED, asked):
        place = by_epoch.get((row.tier, row.epoch))
        if place is not None and present.get(row.evaluator, row.version) == row.version:
            one, other = (
                str(cell_of(Said(each), swapped=bool(row.swapped))) for each in (row.one, row.other)
            )
            said[place, row.evaluator] += [(one, other)] * row.pairs
    return {key: agreement(pairs).kappa for key, pairs in said.items()}


def labels_of(items: Iterable[LabelledItem]) -> Labels:
    """Items of one evaluator on one tier as counts; those that only a judge labelled are none."""
    seen = [item for item in items if item.people]
    table = Counter((item.scored, item.truth) for item in seen if item.truth is not None)
    twice = [item for item in seen if len(item.told) > 1]
    pairs = [pair for item in twice for pair in combinations(map(str, item.told), 2)]
    return Labels(
        table={(said, truth): count for (said, truth), count in table.items() if truth is not None},
        open=Counter(item.scored for item in seen if item.truth is None),
        by_two=len(twice),
        kappa=agreement(pairs).kappa,
    )


def between_people(items: Sequence[LabelledItem]) -> dict[tuple[str, str], Agreement]:
    """Of every two people with items in common, skips apart."""
    said: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for item in items:
        told = sorted((name, cell) for name, cell in item.people.items() if cell is not None)
        for (first, one), (second, other) in combinations(told, 2):
            said[first, second].append((str(one), str(other)))
    return {names: agreement(pairs) for names, pairs in sorted(said.items())}


def judge_and_people(items: Sequence[LabelledItem]) -> Agreement:
    """Of judges with what people say together."""
    return agreement(
        (str(said), str(item.truth))
        for item in items
        for said in item.judges.values()
        if said is not None and item.truth is not None
    )


def labelled_items(
    connection: Connection,
    model: str,
    places: Collection[tuple[str, str]],
    present: Versions = ANY_VERSION,
) -> list[LabelledItem]:
    """Counted pairs with a label, of these (tier, epoch)."""
    columns = ("item_id", "tier", "epoch", "evaluator", "version", "baseline_failed", "candidate_failed")
    rows = connection.execute(
        select(
            *(adjudication_items.c[name] for name in (*columns, "swapped")),
            *(adjudication_labels.c[name] for name in ("labeller", "judge", "said")),
        )
        .select_from(
            adjudication_labels.join(
                adjudication_items, adjudication_items.c.item_id == adjudication_labels.c.item_id
            ).join(units, units.c.unit_id == adjudication_items.c.unit_id)
        )
        .where(
            adjudication_items.c.model == model,
            adjudication_items.c.epoch.in_(sorted({epoch for _, epoch in places})),
            units.c.counted,
        )
        .order_by(adjudication_items.c.item_id, adjudication_labels.c.labeller)
    ).all()
    grouped: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        if (row.tier, row.epoch) in places and present.get(row.evaluator, row.version) == row.version:
            grouped[row.item_id].append(row)
    return [
        LabelledItem(
            id=name,
            tier=group[0].tier,
            epoch=group[0].epoch,
            evaluator=group[0].evaluator,
            version=group[0].version,
            scored=Cell(bool(group[0].baseline_failed), bool(group[0].candidate_failed)),
            people=_voices(group, judge=False),
            judges=_voices(group, judge=True),
        )
        for name, group in grouped.items()
    ]


def _voices(rows: Iterable[Any], *, judge: bool) -> dict[str, Cell | None]:
    return {
        row.labeller: cell_of(Said(row.said), swapped=bool(row.swapped))
        for row in rows
        if bool(row.judge) is judge
    }


def queue_counts(db: Database, places: Collection[Where]) -> list[QueueCount]:
    """What was drawn of the counted pairs of these places, by tier and evaluator."""
    wanted = {(place.model, place.tier, place.epoch) for place in places}
    items = adjudication_items.c
    differs = items.baseline_failed != items.candidate_failed
    columns = (items.model, items.tier, items.epoch, items.evaluator)
    with db.read() as connection:
        rows = connection.execute(
            select(
                *columns,
                differs.label("differs"),
                func.count().label("queued"),
                func.count(adjudication_texts.c.item_id).label("kept"),
            )
            .select_from(
                adjudication_items.join(units, units.c.unit_id == items.unit_id).outerjoin(
                    adjudication_texts, adjudication_texts.c.item_id == items.item_id
                )
            )
            .where(
                units.c.counted | units.c.waits, items.model.in_(sorted({model for model, _, _ in wanted}))
            )
            .group_by(*columns, differs)
        ).all()
    counted: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        if (row.model, row.tier, row.epoch) not in wanted:
            continue
        sums = counted.setdefault((row.tier, row.epoch, row.evaluator), [0, 0, 0])
        sums[0] += row.queued
        sums[1] += row.kept
        sums[2] += row.queued if row.differs else 0
    return [
        QueueCount(
            tier=tier, epoch=epoch, evaluator=evaluator, queued=queued, kept=kept, discordant=discordant
        )
        for (tier, epoch, evaluator), (queued, kept, discordant) in sorted(counted.items())
    ]


_OF_ITEM = tuple(
    adjudication_items.c[name]
    for name in ("tier", "epoch", "evaluator", "version", "baseline_failed", "candidate_failed", "swapped")
)
_COUNTED = (
    adjudication_items.c.model == bindparam("model", type_=String),
    adjudication_items.c.epoch.in_(bindparam("epochs", expanding=True)),
    units.c.counted,
)
_DECIDED = case((adjudication_labels.c.said != Said.SKIP.value, adjudication_labels.c.said))
_EACH = (
    select(
        *_OF_ITEM,
        func.count(_DECIDED).label("told"),
        func.min(_DECIDED).label("first"),
        func.max(_DECIDED).label("last"),
    )
    .select_from(
        adjudication_labels.join(
            adjudication_items, adjudication_items.c.item_id == adjudication_labels.c.item_id
        ).join(units, units.c.unit_id == adjudication_items.c.unit_id)
    )
    .where(*_COUNTED, ~adjudication_labels.c.judge)
    .group_by(adjudication_items.c.item_id, *_OF_ITEM)
    .subquery()
)
_SUMMED: Select[Any] = select(*_EACH.c, func.count().label("pairs")).group_by(*_EACH.c)
_ONE, _OTHER = adjudication_labels.alias("one"), adjudication_labels.alias("other")
_PAIRED: Select[Any] = (
    select(*_OF_ITEM, _ONE.c.said.label("one"), _OTHER.c.said.label("other"), func.count().label("pairs"))
    .select_from(
        _ONE.join(_OTHER, (_OTHER.c.item_id == _ONE.c.item_id) & (_ONE.c.labeller < _OTHER.c.labeller))
        .join(adjudication_items, adjudication_items.c.item_id == _ONE.c.item_id)
        .join(units, units.c.unit_id == adjudication_items.c.unit_id)
    )
    .where(
        *_COUNTED,
        *(~each.c.judge for each in (_ONE, _OTHER)),
        *(each.c.said != Said.SKIP.value for each in (_ONE, _OTHER)),
    )
    .group_by(*_OF_ITEM, _ONE.c.said, _OTHER.c.said)
)
# Made once: making a statement costs more than asking it.
