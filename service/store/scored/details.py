"""Where the answers of pairs differ, added up by name: the fields of a schema, lengths, ends.

A request chooses the names of its schema, and could choose new ones each time: of a tier, an epoch and an
evaluator `MOST_NAMES` are told apart, and the rest is `OTHERS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, and_, or_, select

from evaluators.score import LONGEST_NAME
from service.store.scored.evidence import Place
from service.store.scored.units import Arm, Unit
from service.store.sql.database import Database
from service.store.sql.detail_tables import pair_details

MOST_NAMES = 300
OTHERS = "(others)"


class Scope(NamedTuple):
    """Whose details."""

    model: str
    tier: str
    arm: str
    epoch: str
    evaluator: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDetail:
    """How often each kind was seen of one name, by arm."""

    name: str
    candidate: Mapping[str, int]
    control: Mapping[str, int]


_known: WeakKeyDictionary[Database, dict[Scope, set[str]]] = WeakKeyDictionary()
"""Names that are in the table, as far as this process knows: mostly all, after its first pairs."""


def detail_rows(db: Database, connection: Connection, units: Iterable[Unit]) -> list[dict[str, object]]:
    """What the units add to the table, in the order of its key."""
    found: Counter[tuple[Scope, str, str]] = Counter()
    for unit in units:
        scope = Scope(*(getattr(unit, name) for name in Scope._fields))
        for row in unit.rows:
            for name, kind, amount in row.details:
                found[scope, _storable(name), _storable(kind)] += amount
    names: dict[Scope, set[str]] = {}
    for scope, name, _ in found:
        names.setdefault(scope, set()).add(name)
    kept = {scope: _kept(db, connection, scope, wanted) for scope, wanted in names.items()}
    rows: Counter[tuple[Scope, str, str]] = Counter()
    for (scope, name, kind), amount in found.items():
        rows[scope, name if name in kept[scope] else OTHERS, kind] += amount
    return [
        {**scope._asdict(), "name": name, "kind": kind, "amount": amount}
        for (scope, name, kind), amount in sorted(rows.items())
    ]


def _storable(name: str) -> str:
    """Packages of others name their classes as they like."""
    return name[:LONGEST_NAME].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _kept(db: Database, connection: Connection, scope: Scope, wanted: set[str]) -> set[str]:
    known = _known.setdefault(db, {}).setdefault(scope, set())
    if wanted <= known:
        return known
    of_scope = and_(*(pair_details.c[name] == value for name, value in scope._asdict().items()))
    known |= set(connection.execute(select(pair_details.c.name).distinct().where(of_scope)).scalars())
    room = MOST_NAMES - len(known)
    return known | set(sorted(wanted - known)[: max(0, room)])


def read_details(
    db: Database, model: str, *, candidate: Place, control: Place, evaluator: str, version: str
) -> Sequence[NamedDetail]:
    """Every name of one evaluator, the most counted first; both arms, since what the control says of the
    baseline against itself is what the candidate is to be read beside."""
    table = pair_details.c
    of_arm = (
        and_(table.tier == place.tier, table.arm == place.arm, table.epoch == place.epoch)
        for place in (candidate, control)
    )
    where = and_(table.model == model, table.evaluator == evaluator, table.version == version, or_(*of_arm))
    with db.read() as connection:
        rows = connection.execute(select(table.name, table.arm, table.kind, table.amount).where(where)).all()
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for name, arm, kind, amount in rows:
        counts.setdefault(name, {each.value: {} for each in Arm})[arm][kind] = int(amount)
    found = [
        NamedDetail(name=name, candidate=arms[Arm.CANDIDATE.value], control=arms[Arm.CONTROL.value])
        for name, arms in counts.items()
    ]
    return sorted(found, key=lambda each: (-sum(each.candidate.values()), each.name))
