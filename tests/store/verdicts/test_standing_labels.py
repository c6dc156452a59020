"""Verdicts of a ladder take people's labels into account, of the epoch and the version that count."""

from __future__ import annotations

from service.decision.policy import Asked, Criterion, Gate, Policy
from service.decision.verdict import Decision, Finding
from service.fleet import Backend, Ladder, Tier
from service.store.labels.labelling import Given, Said, record_labels
from service.store.sql.database import Database
from service.store.verdicts.standing import Question, read_standing
from tests.adjudicating import Queueing

POLICY = Policy(
    criteria=(Criterion(evaluator="refusal", margin=0.2, min_pairs=20),),
    gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED},
)
LADDER = Ladder(
    model="m",
    tiers=tuple(
        Tier(name=name, model="m", backends=(Backend(url=f"http://127.0.0.1:{port}"),))
        for name, port in (("bf16", 9), ("w8a8", 10))
    ),
)


def finding(db: Database, epoch: str = "e1") -> Finding:
    question = Question(policy=POLICY, epoch_of=lambda model, tier: epoch)
    verdict = read_standing(db, LADDER, question, now=2000.0).rung("w8a8").verdict
    assert verdict is not None
    return verdict.findings[0]


def label(db: Database, ids: list[str], said: Said) -> None:
    given = [Given(item_id=each, labeller="anna", said=said, at=1500.0) for each in ids]
    record_labels(db, given, token="anna")


def test_labels_that_suffice_stand_in_the_finding(database: Database) -> None:
    queueing = Queueing(db=database)
    ids = queueing.add("pp", 110)
    queueing.add("pp", 40, queued=False)
    before = finding(database)
    assert before.decision is Decision.ACCEPT
    assert before.correction is None
    label(database, ids[:90], Said.BOTH)
    few = finding(database).correction
    assert few is not None
    assert few.missing == "labels (90) < 100"
    label(database, ids[90:], Said.BOTH)
    after = finding(database)
    assert after.decision is Decision.ACCEPT
    assert "corrected by 110 labels: raw +0.0 pp, corrected +0.0 pp" in after.reason
    assert finding(database, "e2").correction is None
