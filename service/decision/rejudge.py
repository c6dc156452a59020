"""The same evidence under two policies, side by side: what changes, and why.

Always retrospective. A policy that is chosen after its evidence was seen is fitted to it: whatever error rate
it names, the tier that it lets through was picked for passing. So none of this approves anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from service.decision.decide import limits_of
from service.decision.ending import planned_max_pairs
from service.decision.evidence import Evidence
from service.decision.policy import Gate, Policy
from service.decision.tally import Tally
from service.decision.verdict import Decision, Finding, Verdict
from service.decision.wording import e_value

NOT_A_CRITERION = "not a criterion"
NO_TENANTS: Mapping[str, Mapping[str, Tally]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One thing that both verdicts speak of."""

    subject: str
    """`decision`, a criterion, or `gate NAME`."""
    before: str
    after: str
    why: tuple[str, ...]
    """What the other policy has to say of it; empty where nothing changes."""

    @property
    def changed(self) -> bool:
        return self.before != self.after


def evidence_under(
    other: Policy,
    evidence: Evidence,
    *,
    strata: Mapping[str, Mapping[str, Tally]],
    tenants: Mapping[str, Mapping[str, Tally]] = NO_TENANTS,
) -> Evidence:
    """The evidence as the other policy would ask for it.

    `strata`: those that could speak of harm at the other policy's margins; `tenants`: all of them, if it caps
    their share. N_max was fixed for the policy in
    force; for the other one it is planned on what has been counted by now.
    """
    limits = limits_of(other, evidence)
    control = evidence.control or {}
    planned = {
        criterion.evaluator: planned_max_pairs(
            other,
            criterion,
            evidence.tallies.get(criterion.evaluator, Tally()),
            limits,
            control=control.get(criterion.evaluator),
        )
        for criterion in other.criteria
    }
    return replace(
        evidence,
        strata=strata,
        tenants=tenants,
        max_pairs={name: pairs for name, pairs in planned.items() if pairs},
    )


def side_by_side(before: Verdict, after: Verdict) -> tuple[Beside, ...]:
    """The decision, every criterion of either policy, every gate."""
    return (
        _beside("decision", before.decision.value, after.decision.value, after.reasons),
        *_criteria(before, after),
        *_gates(before, after),
    )


def _criteria(before: Verdict, after: Verdict) -> Iterator[Beside]:
    were = {finding.criterion: finding for finding in before.findings}
    are = {finding.criterion: finding for finding in after.findings}
    for name in dict.fromkeys([*were, *are]):
        why = (are[name].reason,) if name in are else ("the other policy does not ask for it",)
        yield _beside(name, _told(were.get(name)), _told(are.get(name)), why)


def _told(finding: Finding | None) -> str:
    if finding is None:
        return NOT_A_CRITERION
    decided = (
        f"{finding.decision.value}" if finding.decision is not Decision.UNDECIDED else _undecided(finding)
    )
    return f"{decided}, {finding.role.value}, margin {100 * finding.margin:.3g} pp"


def _undecided(finding: Finding) -> str:
    if finding.not_shown:
        return "undecided for good"
    return f"undecided at e-value {e_value(finding.log_e.noninferiority)}"


def _gates(before: Verdict, after: Verdict) -> Iterator[Beside]:
    for gate in Gate:
        if gate in before.gates and gate in after.gates:
            was, now = (each.gates[gate].value.replace("_", " ") for each in (before, after))
            why = tuple(each for each in after.reasons if each.startswith(f"{gate.value}:"))
            yield _beside(f"gate {gate.value}", was, now, why or (f"the other policy has it {now}",))


def _beside(subject: str, before: str, after: str, why: tuple[str, ...]) -> Beside:
    return Beside(subject=subject, before=before, after=after, why=why if before != after else ())
