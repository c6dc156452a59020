"""What a drill must see, and whether it has. Pure: from the standing of its ladders to signs.

What counts as seen is an e-value at the threshold that production holds it to, so a drill may look after
every request: *damaged* is the verdict's own rejection, by the criterion of the defect; *swapped* is the same
test on the table with harm and benefit exchanged, which is what exchanged arms are; *crossed* is the alarm of
the control gate. A healthy arm must be left alone: it is wrongly rejected with the probability that the
policy grants to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.decision.eprocess import Differences, log_e_harm
from service.decision.evidence import Evidence
from service.decision.policy import Criterion, Gate, Policy, Role
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds, thresholds
from service.decision.verdict import Decision, Finding, GateState, Verdict
from service.decision.wording import compared_e_values
from service.drill.arms import CROSSED, DAMAGED, SWAPPED, UNDAMAGED, damaged_tier
from service.drill.defects import CRITERION, Defect
from service.store.verdicts.standing import Standing


class Act(StrEnum):
    """What is played."""

    HEALTHY = "healthy"
    """A candidate that is the baseline again: it must not be rejected."""
    DAMAGED = "damaged"
    """A candidate with a defect: it must be rejected, and for that."""
    SWAPPED = "swapped"
    """The defect in the baseline and its control, the candidate without: the difference must point back."""
    CROSSED = "crossed"
    """The control at a damaged backend: it must alarm, and nothing may be decided."""


class Seen(StrEnum):
    """Whether what must be seen was."""

    YES = "yes"
    NO = "no"
    """Something was seen that must not be: looking on cannot help."""
    NOT_YET = "not yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One criterion in one act."""

    act: Act
    defect: Defect
    seen: Seen
    tally: Tally
    log_e: float
    """Of what must be seen; in a healthy act, of the harm that must not be."""
    log_threshold: float
    trouble: str = ""
    """Why it is not seen, or what was seen instead."""

    @property
    def criterion(self) -> str:
        return CRITERION[self.defect]

    @property
    def key(self) -> tuple[Act, Defect]:
        return self.act, self.defect


def signs(policy: Policy, defects: Sequence[Defect], standings: Mapping[str, Standing]) -> tuple[Sign, ...]:
    """Every sign of every act, in the order in which they are told."""
    return tuple(_signs(policy, defects, standings))


def _signs(policy: Policy, defects: Sequence[Defect], standings: Mapping[str, Standing]) -> Iterator[Sign]:
    damaged = standings[DAMAGED]
    for defect in defects:
        yield _healthy(policy, defect, *_on(damaged, UNDAMAGED))
    for defect in defects:
        yield _damaged(policy, defect, *_on(damaged, damaged_tier(defect)))
    for defect in defects:
        yield _swapped(policy, defect, *_on(standings[SWAPPED], UNDAMAGED))
    if CROSSED in standings:
        for defect in defects:
            if defect is not Defect.RECALL:
                yield _crossed(policy, defect, *_on(standings[CROSSED], UNDAMAGED))


def _on(standing: Standing, tier: str) -> tuple[Evidence, Verdict]:
    rung = standing.rung(tier)
    if rung.evidence is None or rung.verdict is None:
        raise ValueError(f"{tier!r} is the baseline: nothing is decided about it")
    return rung.evidence, rung.verdict


def _healthy(policy: Policy, defect: Defect, evidence: Evidence, verdict: Verdict) -> Sign:
    criterion, limits = CRITERION[defect], _limits(policy, evidence)
    finding, tally = _finding(verdict, criterion), evidence.tallies.get(criterion, Tally())
    seen, trouble = (Seen.YES, "") if tally.n else (Seen.NOT_YET, _unscored(tally))
    if finding is not None and finding.decision is Decision.REJECT:
        seen, trouble = Seen.NO, f"a healthy arm is rejected: {finding.reason}"
    elif verdict.gates[Gate.CONTROL] is GateState.UNDECIDED:
        seen, trouble = Seen.NO, "; ".join(verdict.reasons)
    harm = finding.log_e.harm if finding is not None else 0.0
    return Sign(
        act=Act.HEALTHY, defect=defect, seen=seen, tally=tally, log_e=harm, log_threshold=limits.harm,
        trouble=trouble,
    )  # fmt: skip


def _damaged(policy: Policy, defect: Defect, evidence: Evidence, verdict: Verdict) -> Sign:
    criterion, limits = CRITERION[defect], _limits(policy, evidence)
    finding, tally = _finding(verdict, criterion), evidence.tallies.get(criterion, Tally())
    others = [
        each.criterion
        for each in verdict.decisive
        if each.decision is Decision.REJECT and each.criterion != criterion
    ]
    log_e = finding.log_e.harm if finding is not None else _log_e(policy, criterion, tally)
    shown = finding is not None and finding.decision is Decision.REJECT and log_e >= limits.harm
    if shown and verdict.decision is Decision.REJECT and not others:
        seen, trouble = Seen.YES, ""
    elif others:
        seen, trouble = Seen.NO, f"{' and '.join(others)} is blamed for a defect of {criterion}"
    elif idle := _idle(policy, criterion):
        seen, trouble = Seen.NO, idle
    elif shown:
        seen = Seen.NO
        trouble = f"harm is found, and the verdict is {verdict.decision}: {'; '.join(verdict.reasons)}"
    else:
        seen, trouble = Seen.NOT_YET, _blind(policy, Act.DAMAGED, criterion, tally, log_e, limits.harm)
    return Sign(
        act=Act.DAMAGED, defect=defect, seen=seen, tally=tally, log_e=log_e, log_threshold=limits.harm,
        trouble=trouble,
    )  # fmt: skip


