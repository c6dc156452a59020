"""What webhooks are owed. The decision log is the outbox: its rows are written with what they tell of, and
turned into one message a receiver here, in the transaction that marks how far the log was read.

Messages are callbacks (`callbacks`), each receiver a tool of its own; nothing is owed twice for one event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, func, select, update

from service.decision.verdict import Decision, Verdict
from service.store.decided.decisions import Entry, entry_of, head_of
from service.store.outgoing.callbacks import MARK, Callback, CallbackState, ask_within, row_of
from service.store.outgoing.webhook_terms import Told, WebhookTerms
from service.store.sql.callback_tables import gate_callbacks as table
from service.store.sql.database import Database
from service.store.sql.job_tables import shadow_jobs
from service.store.sql.schema import decisions, key_of

PREFIX = "webhook:"
"""Before a receiver's name, in what names the tool of a callback."""
LOG, JOBS = ("log",), ("jobs",)
MOST_ROWS = 500
"""Of the log, in one transaction."""
JOBS_SECONDS = 7 * 86_400.0
"""Jobs that ended longer ago are told to nobody."""
HARMFUL = frozenset({"harm", "alarm", "roll_back_refused"})
WARNING = frozenset({"slo_lost", "frozen"})
GUARD = "guard"
"""Signs the rollbacks that nobody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What is told: names and numbers, never a sentence, since sentences may quote traffic or people."""

    event_id: str
    """The same for every attempt and every receiver."""
    kind: Told
    action: str
    at: float
    """Unix seconds."""
    model: str
    tier: str
    """Empty where it is about no tier."""
    actor: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def event_of(callback: Callback) -> Event:
    """The event that a callback tells of."""
    told = dict(callback.place)
    return Event(**{**told, "kind": Told(told["kind"])})


def tool_of(name: str) -> str:
    """How the outbox names a receiver."""
    return f"{PREFIX}{name}"


def owe(db: Database, connection: Connection, receivers: Sequence[WebhookTerms], event: Event) -> None:
    """One message to each receiver that is told of such events; none to who has one already."""
    for receiver in receivers:
        if receiver.wants(event.kind, event.model):
            ask_within(
                db,
                connection,
                tool=tool_of(receiver.name),
                key=(event.event_id,),
                delivery="",
                model=event.model,
                tier=event.tier,
                basis=event.kind.value,
                place=asdict(event),
                now=event.at,
                reopens=frozenset(),
            )


def owe_log(db: Database, receivers: Sequence[WebhookTerms]) -> None:
    """What the log says since it was last read; what it said before there was a webhook is told to nobody."""
    if _mark(db, LOG) == str(head_of(db).seq):
        return
    with db.write() as connection:
        db.lock(connection, MARK)
        last = connection.execute(select(func.max(decisions.c.seq))).scalar() or 0
        seen = _mark_within(connection, LOG)
        if seen is None or int(seen) > last:  # or the database is an older one, brought back
            _set_mark(db, connection, LOG, str(last))
            return
        rows = connection.execute(
            select(decisions).where(decisions.c.seq > int(seen)).order_by(decisions.c.seq).limit(MOST_ROWS)
        ).all()
        for row in rows:
            owe(db, connection, receivers, _logged(entry_of(row)))
        if rows:
            _set_mark(db, connection, LOG, str(rows[-1].seq))


def owe_jobs(db: Database, receivers: Sequence[WebhookTerms], *, now: float) -> None:
    """Jobs that ended since it was last asked."""
    jobs = shadow_jobs.c
    asked = select(jobs.job_id, jobs.model, jobs.state, jobs.part, jobs.actor, jobs.ended_at).where(
        jobs.ended_at >= now - JOBS_SECONDS
    )
    with db.read() as connection:
        rows = connection.execute(asked.order_by(jobs.ended_at, jobs.job_id)).all()
        seen = _mark_within(connection, JOBS)
    if seen is not None and {row.job_id for row in rows} <= {*json.loads(seen)}:
        return
    with db.write() as connection:
        db.lock(connection, MARK)
        seen = _mark_within(connection, JOBS)
        known = {row.job_id for row in rows} if seen is None else {*json.loads(seen)}
        for row in rows:
            if row.job_id not in known:
                owe(
                    db,
                    connection,
                    receivers,
                    Event(
                        event_id=f"job-{row.job_id}",
                        kind=Told.JOB,
                        action=str(row.state),
                        at=row.ended_at,
                        model=row.model,
                        tier="",
                        actor=row.actor,
                        facts={"job": row.job_id, "part": row.part},
                    ),
                )
        _set_mark(db, connection, JOBS, json.dumps([row.job_id for row in rows]))


def owe_verdicts(
    db: Database, receivers: Sequence[WebhookTerms], verdicts: Iterable[Verdict], *, now: float
) -> None:
    """Accept, reject and a warning, each once in an epoch of a tier."""
    for verdict in verdicts:
        key = ("verdict", verdict.model, verdict.tier, verdict.epoch)
        events = list(_judged(verdict, now))
        if {each.action for each in events} <= _said(_mark(db, key)):
            continue
        with db.write() as connection:
            db.lock(connection, MARK)
            said = _said(_mark_within(connection, key))
            for event in events:
                if event.action not in said:
                    owe(db, connection, receivers, event)
                    said.add(event.action)
            _set_mark(db, connection, key, json.dumps(sorted(said)))


