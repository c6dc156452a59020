"""What webhooks are owed: each event once a receiver, whoever wrote it and however often it is read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from service.decision.verdict import Decision, Finding, Interval, LogE, Verdict
from service.store.decided.decisions import append, head_of
from service.store.outgoing.callbacks import CallbackState, count_callbacks, due, end, forget_callbacks
from service.store.outgoing.webhook_terms import Form, Told, WebhookTerms
from service.store.outgoing.webhooks import (
    Event,
    event_of,
    give_up_strangers,
    messages,
    owe_jobs,
    owe_log,
    owe_verdicts,
    retry,
    tool_of,
)
from service.store.sql.database import Database
from service.store.sql.job_tables import shadow_jobs

NOW = 1_700_000_000.0
OPS = WebhookTerms(name="ops", form=Form.PLAIN, url="https://ops.example")
TEAM = WebhookTerms(
    name="team",
    form=Form.SLACK,
    url="https://team.example",
    kinds=frozenset({Told.HARM, Told.WARN}),
    models=frozenset({"m"}),
)
BOTH = (OPS, TEAM)
FINDING = Finding(
    criterion="structured_output",
    decision=Decision.UNDECIDED,
    reason="He wrote: my password is swordfish",
    n=120,
    conversations=100,
    harm=3,
    benefit=1,
    estimate=0.01,
    interval=Interval(lower=0.0, upper=0.02, level=0.95, method="exact"),
    margin=0.02,
    log_e=LogE(noninferiority=0.0, harm=0.0, warn=4.0),
    warn=False,
    more_pairs=None,
)
VERDICT = Verdict(
    model="m",
    tier="w8a8",
    decision=Decision.UNDECIDED,
    reasons=("swordfish",),
    findings=(FINDING,),
    gates={},
    epoch="e1",
)


def owed(db: Database, name: str) -> list[Event]:
    """In the order in which they are told."""
    return [event_of(each) for each in due(db, NOW + 100, limit=100, tools=(tool_of(name),))]


def logged(db: Database, action: str, *, at: float = NOW, actor: str = "ci", model: str = "m") -> None:
    detail = {"reason": "swordfish", "epoch": "e1"}
    append(db, at=at, actor=actor, action=action, model=model, tier="w8a8", detail=detail)


def test_each_row_of_the_log_is_owed_once_to_who_is_told_of_such(database: Database) -> None:
    owe_log(database, BOTH)
    for number, action in enumerate(("approve", "roll_back", "slo_lost", "harm")):
        logged(database, action, at=NOW + number)
    logged(database, "roll_back", at=NOW + 4, actor="guard")
    logged(database, "harm", at=NOW + 5, model="another")
    for _ in range(3):
        owe_log(database, BOTH)
    kinds = [(each.action, each.kind) for each in owed(database, "ops")]
    assert kinds == [
        ("approve", Told.DECISION),
        ("roll_back", Told.DECISION),
        ("slo_lost", Told.WARN),
        ("harm", Told.HARM),
        ("roll_back", Told.HARM),
        ("harm", Told.HARM),
    ]
    assert [each.action for each in owed(database, "team")] == ["slo_lost", "harm", "roll_back"]
    assert [each.facts["seq"] for each in owed(database, "ops")] == [1, 2, 3, 4, 5, 6]


def test_a_rollback_tells_from_which_tier(database: Database) -> None:
    owe_log(database, BOTH)
    detail = {"from": "w8a8", "epoch": "e1", "reasons": ["swordfish"]}
    append(database, at=NOW, actor="guard", action="roll_back", model="m", tier="bf16", detail=detail)
    owe_log(database, BOTH)
    [event] = owed(database, "ops")
    assert (event.tier, event.facts["from"]) == ("bf16", "w8a8")


def test_what_somebody_typed_is_in_no_message(database: Database) -> None:
    owe_log(database, BOTH)
    owe_verdicts(database, BOTH, (), now=NOW)
    logged(database, "approve")
    owe_log(database, BOTH)
    rejected = replace(VERDICT, decision=Decision.REJECT, findings=(replace(FINDING, warn=True),))
    owe_verdicts(database, BOTH, (rejected,), now=NOW)
    assert len(owed(database, "ops")) == 3
    assert "swordfish" not in str(owed(database, "ops"))


def test_history_is_told_to_nobody_and_an_older_database_is_read_on(database: Database) -> None:
    logged(database, "approve")
    owe_log(database, BOTH)
    assert owed(database, "ops") == []
    logged(database, "revoke")
    owe_log(database, BOTH)
    assert [each.action for each in owed(database, "ops")] == ["revoke"]
    with database.write() as connection:  # as a backup of the log from before has it
        connection.exec_driver_sql("DELETE FROM decisions")
        connection.exec_driver_sql("DELETE FROM decision_head")
    owe_log(database, BOTH)
    logged(database, "approve")
    owe_log(database, BOTH)
    assert head_of(database).seq == 1
    assert sorted(each.action for each in owed(database, "ops")) == ["approve", "revoke"]


def test_a_job_is_told_of_once_when_it_is_over(database: Database) -> None:
    def add(job: str, ended_at: float | None, state: str = "done") -> None:
        blank = dict.fromkeys(("part", "reason", "manifest", "manifest_digest"), "")
        row = {
            **blank,
            "job_id": job,
            "model": "m",
            "active": None if ended_at else "m",
            "state": state,
            "cause": "request",
            "actor": "ci",
            "own_capacity": False,
            "created_at": NOW,
            "ended_at": ended_at,
            "differences": "[]",
            "remarks": "[]",
            "expected_blocks": 0,
            "expected_seconds": 0.0,
        }
        with database.write() as connection:
            connection.execute(shadow_jobs.insert().values(row))

    add("old", NOW - 60)
    owe_jobs(database, BOTH, now=NOW)
    add("first", NOW + 1, "failed")
    add("runs", None, "running")
    for _ in range(3):
        owe_jobs(database, BOTH, now=NOW + 5)
    [told] = owed(database, "ops")
    assert (told.kind, told.action, told.facts["job"], told.actor) == (Told.JOB, "failed", "first", "ci")
    assert owed(database, "team") == []


def test_a_verdict_is_told_of_when_it_turns_once_in_an_epoch(database: Database) -> None:
    owe_verdicts(database, BOTH, (VERDICT,), now=NOW)
    assert owed(database, "ops") == []
    warns = replace(VERDICT, findings=(replace(FINDING, warn=True),))
    accepts = replace(VERDICT, decision=Decision.ACCEPT)
    for verdict in (warns, VERDICT, warns, accepts, VERDICT, accepts):
        owe_verdicts(database, BOTH, (verdict,), now=NOW)
    assert sorted(each.action for each in owed(database, "ops")) == ["accept", "warn"]
    [warned] = owed(database, "team")
    assert warned.facts["criteria"] == ["structured_output"]
    owe_verdicts(database, BOTH, (replace(accepts, epoch="e2"),), now=NOW)
    assert len(owed(database, "ops")) == 3


def test_what_was_told_is_forgotten_and_is_still_not_told_again(database: Database) -> None:
    accepts = replace(VERDICT, decision=Decision.ACCEPT)
    owe_log(database, BOTH)
    logged(database, "approve")
    owe_log(database, BOTH)
    owe_verdicts(database, BOTH, (accepts,), now=NOW)
    for each in due(database, NOW, limit=9, tools=(tool_of("ops"),)):
        end(database, each, state=CallbackState.ANSWERED, at=NOW)
    assert forget_callbacks(database, before=NOW + 1) == 2
    owe_log(database, BOTH)
    owe_verdicts(database, BOTH, (accepts,), now=NOW)
    assert owed(database, "ops") == []
    assert count_callbacks(database) == {}, "marks are no messages"


def test_what_was_given_up_is_listed_and_owed_again(database: Database) -> None:
    owe_log(database, (OPS, replace(OPS, name="two")))
    logged(database, "approve")
    owe_log(database, (OPS, replace(OPS, name="two")))
    assert retry(database, receiver=None, event_id=None, now=NOW) == 0
    for name in ("ops", "two"):
        [message] = due(database, NOW, limit=9, tools=(tool_of(name),))
        end(database, message, state=CallbackState.GIVEN_UP, at=NOW, problem="answered 410")
    dead = messages(database, state=CallbackState.GIVEN_UP, limit=9)
    assert [each.problem for each in dead] == ["answered 410"] * 2
    assert retry(database, receiver="ops", event_id="log-9-no", now=NOW) == 0
    assert retry(database, receiver="ops", event_id=dead[0].place["event_id"], now=NOW) == 1
    assert (len(owed(database, "ops")), len(owed(database, "two"))) == (1, 0)
    assert retry(database, receiver=None, event_id=None, now=NOW) == 1
    assert len(messages(database, state=None, limit=9)) == 2


def test_what_is_owed_to_a_receiver_that_is_gone_is_given_up(database: Database) -> None:
    owe_log(database, BOTH)
    logged(database, "harm")
    owe_log(database, BOTH)
    assert give_up_strangers(database, ["ops"], now=NOW) == 1
    assert give_up_strangers(database, ["ops"], now=NOW) == 0
    assert len(owed(database, "ops")) == 1


def test_guards_that_read_the_log_at_once_owe_one_message(database: Database) -> None:
    owe_log(database, BOTH)
    for number in range(5):
        logged(database, "harm", at=NOW + number)
    with ThreadPoolExecutor(4) as guards:
        for done in [guards.submit(owe_log, database, BOTH) for _ in range(8)]:
            done.result()
    assert len(owed(database, "ops")) == len(owed(database, "team")) == 5