def _swapped(policy: Policy, defect: Defect, evidence: Evidence, verdict: Verdict) -> Sign:
    criterion, limits = CRITERION[defect], _limits(policy, evidence)
    tally = evidence.tallies.get(criterion, Tally())
    differences, margin = Differences.of_tally(tally), _margin(policy, criterion)
    back, forth = log_e_harm(differences.mirrored(), margin), log_e_harm(differences, margin)
    seen, trouble = Seen.NOT_YET, _blind(policy, Act.SWAPPED, criterion, tally, back, limits.harm)
    if forth >= limits.harm:
        seen, trouble = Seen.NO, "exchanged arms look like harm of the healthy one"
    elif back >= limits.harm:
        seen, trouble = Seen.YES, ""
    return Sign(
        act=Act.SWAPPED, defect=defect, seen=seen, tally=tally, log_e=back, log_threshold=limits.harm,
        trouble=trouble,
    )  # fmt: skip


def _crossed(policy: Policy, defect: Defect, evidence: Evidence, verdict: Verdict) -> Sign:
    criterion, limits = CRITERION[defect], _limits(policy, evidence)
    tally = (evidence.control or {}).get(criterion, Tally())
    differences = Differences.of_tally(tally)
    log_e = max(log_e_harm(differences, 0.0), log_e_harm(differences.mirrored(), 0.0))
    gate = verdict.gates[Gate.CONTROL]
    alarmed = log_e >= limits.warn and gate is GateState.UNDECIDED
    seen, trouble = Seen.NOT_YET, _blind(policy, Act.CROSSED, criterion, tally, log_e, limits.warn)
    if gate is GateState.NOT_ASKED:
        seen, trouble = Seen.NO, "policy.gates.control is off: a control at a damaged backend is not noticed"
    elif alarmed and verdict.decision is not Decision.UNDECIDED:
        seen, trouble = Seen.NO, f"the control alarms, and the verdict is {verdict.decision} all the same"
    elif alarmed:
        seen, trouble = Seen.YES, ""
    return Sign(
        act=Act.CROSSED, defect=defect, seen=seen, tally=tally, log_e=log_e, log_threshold=limits.warn,
        trouble=trouble,
    )  # fmt: skip


def _limits(policy: Policy, evidence: Evidence) -> Thresholds:
    return thresholds(policy, tiers=evidence.tiers_under_test, attempt=evidence.attempt)


def _finding(verdict: Verdict, criterion: str) -> Finding | None:
    return next((each for each in verdict.findings if each.criterion == criterion), None)


def _criterion(policy: Policy, name: str) -> Criterion | None:
    return next((each for each in policy.criteria if each.evaluator == name), None)


def _margin(policy: Policy, name: str) -> float:
    """As the policy has it; of a criterion that it does not name, the margin it would have."""
    return (_criterion(policy, name) or Criterion(evaluator=name)).margin


def _log_e(policy: Policy, criterion: str, tally: Tally) -> float:
    return log_e_harm(Differences.of_tally(tally), _margin(policy, criterion))


def _idle(policy: Policy, name: str) -> str:
    """Why nobody would act on what the criterion finds; empty where it decides."""
    criterion = _criterion(policy, name)
    if criterion is None:
        return f"policy.criteria does not name {name}: nobody looks"
    if criterion.role is not Role.DECISIVE:
        return f"policy.criteria.{name}.role is {criterion.role}: it decides nothing"
    return ""


def _blind(policy: Policy, act: Act, name: str, tally: Tally, log_e: float, threshold: float) -> str:
    """What keeps the instrument from seeing what was planted, the most fundamental cause first."""
    if not tally.n:
        return _unscored(tally)
    if not tally.harm + tally.benefit:
        return f"the evaluator finds no difference in {tally.n} pairs, and answers were damaged"
    found, margin = abs(tally.harm - tally.benefit) / tally.n, _margin(policy, name)
    if act is not Act.CROSSED and found <= margin:
        return f"the margin of {margin:g} hides a difference of {found:.3g}"
    told, needed = compared_e_values(log_e, threshold)
    return f"not enough after {tally.n} pairs: e-value {told} < {needed}"


def _unscored(tally: Tally) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(tally.unscored.items()))
    return f"no pair was counted{'; unscored: ' * bool(reasons)}{reasons}"
