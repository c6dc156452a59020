"""One tier of a ladder as it stands: evidence, verdict, approval, share of the clients, and what holds it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from service.decision.evidence import Evidence
from service.decision.verdict import Decision, Verdict
from service.fleet import Tier
from service.store.decided.approvals import Approval
from service.store.decided.holds import BARRING, FREEZING, Hold


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
        """The verdict, and what holds the tier, in one sentence."""
        held = (f"{hold.kind}: {hold.reason}" for hold in self.held)
        return _ended("; ".join((self.decided.removesuffix("."), *held)))

    @property
    def decided(self) -> str:
        """The verdict alone in one sentence."""
        if self.verdict is None:
            return "The baseline: every other tier is measured against it."
        return _ended(": ".join(filter(None, (self.verdict.decision.value, "; ".join(self.verdict.reasons)))))


def _ended(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
