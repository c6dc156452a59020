"""Where every tier of a ladder stands: its evidence, verdict, approval and share of the clients.

The one read model behind API, overview page and guard, so that they cannot disagree. Verdicts are computed
from the tallies at every reading; nothing of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from redis import RedisError

from service.decision.decide import decide
from service.decision.evidence import Attribution, Evidence
from service.decision.policy import Policy
from service.decision.ramp import AT_ONCE
from service.decision.tally import Tally
from service.decision.verdict import Decision, Verdict
from service.fleet import Ladder, Route, Tier
from service.store.account import LedgerAccount
from service.store.approvals import Approval, current_approval
from service.store.captures import Captures
from service.store.database import Database
from service.store.evidence import epoch_attempt, read_coverage, read_tallies
from service.store.holds import BARRING, FREEZING, Hold, read_holds
from service.store.ledger import account
from service.store.measurements import MEASURED, latest_measurement
from service.store.routes import current_route
from service.store.units import Arm


class RungState(StrEnum):
    """A tier's place between unknown and trusted."""

    BASELINE = "baseline"
    SHADOWING = "shadowing"
    """No pair has been counted yet."""
    UNDECIDED = "undecided"
    ACCEPT = "accept"
    REJECT = "reject"
    APPROVED = "approved"
    EXPIRED = "expired"
    """It was approved until a time that has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a verdict is asked under."""

    policy: Policy
    epoch_of: Callable[[str, str], str]
    """The epoch of (model, tier) that counts now."""
    control_on_serving: bool = False
    """Whether the control may run on backends that serve clients."""
    attribution_of: Callable[[str, str], Attribution | None] = lambda model, tier: None
    """What the engines of (model, tier) and its baseline say of themselves; None when nothing."""
    measured_seconds: float = AT_ONCE.measured_seconds
    """Older measurements of load runs count as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One tier as it stands."""

    tier: Tier
    position: int
    """0 is the baseline."""
    weight: int
    """Per cent of clients it serves."""
    evidence: Evidence | None
    """None for the baseline, like the verdict and the approval."""
    verdict: Verdict | None
    below: Decision | None
    """Decision on the rung below, None when that is the baseline."""
    approval: Approval | None
    expired: bool
    holds: tuple[Hold, ...] = ()
    """Those in force, and those that ended in this epoch."""

    @property
    def held(self) -> tuple[Hold, ...]:
        """Holds in force, without those that an approval was given against."""
        return tuple(
            hold for hold in self.holds if hold.ended_at is None and not self._approved_against(hold)
        )

    @property
    def barred(self) -> tuple[Hold, ...]:
        """What a new approval would have to be given against."""
        return tuple(hold for hold in self.held if hold.kind in BARRING)

    @property
    def frozen(self) -> tuple[Hold, ...]:
        """What stops its ramp."""
        return tuple(hold for hold in self.held if hold.kind in FREEZING)

    @property
    def approved(self) -> bool:
        """Whether an approval is in force and nothing bars it."""
        return self.approval is not None and not self.expired and not self.barred

    def _approved_against(self, hold: Hold) -> bool:
        approval = self.approval
        return approval is not None and not self.expired and approval.override and approval.at >= hold.at

    @property
    def state(self) -> RungState:
        if self.verdict is None:
            return RungState.BASELINE
        if self.approval is not None:
            return RungState.EXPIRED if self.expired else RungState.APPROVED
        if not any(finding.n for finding in self.verdict.findings):
            return RungState.SHADOWING
        return RungState(self.verdict.decision.value)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.verdict is None:
            return "The baseline: every other tier is measured against it."
        reasons = "; ".join(self.verdict.reasons)
        told = f"{self.verdict.decision.value}: {reasons}" if reasons else self.verdict.decision.value
        told = "; ".join((told, *(f"{hold.kind}: {hold.reason}" for hold in self.held)))
        return told if told.endswith(".") else f"{told}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A whole ladder as it stands."""

    ladder: Ladder
    route: Route
    rungs: tuple[Rung, ...]

    def rung(self, tier: str) -> Rung:
        """The rung of that tier; KeyError when there is none."""
        return self.rungs[self.ladder.rung(tier)]


