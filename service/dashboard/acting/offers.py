"""What may be decided about a tier where it stands now, and what that takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.approval.access import Scope
from service.approval.promotion import highest
from service.dashboard.visit import address
from service.decision.ladder import counts_as_reject
from service.decision.policy import LadderRule, Policy
from service.decision.verdict import Decision
from service.store.decided.holds import HoldKind
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing

PATH = "/tier/act"


class Act(StrEnum):
    """A decision of a person."""

    APPROVE = "approve"
    OVERRIDE = "override"
    """An approval against the verdict or a hold."""
    REJECT = "reject"
    REVOKE = "revoke"
    ROLL_BACK = "roll_back"
    SKIP = "skip"
    UNSKIP = "unskip"
    RESTORE_ALPHA = "restore_alpha"

    @property
    def scope(self) -> Scope:
        """What it takes."""
        return Scope.ADMIN if self in _OF_ADMINS else Scope.APPROVE

    @property
    def needs_reason(self) -> bool:
        """Whether nobody may do it without saying why."""
        return self in _WITH_REASON

    @property
    def tone(self) -> str:
        """Of its button."""
        return _TONES.get(self, "second")


_OF_ADMINS = frozenset({Act.OVERRIDE, Act.SKIP, Act.UNSKIP, Act.RESTORE_ALPHA})
_WITH_REASON = frozenset({Act.OVERRIDE, Act.REJECT, Act.SKIP, Act.RESTORE_ALPHA})
_TONES: Mapping[Act, str] = {
    Act.APPROVE: "good",
    Act.OVERRIDE: "wait",
    Act.REJECT: "bad",
    Act.REVOKE: "bad",
    Act.ROLL_BACK: "bad",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A button on the page of a tier."""

    act: Act
    href: str


def rolled_back(model: str, tier: str) -> str:
    """Where a tier that the route names is taken out of it, also one that is not configured any more."""
    return address(PATH, model=model, tier=tier, do=Act.ROLL_BACK.value)


def offers(standing: Standing, rung: Rung, policy: Policy) -> tuple[Offer, ...]:
    """In the order in which they are shown; none for the baseline."""
    model, tier = standing.ladder.model, rung.tier.name
    return tuple(
        Offer(act=act, href=address(PATH, model=model, tier=tier, do=act.value))
        for act in _possible(standing, rung, policy)
    )


def _possible(standing: Standing, rung: Rung, policy: Policy) -> Iterator[Act]:
    verdict, evidence, approval = rung.verdict, rung.evidence, rung.approval
    if verdict is None or evidence is None:
        return
    if verdict.decision is not Decision.ACCEPT or rung.barred:
        yield Act.OVERRIDE
    elif not rung.approved or rung.frozen or (approval is not None and approval.expires_at is not None):
        yield Act.APPROVE
    if highest(standing) == rung.tier.name:
        yield Act.ROLL_BACK
    if approval is not None:
        yield Act.REVOKE
    if not any(hold.kind is HoldKind.REJECTED for hold in rung.barred):
        yield Act.REJECT
    if evidence.skipped is not None:
        yield Act.UNSKIP
    elif (
        policy.ladder_rule is LadderRule.FIXED_SEQUENCE
        and rung is not standing.rungs[-1]
        and counts_as_reject(verdict)
    ):
        yield Act.SKIP
    if evidence.attempt > 1:
        yield Act.RESTORE_ALPHA
