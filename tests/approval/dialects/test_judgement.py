"""The judgement, state by state: what makes it, and that doubt is always inconclusive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.approval.dialects.judgement import LONGEST_REASON, Basis, Judgement, State, judge, one_sentence
from service.decision.evidence import Evidence
from service.decision.verdict import Decision, Verdict
from service.fleet import Backend, Tier
from service.store.decided.approvals import Approval
from service.store.decided.holds import Hold, HoldKind
from service.store.verdicts.rung import Rung

NOW = 1_700_000_000.0
ONE, OTHER = "ab" * 32, "cd" * 32


def approval(**changes: Any) -> Approval:
    given = {
        "model": "m",
        "tier": "w8a8",
        "actor": "ci",
        "at": NOW - 60,
        "artifact": ONE,
        "epoch": "e1",
        "policy_digest": "p",
        "verdict": {"decision": "accept"},
    }
    return Approval(**{**given, **changes})


def rung(
    decision: Decision,
    given: Approval | None = None,
    *,
    declared: str | None = ONE,
    holds: tuple[Hold, ...] = (),
    **verdict: Any,
) -> Rung:
    told = {"model": "m", "tier": "w8a8", "reasons": ("because",), "findings": (), "gates": {}, "epoch": "e1"}
    return Rung(
        tier=Tier(
            name="w8a8",
            model="m",
            backends=(Backend(url="http://127.0.0.1:1"),),
            declares={} if declared is None else {"artifact": f"sha256:{declared}"},
        ),
        position=1,
        weight=0,
        evidence=Evidence(model="m", tier="w8a8", epoch="e1", tallies={}, age_seconds=7.0),
        verdict=Verdict(decision=decision, **{**told, **verdict}),
        below=None,
        approval=given,
        expired=given is not None and given.expired(NOW),
        holds=holds,
    )


def judged(of: Rung, *, artifact: str | None = None, basis: Basis = Basis.APPROVAL) -> Judgement:
    return judge(of, artifact=artifact, basis=basis, policy="p" * 64, now=NOW)


ACCEPT, UNDECIDED, REJECT = Decision.ACCEPT, Decision.UNDECIDED, Decision.REJECT
APPROVED, REJECTED, INCONCLUSIVE = State.APPROVED, State.REJECTED, State.INCONCLUSIVE
AGAINST = {"override": True, "reason": "known issue"}
ROWS = [
    # what the evidence says, the approval, by approval, by the evidence alone
    (ACCEPT, None, INCONCLUSIVE, APPROVED),
    (UNDECIDED, None, INCONCLUSIVE, INCONCLUSIVE),
    (REJECT, None, REJECTED, REJECTED),
    (ACCEPT, approval(), APPROVED, APPROVED),
    (UNDECIDED, approval(), APPROVED, APPROVED),
    (REJECT, approval(), REJECTED, REJECTED),
    (REJECT, approval(**AGAINST, verdict={"decision": "undecided"}), REJECTED, REJECTED),
    (REJECT, approval(**AGAINST, verdict={"decision": "reject"}), APPROVED, APPROVED),
    (ACCEPT, approval(expires_at=NOW), INCONCLUSIVE, APPROVED),
    (UNDECIDED, approval(expires_at=NOW), INCONCLUSIVE, INCONCLUSIVE),
    (REJECT, approval(expires_at=NOW), REJECTED, REJECTED),
    (ACCEPT, approval(epoch="e0"), INCONCLUSIVE, APPROVED),
    (UNDECIDED, approval(epoch="e0"), INCONCLUSIVE, INCONCLUSIVE),
]


@pytest.mark.parametrize(("decision", "given", "by_approval", "by_verdict"), ROWS)
def test_a_judgement_follows_from_verdict_and_approval(
    decision: Decision, given: Approval | None, by_approval: State, by_verdict: State
) -> None:
    assert judged(rung(decision, given)).state is by_approval
    assert judged(rung(decision, given), basis=Basis.VERDICT).state is by_verdict


@pytest.mark.parametrize(("decision", "given", "by_approval", "by_verdict"), ROWS)
@pytest.mark.parametrize("basis", list(Basis))
def test_another_artifact_is_never_approved_and_never_rejected(
    decision: Decision, given: Approval | None, by_approval: State, by_verdict: State, basis: Basis
) -> None:
    found = judged(rung(decision, given), artifact=OTHER, basis=basis)
    assert found.state is INCONCLUSIVE
    assert found.reason.startswith("not evaluated")
    assert found.settled


@pytest.mark.parametrize("asked", [ONE, f"sha256:{ONE}", ONE.upper(), f"sha256:{ONE.upper()}"])
def test_a_digest_is_the_same_however_it_is_written(asked: str) -> None:
    assert judged(rung(ACCEPT, approval()), artifact=asked).state is APPROVED
    assert judged(rung(ACCEPT), artifact=asked, basis=Basis.VERDICT).state is APPROVED


def test_an_artifact_that_nothing_names_was_not_measured_and_may_be_named_yet() -> None:
    unnamed = rung(ACCEPT, approval(artifact=None), declared=None)
    assert judged(unnamed, artifact=ONE).state is INCONCLUSIVE
    assert not judged(unnamed, artifact=ONE).settled
    assert not judged(rung(ACCEPT, declared=None), artifact=ONE).settled
    assert judged(unnamed).state is APPROVED


@pytest.mark.parametrize("basis", list(Basis))
def test_an_approval_of_another_epoch_names_no_artifact_of_this_one(basis: Basis) -> None:
    earlier = approval(epoch="e0", artifact=ONE)
    unnamed = judged(rung(ACCEPT, earlier, declared=None), artifact=ONE, basis=basis)
    assert unnamed.state is INCONCLUSIVE
    assert unnamed.reason.startswith("not evaluated: artifact")
    assert unnamed.artifact is None
    declared = judged(rung(ACCEPT, earlier, declared=OTHER), artifact=OTHER, basis=basis)
    assert declared.state is (APPROVED if basis is Basis.VERDICT else INCONCLUSIVE)
    assert (declared.artifact, declared.settled) == (OTHER, basis is Basis.VERDICT)
    assert judged(rung(ACCEPT, earlier, declared=OTHER), artifact=ONE, basis=basis).state is INCONCLUSIVE


def test_an_approval_that_expired_in_this_epoch_still_names_what_was_measured() -> None:
    over = rung(ACCEPT, approval(expires_at=NOW), declared=None)
    assert judged(over, artifact=ONE, basis=Basis.VERDICT).state is APPROVED
    assert judged(over, artifact=OTHER, basis=Basis.VERDICT).state is INCONCLUSIVE


def test_what_the_guard_took_out_is_rejected_until_an_approval_against_that() -> None:
    hold = Hold(kind=HoldKind.ROLLED_BACK, reason="harm", at=NOW - 30)
    assert judged(rung(ACCEPT, approval(), holds=(hold,))).state is REJECTED
    assert judged(rung(ACCEPT, approval(**AGAINST), holds=(hold,))).state is REJECTED
    later = approval(**AGAINST, at=NOW - 10)
    assert judged(rung(ACCEPT, later, holds=(hold,))).state is APPROVED
    frozen = Hold(kind=HoldKind.FROZEN, reason="warning", at=NOW - 30)
    assert judged(rung(ACCEPT, approval(), holds=(frozen,))).state is APPROVED


def test_waiting_is_over_when_nothing_more_is_asked_for() -> None:
    assert not judged(rung(UNDECIDED)).settled
    assert judged(rung(UNDECIDED, not_shown=True)).settled
    assert not judged(rung(ACCEPT)).settled
    assert judged(rung(REJECT)).settled


def test_the_scores_of_the_states_do_not_overlap() -> None:
    assert judged(rung(ACCEPT, approval())).score == 100
    assert judged(rung(REJECT)).score == 0
    assert 75 <= judged(rung(UNDECIDED)).score < 90


def test_expiry_and_age_are_told() -> None:
    found = judged(rung(ACCEPT, approval(expires_at=NOW + 60)))
    assert (found.approved_at, found.expires_at, found.evidence_age) == (NOW - 60, NOW + 60, 7.0)
    assert found.reason.endswith("until 2023-11-14T22:14:20Z.")
    assert found.line.startswith("approved: tier w8a8 was approved by ci at ")


def test_an_evaluation_is_the_same_for_the_same_evidence_and_policy() -> None:
    first, again = judged(rung(ACCEPT)), judged(rung(UNDECIDED))
    assert first.evaluation_id == again.evaluation_id
    other = rung(ACCEPT, epoch="e2")
    assert judged(replace(other)).evaluation_id != first.evaluation_id


def test_a_reason_is_one_bounded_line() -> None:
    found = judged(rung(REJECT, reasons=("a\r\nSet-Cookie: x\x00", "b" * 1000)))
    assert found.reason.isprintable()
    assert len(found.reason) <= LONGEST_REASON
    assert one_sentence("so it is") == "so it is."
    assert one_sentence("so it is.") == "so it is."
