"""The mirror ledger: copied from Redis into SQL, and read as an account of every request (`account`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from redis import Redis
from sqlalchemy import ColumnElement, Connection, case, func, select

from service.store.redis import redis_keys
from service.store.redis.capture import mark_of, model_mark
from service.store.redis.captures import Captures
from service.store.redis.counters import Count, LedgerKey, split_ledger_key
from service.store.redis.counters import ledger_key as ledger_key
from service.store.scored.counting import DUE
from service.store.scored.leases import State, settled
from service.store.scored.units import PairOutcome
from service.store.sql.database import Database
from service.store.sql.schema import (
    captures as captures_table,
)
from service.store.sql.schema import (
    in_doubt,
    ledger_counters,
    ledger_instances,
    pair_ledger,
    settled_captures,
)
from service.store.traffic.account import InstanceLedger, LedgerAccount, PairAccount, Settled, settle_account

_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """One instance's ledger as it was written, names and all."""

    instance: str
    closed: bool
    written_at: float
    counters: Mapping[str, int]
    in_doubt: frozenset[str] = frozenset()


def copy_from_redis(db: Database, redis: Redis) -> int:
    """Copy every proxy's counters into SQL; how many proxies. They only grow: copying again is harmless.

    The ledger of a proxy that stopped in order is removed from Redis once it is in SQL.
    """
    written = _read_redis(redis)
    for each in written:
        with db.write() as connection:
            _store(db, connection, each)
        if each.closed:
            with redis.pipeline(transaction=True) as pipeline:
                pipeline.delete(redis_keys.ledger(each.instance), redis_keys.in_doubt(each.instance))
                pipeline.srem(redis_keys.LEDGER_INSTANCES, each.instance)
                pipeline.execute()
    return len(written)


def account(
    db: Database,
    captures: Captures | None = None,
    model: str | None = None,
    *,
    now: float | None = None,
) -> LedgerAccount:
    """The account of one model or of all.

    With `captures`, counters that are not copied yet and the captures that wait are read from Redis (raises
    redis.RedisError); without, what waits cannot be told from what was lost. Redis is read before SQL: a
    capture that moves on meanwhile is seen twice rather than not at all, so `lost` is never too high.
    With `now` (unix seconds) a proxy that fell silent is told from one that runs.
    """
    live = {} if captures is None else {each.instance: each for each in _read_redis(captures.redis)}
    waiting = None if captures is None else captures.waiting_ids()
    if waiting is not None:
        done = settled(db, waiting)
        waiting = [each for each in waiting if each not in done]
    with db.read() as connection:
        written = {each.instance: each for each in _read_sql(connection)}
        for instance, fresh in live.items():
            written[instance] = _latest(written.get(instance), fresh)
        instances = [_instance(each, model) for each in written.values()]
        return settle_account(
            model=model,
            instances=[
                replace(each, beyond=_beyond(connection, written[each.instance], model, waiting or []))
                if each.silent(now)
                else each
                for each in instances
            ],
            settled=_settled(connection, model, waiting, [each.in_doubt for each in written.values()]),
            pairs=_pairs(connection, model),
            now=now,
        )


def _read_redis(redis: Redis) -> list[_Written]:
    instances = sorted(
        each.decode() for each in cast(set[bytes], redis.smembers(redis_keys.LEDGER_INSTANCES))
    )
    found = []
    for instance in instances:
        fields = cast(dict[bytes, bytes], redis.hgetall(redis_keys.ledger(instance)))
        if redis_keys.WRITTEN_AT.encode() not in fields:
            continue  # Redis lost it between the two reads
        doubtful = cast(set[bytes], redis.smembers(redis_keys.in_doubt(instance)))
        texts = {name.decode(): text.decode() for name, text in fields.items()}
        found.append(
            _Written(
                instance=instance,
                closed=texts.pop(redis_keys.CLOSED) == "1",
                written_at=float(texts.pop(redis_keys.WRITTEN_AT)),
                counters={name: int(text) for name, text in texts.items()},
                in_doubt=frozenset(each.decode() for each in doubtful),
            )
        )
    return found


def _read_sql(connection: Connection) -> list[_Written]:
    counters: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in connection.execute(select(ledger_counters)):
        counters[row.instance][row.counter] = int(row.amount)
    return [
        _Written(
            instance=row.instance,
            closed=row.closed,
            written_at=row.written_at,
            counters=counters[row.instance],
        )
        for row in connection.execute(select(ledger_instances).order_by(ledger_instances.c.instance))
    ]


def _latest(copied: _Written | None, fresh: _Written) -> _Written:
    """Redis may have lost its memory and have an older ledger than SQL: counters only grow."""
    if copied is None:
        return fresh
    names = {*copied.counters, *fresh.counters}
    return _Written(
        instance=fresh.instance,
        closed=copied.closed or fresh.closed,
        written_at=max(copied.written_at, fresh.written_at),
        counters={name: max(copied.counters.get(name, 0), fresh.counters.get(name, 0)) for name in names},
        in_doubt=fresh.in_doubt,
    )