def messages(db: Database, *, state: CallbackState | None, limit: int) -> list[Callback]:
    """The latest first."""
    wanted = select(table).where(table.c.tool.startswith(PREFIX, autoescape=True))
    if state is not None:
        wanted = wanted.where(table.c.state == state.value)
    with db.read() as connection:
        rows = connection.execute(
            wanted.order_by(table.c.created_at.desc(), table.c.callback_id).limit(limit)
        ).all()
    return [row_of(row) for row in rows]


def retry(db: Database, *, receiver: str | None, event_id: str | None, now: float) -> int:
    """Owe again what was given up; how many that are."""
    wanted = (table.c.state == CallbackState.GIVEN_UP.value) & (
        table.c.tool.startswith(PREFIX, autoescape=True)
        if receiver is None
        else table.c.tool == tool_of(receiver)
    )
    if event_id is not None:
        # Which receivers there were says the outbox, and their keys are hashes.
        with db.read() as connection:
            tools = connection.execute(select(table.c.tool).where(wanted).distinct()).scalars().all()
        wanted &= table.c.callback_id.in_([key_of(tool, event_id) for tool in tools])
    again = {"state": CallbackState.WAITING.value, "attempts": 0, "due_at": now, "ended_at": None}
    with db.write() as connection:
        return connection.execute(update(table).where(wanted).values(again)).rowcount


def give_up_strangers(db: Database, names: Iterable[str], *, now: float) -> int:
    """End what is owed to receivers that are not configured any more; how much that is."""
    strange = (
        table.c.tool.startswith(PREFIX, autoescape=True)
        & table.c.tool.not_in([tool_of(name) for name in names])
        & (table.c.state == CallbackState.WAITING.value)
    )
    with db.read() as connection:
        if connection.execute(select(table.c.callback_id).where(strange).limit(1)).first() is None:
            return 0
    ended = {
        "state": CallbackState.GIVEN_UP.value,
        "ended_at": now,
        "problem": "no webhook of this name is configured any more",
    }
    with db.write() as connection:
        return connection.execute(update(table).where(strange).values(ended)).rowcount


def _logged(entry: Entry) -> Event:
    kind = Told.DECISION
    if entry.action in HARMFUL or (entry.action == "roll_back" and entry.actor == GUARD):
        kind = Told.HARM
    elif entry.action in WARNING:
        kind = Told.WARN
    facts: dict[str, Any] = {"seq": entry.seq, "digest": entry.digest}
    for name in ("epoch", "from"):  # `from`: the tier whose clients went to `tier`
        if isinstance(told := entry.detail.get(name), str):
            facts[name] = told
    if entry.detail.get("override") is True:
        facts["override"] = True
    return Event(
        event_id=f"log-{entry.seq}-{entry.digest[:12]}",
        kind=kind,
        action=entry.action,
        at=entry.at,
        model=entry.model,
        tier=entry.tier or "",
        actor=entry.actor,
        facts=facts,
    )


def _judged(verdict: Verdict, now: float) -> Iterator[Event]:
    warning = [each.criterion for each in verdict.findings if each.warn]
    found: dict[str, Any] = {
        "epoch": verdict.epoch,
        "pairs": {each.criterion: each.n for each in verdict.findings},
    }
    if verdict.decision is not Decision.UNDECIDED:
        yield _of(verdict, Told.DECISION, verdict.decision.value, found, now)
    if warning:
        yield _of(verdict, Told.WARN, "warn", {**found, "criteria": warning}, now)


def _of(verdict: Verdict, kind: Told, action: str, facts: Mapping[str, Any], now: float) -> Event:
    return Event(
        event_id=f"verdict-{key_of(verdict.model, verdict.tier, verdict.epoch, action)}",
        kind=kind,
        action=action,
        at=now,
        model=verdict.model,
        tier=verdict.tier,
        actor="evidence",
        facts=facts,
    )


def _said(told: str | None) -> set[str]:
    return set() if told is None else {*json.loads(told)}


def _mark(db: Database, key: Sequence[str]) -> str | None:
    with db.read() as connection:
        return _mark_within(connection, key)


def _mark_within(connection: Connection, key: Sequence[str]) -> str | None:
    mine = select(table.c.told).where(table.c.callback_id == key_of(MARK, *key))
    found: str | None = connection.execute(mine).scalar_one_or_none()
    return found


def _set_mark(db: Database, connection: Connection, key: Sequence[str], told: str) -> None:
    """A row that is owed to nobody and never ends: what was told so far."""
    row = {
        **dict.fromkeys(("delivery", "model", "tier", "basis", "problem"), ""),
        **dict.fromkeys(("attempts", "reports"), 0),
        **dict.fromkeys(("due_at", "created_at"), 0.0),
        "callback_id": key_of(MARK, *key),
        "tool": MARK,
        "place": "{}",
        "state": CallbackState.ANSWERED.value,
        "told": told,
        "ended_at": None,
    }
    insert = db.insert(table).values(row)
    changed = {"told": told}
    connection.execute(insert.on_conflict_do_update(index_elements=[table.c.callback_id], set_=changed))
