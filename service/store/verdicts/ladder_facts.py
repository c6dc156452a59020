"""What is fixed, decided, measured and seen of one model, apart from its evidence, read by one statement.

A dozen tables of a few rows each: asked one by one, a verdict would wait for the asking. Of two more it tells
whether there is anything to ask them. Every member of the
union has the columns of `_Fact`, and says in `what` which it is.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    Double,
    FromClause,
    Select,
    String,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from service.decision.evidence import Shown
from service.decision.policy import Gate
from service.fleet import Route
from service.store.decided.approvals import Approval
from service.store.decided.holds import Hold, HoldKind
from service.store.decided.interventions import Intervention, Kind
from service.store.redis.capture import model_mark
from service.store.redis.counters import Count, ledger_key, split_ledger_key
from service.store.scored.leases import MOST_AWAITED, State
from service.store.scored.units import Arm
from service.store.sql.adjudication_tables import adjudication_labels
from service.store.sql.schema import (
    approvals,
    captures,
    epoch_plans,
    epoch_starts,
    epochs,
    holds,
    interventions,
    ledger_counters,
    measurements,
    routes,
)
from service.store.sql.tally_tables import takings, tallies, traffic_before
from service.store.verdicts.epochs import Epochs
from service.store.verdicts.measurements import Measurement
from service.store.verdicts.traffic_since import OTHERS
from service.strata import TENANT

MOST_TENANTS = 50
"""Tenants that are told apart where coverage is concerned: no more can hold 2 % of the traffic each."""


class _Fact(NamedTuple):
    """One row of the union; what a member has no use for is null."""

    what: str
    tier: str
    epoch: str
    name: str
    whole: int | None
    at: float | None
    until: float | None
    text: str
    by: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderFacts:
    """Of one model, at one moment."""

    route: Route | None
    """The one that was issued last; None before the first change."""
    approvals: Mapping[str, Approval]
    """By tier."""
    holds: Mapping[tuple[str, str], tuple[Hold, ...]]
    """By tier and epoch, oldest first, ended ones as well."""
    epochs: Epochs
    measurements: Mapping[tuple[str, str, Gate], Measurement]
    """The last one of each tier, epoch and gate, however old."""
    awaited: float | None
    """When the oldest capture that is still being replayed was taken; None when none is."""
    traffic: Mapping[str, int]
    """Eligible requests by crossed stratum, from the mirror ledger."""
    taken: Mapping[str, int]
    """Captures taken up, by what a worker tells of them; the smallest tenants as `OTHERS`."""
    traffic_before: Mapping[tuple[str, str], Mapping[str, int]]
    """What both said when an epoch of a tier began, by tier and epoch, of those that were asked for."""
    labelled: bool
    """Whether anybody labelled any pair."""
    repeated: bool
    """Whether candidates of the model were ever asked twice."""


def read_facts(connection: Connection, model: str, epochs: Collection[str]) -> LadderFacts:
    """All of them; `epochs` are those whose traffic before is asked for."""
    prefix = ledger_key(Count.TRAFFIC, model, "-").removesuffix("-")
    asked = {
        "model": model,
        "mark": model_mark(model),
        "prefix": _escaped(prefix) + "%",
        "epochs": sorted(set(epochs)),
    }
    found: defaultdict[str, list[_Fact]] = defaultdict(list)
    for row in connection.execute(_FACTS, asked).all():
        found[row[0]].append(_Fact._make(row))
    awaited = [fact.at for fact in found["awaited"]]
    return LadderFacts(
        route=next((_route(model, fact) for fact in found["route"]), None),
        approvals={fact.tier: Approval(**json.loads(fact.text)) for fact in found["approval"]},
        holds=_holds(found["hold"]),
        epochs=_epochs(found),
        measurements={
            (fact.tier, fact.epoch, Gate(fact.name)): _measurement(model, fact)
            for fact in found["measurement"]
        },
        awaited=awaited[0] if awaited else None,
        traffic={split_ledger_key(fact.name).detail: int(fact.whole or 0) for fact in found["traffic"]},
        taken=_taken(connection, model, found),
        traffic_before={(fact.tier, fact.epoch): json.loads(fact.text) for fact in found["before"]},
        labelled=bool(found["labelled"]),
        repeated=bool(found["repeated"]),
    )


def _route(model: str, fact: _Fact) -> Route:
    return Route(
        model=model, weights=json.loads(fact.text), version=int(fact.whole or 0), issued_at=fact.at or 0.0
    )


def _holds(facts: Sequence[_Fact]) -> dict[tuple[str, str], tuple[Hold, ...]]:
    found: dict[tuple[str, str], tuple[Hold, ...]] = {}
    for fact in sorted(facts, key=lambda each: (each.at or 0.0, each.name)):
        hold = Hold(kind=HoldKind(fact.name), reason=fact.text, at=fact.at or 0.0, ended_at=fact.until)
        found[fact.tier, fact.epoch] = (*found.get((fact.tier, fact.epoch), ()), hold)
    return found


def _epochs(found: Mapping[str, Sequence[_Fact]]) -> Epochs:
    plans: dict[tuple[str, str], dict[str, int]] = {}
    for fact in found.get("plan", ()):
        plans.setdefault((fact.tier, fact.epoch), {})[fact.name] = int(fact.whole or 0)
    return Epochs(
        attempts={(fact.tier, fact.epoch): int(fact.whole or 0) for fact in found.get("epoch", ())},
        plans=plans,
        starts={(fact.tier, fact.epoch): fact.at or 0.0 for fact in found.get("start", ())},
        interventions={
            (fact.tier, Kind(fact.name)): Intervention(
                epoch=fact.epoch,
                through=int(fact.whole or 0),
                reason=fact.text,
                actor=fact.by,
                at=fact.at or 0.0,
            )
            for fact in found.get("intervention", ())
        },
    )


def _measurement(model: str, fact: _Fact) -> Measurement:
    return Measurement(
        model=model,
        tier=fact.tier,
        gate=Gate(fact.name),
        epoch=fact.epoch,
        at=fact.at or 0.0,
        shown=Shown(fact.word),
        reason=fact.by,
        numbers=json.loads(fact.text),
        run=None if fact.whole is None else int(fact.whole),
    )


def _taken(connection: Connection, model: str, found: Mapping[str, Sequence[_Fact]]) -> dict[str, int]:
    taken = {fact.name: int(fact.whole or 0) for fact in found.get("taking", ())}
    largest = sorted(found.get("tenant", ()), key=lambda fact: (-(fact.whole or 0), fact.name))
    tenants = {fact.name: int(fact.whole or 0) for fact in largest[:MOST_TENANTS]}
    if len(largest) > MOST_TENANTS:
        every = select(func.sum(takings.c.amount)).where(takings.c.model == model, _OF_TENANT)
        tenants[OTHERS] = int(connection.execute(every).scalar_one()) - sum(tenants.values())
    return {**taken, **tenants}


def _escaped(text: str) -> str:
    """As LIKE takes it literally."""
    return text.replace("/", "//").replace("%", "/%").replace("_", "/_")


_TYPES: Mapping[str, Any] = {"whole": BigInteger, "at": Double, "until": Double}
_MODEL = bindparam("model", type_=String)
_OF_TENANT = takings.c.stratum.startswith(f"{TENANT}=", autoescape=True)


def _member(what: str, source: FromClause, **columns: ColumnElement[Any]) -> Select[Any]:
    """Rows of one table in the columns of `_Fact`."""
    return select(
        literal_column(f"'{what}'", String).label("what"),
        *(
            (columns[name] if name in columns else cast(null(), _TYPES.get(name, String))).label(name)
            for name in _Fact._fields[1:]
        ),
    ).select_from(source)


def _union() -> CompoundSelect[Any]:
    newer = measurements.alias("newer")
    same = [newer.c[name] == measurements.c[name] for name in ("model", "tier", "gate", "epoch")]
    latest = select(func.max(newer.c.at)).where(*same).scalar_subquery()
    waiting = (
        select(func.min(captures.c.taken_at).label("at"))
        .where(
            captures.c.state == State.LEASED.value,
            captures.c.mark == bindparam("mark", type_=String),
            captures.c.leases <= MOST_AWAITED,
        )
        .subquery()
    )
    seen = (
        select(ledger_counters.c.counter, func.sum(ledger_counters.c.amount).label("amount"))
        .where(ledger_counters.c.counter.like(bindparam("prefix", type_=String), escape="/"))
        .group_by(ledger_counters.c.counter)
        .subquery()
    )
    largest = (
        select(takings.c.stratum, takings.c.amount)
        .where(takings.c.model == _MODEL, _OF_TENANT)
        .order_by(takings.c.amount.desc(), takings.c.stratum)
        .limit(MOST_TENANTS + 1)
        .subquery()
    )
    labelled = select(adjudication_labels.c.item_id).limit(1).subquery()
    repeated = (
        select(tallies.c.tier).where(tallies.c.model == _MODEL, tallies.c.arm == Arm.REPEAT.value).limit(1)
    ).subquery()
    of, plan, start = epochs.c, epoch_plans.c, epoch_starts.c
    hold, done, measured, before = holds.c, interventions.c, measurements.c, traffic_before.c
    return union_all(
        _member("route", routes, whole=routes.c.version, at=routes.c.issued_at, text=routes.c.weights).where(
            routes.c.model == _MODEL
        ),
        _member("approval", approvals, tier=approvals.c.tier, text=approvals.c.document).where(
            approvals.c.model == _MODEL
        ),
        _member(
            "hold",
            holds,
            tier=hold.tier,
            epoch=hold.epoch,
            name=hold.kind,
            at=hold.at,
            until=hold.ended_at,
            text=hold.reason,
        ).where(hold.model == _MODEL),
        _member("epoch", epochs, tier=of.tier, epoch=of.epoch, whole=of.attempt).where(of.model == _MODEL),
        _member(
            "plan", epoch_plans, tier=plan.tier, epoch=plan.epoch, name=plan.evaluator, whole=plan.max_pairs
        ).where(plan.model == _MODEL),
        _member("start", epoch_starts, tier=start.tier, epoch=start.epoch, at=start.first_pair_at).where(
            start.model == _MODEL
        ),
        _member(
            "intervention",
            interventions,
            tier=done.tier,
            epoch=done.epoch,
            name=done.kind,
            whole=done.through,
            at=done.at,
            text=done.reason,
            by=done.actor,
        ).where(done.model == _MODEL),
        _member(
            "measurement",
            measurements,
            tier=measured.tier,
            epoch=measured.epoch,
            name=measured.gate,
            whole=measured.run,
            at=measured.at,
            text=measured.numbers,
            by=measured.reason,
            word=measured.shown,
        ).where(measured.model == _MODEL, measured.at == latest),
        _member("awaited", waiting, at=waiting.c.at),
        _member("traffic", seen, name=seen.c.counter, whole=cast(seen.c.amount, BigInteger)),
        _member("taking", takings, name=takings.c.stratum, whole=takings.c.amount).where(
            takings.c.model == _MODEL, ~_OF_TENANT
        ),
        _member("tenant", largest, name=largest.c.stratum, whole=largest.c.amount),
        _member("before", traffic_before, tier=before.tier, epoch=before.epoch, text=before.amounts).where(
            before.model == _MODEL, before.epoch.in_(bindparam("epochs", expanding=True))
        ),
        _member("labelled", labelled),
        _member("repeated", repeated),
    )


_FACTS = _union()
"""Made once: making a statement costs more than asking it."""