def _store(db: Database, connection: Connection, written: _Written) -> None:
    insert = db.insert(ledger_instances).values(
        instance=written.instance, closed=written.closed, written_at=written.written_at
    )
    table = ledger_instances.c
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[table.instance],
            set_={
                "closed": table.closed | insert.excluded.closed,
                "written_at": _greater(table.written_at, insert.excluded.written_at),
            },
        )
    )
    if written.counters:
        counts = db.insert(ledger_counters)
        column = ledger_counters.c.amount
        connection.execute(
            counts.on_conflict_do_update(
                index_elements=[ledger_counters.c.instance, ledger_counters.c.counter],
                set_={"amount": _greater(column, counts.excluded.amount)},
            ),
            [
                {"instance": written.instance, "counter": name, "amount": amount}
                for name, amount in sorted(written.counters.items())
            ],
        )
    if written.in_doubt:
        connection.execute(
            db.insert(in_doubt).on_conflict_do_nothing(),
            [{"capture_id": each, "mark": mark_of(each)} for each in sorted(written.in_doubt)],
        )


def _greater(old: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((new > old, new), else_=old)


def _instance(written: _Written, model: str | None) -> InstanceLedger:
    counters: dict[LedgerKey, int] = {}
    seen = 0
    for name, amount in written.counters.items():
        if name.startswith(redis_keys.META):
            continue
        key = split_ledger_key(name)
        if key.what is Count.SEEN:
            seen += amount
        if model is None or key.model == model:
            counters[key] = amount
    return InstanceLedger(
        instance=written.instance,
        closed=written.closed,
        written_at=written.written_at,
        counters=counters,
        ahead=max(0, written.counters.get(redis_keys.RESERVED, 0) - seen),
    )


def _beyond(connection: Connection, written: _Written, model: str | None, waiting: list[str]) -> int:
    """Requests after an instance's last word: its captures carry the number of their request.

    Of one model, those of its captures alone; of all, also the requests between them that were not captured.
    """
    prefix = f"{written.instance}-"
    of_instance = captures_table.c.capture_id.startswith(prefix, autoescape=True)
    later = captures_table.c.lease_until > written.written_at  # it was shipped, and so leased, after that
    found = connection.execute(select(captures_table.c.capture_id).where(of_instance, later)).scalars()
    ids = {*found, *(each for each in waiting if each.startswith(prefix))}
    numbers = {each: int(each.rsplit("-", 2)[1]) for each in ids if mark_of(each)}
    seen = sum(amount for name, amount in written.counters.items() if name.startswith(f"{Count.SEEN}|"))
    if model is None:
        return max((number - seen for number in numbers.values() if number > seen), default=0)
    return sum(number > seen and mark_of(each) == model_mark(model) for each, number in numbers.items())


def _settled(
    connection: Connection,
    model: str | None,
    waiting: list[str] | None,
    doubtful: Iterable[frozenset[str]],
) -> Settled:
    mark = None if model is None else model_mark(model)
    states: Counter[str] = Counter()
    for table, amount in (
        (captures_table, func.count()),
        (settled_captures, func.sum(settled_captures.c.amount)),
    ):
        counted = select(table.c.state, amount.label("amount")).group_by(table.c.state)
        if mark is not None:
            counted = counted.where(table.c.mark == mark)
        for row in connection.execute(counted):
            states[row.state] += int(row.amount)
    leased = select(captures_table.c.capture_id).where(captures_table.c.state == State.LEASED)
    known = set(connection.execute(leased).scalars())
    present = known if waiting is None else known | set(waiting)
    of_model = present if mark is None else {each for each in present if mark_of(each) == mark}
    suspects = set(connection.execute(select(in_doubt.c.capture_id)).scalars()).union(*doubtful)
    if mark is not None:
        suspects = {each for each in suspects if mark_of(each) == mark}
    return Settled(
        processed=states[State.PROCESSED],
        expired=states[State.EXPIRED],
        lost=states[State.LOST],
        waiting=None if waiting is None else len(of_model),
        arrived=len((suspects & present) | _in_sql(connection, suspects - present)),
    )


def _in_sql(connection: Connection, ids: set[str]) -> set[str]:
    listed = sorted(ids)
    return {
        each
        for start in range(0, len(listed), _CHUNK)
        for each in connection.execute(
            select(captures_table.c.capture_id).where(
                captures_table.c.capture_id.in_(listed[start : start + _CHUNK])
            )
        ).scalars()
    }


def _pairs(connection: Connection, model: str | None) -> list[PairAccount]:
    table = pair_ledger.c
    query = select(pair_ledger).order_by(table.model, table.tier, table.arm, table.evaluator)
    if model is not None:
        query = query.where(table.model == model)
    found: defaultdict[tuple[str, str, str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in connection.execute(query):
        found[row.model, row.tier, row.arm, row.evaluator][row.outcome, row.reason] += int(row.amount)
    return [
        PairAccount(
            model=place[0],
            tier=place[1],
            arm=place[2],
            evaluator=place[3],
            due=amounts[DUE, ""],
            scored=amounts[PairOutcome.SCORED, ""],
            unscored={
                reason: amount
                for (outcome, reason), amount in amounts.items()
                if outcome == PairOutcome.UNSCORED
            },
            not_applicable=amounts[PairOutcome.NOT_APPLICABLE, ""],
            over_budget=amounts[PairOutcome.OVER_BUDGET, ""],
        )
        for place, amounts in found.items()
    ]
