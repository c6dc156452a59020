"""The one answer at a gate, made from verdict, approval and the artifact asked for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from service.decision.verdict import Decision, Finding
from service.engines.artifact import bare
from service.moments import moment
from service.store.decided.approvals import Approval
from service.store.verdicts.rung import Rung

LONGEST_REASON = 240
"""Characters: Argo keeps an answer in its resource, GitHub shows 1024."""
APPROVED_SCORE, WAITING_SCORE, REJECTED_SCORE = 100.0, 75.0, 0.0
WAITING_SPAN = 14.0
"""What waits scores 75 to 89 by how far it has come: between the thresholds that Kayenta is given most."""


class State(StrEnum):
    """What a gate says; anything that is not known for certain is `inconclusive`."""

    APPROVED = "approved"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"


class Basis(StrEnum):
    """What a gate asks for before it says `approved`."""

    APPROVAL = "approval"
    """An approval in force, given by a person or a pipeline."""
    VERDICT = "verdict"
    """The evidence alone: an `accept` suffices without an approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What every dialect renders."""

    state: State
    reason: str
    """One sentence in one line."""
    score: float
    """0 to 100: 100 approved, 75 to 89 inconclusive (by how far the evidence has come), 0 rejected."""
    n_pairs: int
    """Pairs of the decisive criterion that has fewest."""
    evaluation_id: str
    """Epoch, attempt and policy: the same as long as the same thing is judged by the same rules."""
    model: str
    tier: str
    artifact: str | None
    """64 hexadecimal digits of what was judged; None where nothing names it."""
    approved_at: float | None
    """Unix seconds; None without an approval."""
    expires_at: float | None
    """Unix seconds; None = until revoked, or without an approval."""
    evidence_age: float | None
    """Seconds since the first counted pair; None without evidence."""
    settled: bool
    """Whether waiting changes nothing: approved, rejected, another artifact, no more pairs to ask for.

    Where nothing names an artifact yet, an approval may.
    """

    @property
    def line(self) -> str:
        """State and reason in one line."""
        return f"{self.state.value}: {self.reason}"


def judge(rung: Rung, *, artifact: str | None, basis: Basis, policy: str, now: float) -> Judgement:
    """The judgement on a candidate's rung.

    `artifact`: what is about to be rolled out, None when the caller does not say. `policy`: its digest.
    """
    evidence, verdict = rung.evidence, rung.verdict
    assert evidence is not None, "the baseline has no evidence"
    assert verdict is not None, "the baseline has no verdict"
    judged, asked = _artifact(rung), bare(artifact) if artifact else None
    state, reason = _state(rung, judged=judged, asked=asked, basis=basis, now=now)
    return Judgement(
        state=state,
        reason=one_sentence(reason),
        score=_score(state, verdict.decisive),
        n_pairs=min((finding.n for finding in verdict.decisive), default=0),
        evaluation_id=f"{verdict.epoch[:16]}-{verdict.attempt}-{policy[:8]}",
        model=verdict.model,
        tier=verdict.tier,
        artifact=judged,
        approved_at=None if rung.approval is None else rung.approval.at,
        expires_at=None if rung.approval is None else rung.approval.expires_at,
        evidence_age=evidence.age_seconds,
        settled=state is not State.INCONCLUSIVE
        or (None not in (asked, judged) and asked != judged)
        or verdict.not_shown,
    )


def one_sentence(text: str) -> str:
    """The text in one line, bounded, with an end."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    if len(line) > LONGEST_REASON:
        line = line[: LONGEST_REASON - 1].rstrip() + "…"
    return line if line.endswith((".", "…", "!", "?")) else f"{line}."


def _artifact(rung: Rung) -> str | None:
    """What the evidence of this epoch is about: an approval of another one names what was measured then."""
    approval, verdict = rung.approval, rung.verdict
    named = approval.artifact if approval and verdict and approval.epoch == verdict.epoch else None
    known = named or rung.tier.declares.get("artifact")
    return bare(known) if known else None


def _state(
    rung: Rung, *, judged: str | None, asked: str | None, basis: Basis, now: float
) -> tuple[State, str]:
    """What is asked for is compared first: a verdict on another artifact says nothing of this one."""
    assert rung.verdict is not None, "the baseline has no verdict"
    decision, name = rung.verdict.decision, f"tier {rung.tier.name}"
    reasons = "; ".join(rung.verdict.reasons) or decision.value
    if asked is not None and asked != judged:
        what = (
            "no artifact is named by approval or tier" if judged is None else f"it is {judged[:12]} that was"
        )
        return State.INCONCLUSIVE, f"not evaluated: artifact {asked[:12]} was not measured, {what}"
    if rung.barred:
        held = "; ".join(f"{hold.kind}: {hold.reason}" for hold in rung.barred)
        return State.REJECTED, f"{name} is held: {held}"
    lapsed = "".join(_lapsed(rung, now=now))
    if rung.approval is not None and not lapsed:
        turned = decision is Decision.REJECT and rung.approval.verdict.get("decision") != decision.value
        if not turned:
            return State.APPROVED, _approved(name, rung.approval)
        return State.REJECTED, f"since {name} was approved the evidence has turned: {reasons}"
    if decision is Decision.REJECT:
        return State.REJECTED, f"{name} does harm or fails a gate: {reasons}"
    if decision is Decision.ACCEPT and basis is Basis.VERDICT:
        return State.APPROVED, f"{name} is as good as its baseline within the margin: {reasons}"
    if decision is Decision.ACCEPT:
        return (
            State.INCONCLUSIVE,
            lapsed or f"the evidence on {name} suffices, and nobody has approved it yet",
        )
    return State.INCONCLUSIVE, f"{lapsed}; {reasons}" if lapsed else f"{name} is undecided: {reasons}"


def _lapsed(rung: Rung, *, now: float) -> Iterator[str]:
    """Why an approval is none any more."""
    approval, verdict = rung.approval, rung.verdict
    if approval is None or verdict is None:
        return
    if approval.expired(now):
        yield f"the approval expired at {moment(approval.expires_at or now)}"
    elif approval.epoch != verdict.epoch:
        yield "not evaluated: what runs now is not what was approved (another epoch of evidence)"


def _approved(name: str, approval: Approval) -> str:
    until = "" if approval.expires_at is None else f", until {moment(approval.expires_at)}"
    against = " against the verdict" if approval.override else ""
    return f"{name} was approved{against} by {approval.actor} at {moment(approval.at)}{until}"


def _score(state: State, findings: tuple[Finding, ...]) -> float:
    if state is State.APPROVED:
        return APPROVED_SCORE
    if state is State.REJECTED:
        return REJECTED_SCORE
    return round(WAITING_SCORE + WAITING_SPAN * min((_come(each) for each in findings), default=0.0), 1)


def _come(finding: Finding) -> float:
    """How much of the pairs that a criterion is expected to need is there, 0 to 1."""
    if finding.decision is Decision.ACCEPT:
        return 1.0
    return finding.n / (finding.n + finding.more_pairs) if finding.more_pairs else 0.0