def route_of(db: Database, ladder: Ladder) -> Route:
    """The route in force; before the first change the baseline serves alone, under version 0."""
    return current_route(db, ladder.model) or Route.only(ladder.model, ladder.baseline.name)


def read_standing(
    db: Database, ladder: Ladder, question: Question, *, now: float, up_to: str | None = None
) -> Standing:
    """Every rung, or those from the baseline to `up_to`: a verdict depends on the rungs below it only."""
    route = route_of(db, ladder)
    control = read_control(db, ladder, question, route=route)
    rungs: list[Rung] = []
    below: Decision | None = None
    last = len(ladder.tiers) if up_to is None else ladder.rung(up_to) + 1
    for position, tier in enumerate(ladder.tiers[:last]):
        weight = route.weights.get(tier.name, 0)
        if position == 0:
            rungs.append(
                Rung(
                    tier=tier,
                    position=0,
                    weight=weight,
                    evidence=None,
                    verdict=None,
                    below=None,
                    approval=None,
                    expired=False,
                )
            )
            continue
        evidence = _evidence(db, ladder, tier, question, control, now)
        verdict = decide(question.policy, evidence, rung_below=below)
        approval = current_approval(db, ladder.model, tier.name)
        rungs.append(
            Rung(
                tier=tier,
                position=position,
                weight=weight,
                evidence=evidence,
                verdict=verdict,
                below=below,
                approval=approval,
                expired=approval is not None and approval.expired(now),
                holds=read_holds(db, ladder.model, tier.name, evidence.epoch),
            )
        )
        below = verdict.decision
    return Standing(ladder=ladder, route=route, rungs=tuple(rungs))


def read_account(db: Database, captures: Captures, model: str | None = None, *, now: float) -> LedgerAccount:
    """The mirror ledger; without Redis as SQL has it, and the account says so."""
    try:
        return account(db, captures, model, now=now)
    except RedisError as error:
        known = account(db, None, model, now=now)
        problem = (
            f"Redis does not answer ({type(error).__name__}): counters are as last copied, and captures that "
            "wait cannot be told from lost ones"
        )
        return replace(known, problems=(*known.problems, problem))


def read_control(
    db: Database, ladder: Ladder, question: Question, *, route: Route
) -> Mapping[str, Tally] | None:
    """The baseline against itself, by evaluator; None when no control can run and none ever did."""
    model, baseline = ladder.model, ladder.baseline
    epoch = question.epoch_of(model, baseline.name)
    control = read_tallies(db, model=model, tier=baseline.name, arm=Arm.CONTROL, epoch=epoch)
    can_run = bool(baseline.shadow) or question.control_on_serving or not route.weights.get(baseline.name)
    return control if control or can_run else None


def _evidence(
    db: Database,
    ladder: Ladder,
    tier: Tier,
    question: Question,
    control: Mapping[str, Tally] | None,
    now: float,
) -> Evidence:
    """All that is known of a candidate in the epoch that counts now."""
    model, epoch = ladder.model, question.epoch_of(ladder.model, tier.name)
    least = min(criterion.min_pairs for criterion in question.policy.criteria)
    slo, money = (
        latest_measurement(db, model, tier.name, gate, epoch, since=now - question.measured_seconds)
        for gate in MEASURED
    )
    return Evidence(
        model=model,
        tier=tier.name,
        epoch=epoch,
        attempt=epoch_attempt(db, model, tier.name, epoch, least),
        tiers_under_test=len(ladder.candidates),
        tallies=read_tallies(db, model=model, tier=tier.name, arm=Arm.CANDIDATE, epoch=epoch),
        control=control,
        coverage=read_coverage(db, model, tier.name, epoch),
        attribution=question.attribution_of(model, tier.name),
        slo=None if slo is None else slo.measured,
        money=None if money is None else money.measured,
    )
