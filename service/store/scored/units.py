"""A unit: what one capture says about one tier by one evaluator.

A pair, or one pair for each recall needle. Values only; `counting` counts and `pairs` records them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from service.store.sql.schema import key_of

LATE = "late"
"""Reason of pairs whose conversation was closed before they came (statistics A2)."""


class Arm(StrEnum):
    """What was compared."""

    CANDIDATE = "candidate"
    """The baseline with the candidate."""
    CONTROL = "control"
    """The baseline with itself."""
    REPEAT = "repeat"
    """The candidate with itself: shown beside the others, and in no decision."""


class PairOutcome(StrEnum):
    """What became of a pair that was due."""

    SCORED = "scored"
    UNSCORED = "unscored"
    NOT_APPLICABLE = "not_applicable"
    OVER_BUDGET = "over_budget"
    """Not replayed: the shadow budget was spent."""


class Kind(StrEnum):
    """Rows of the table `tallies`."""

    UNIT = "unit"
    BOTH_FAILED = "both_failed"
    NOT_COUNTED = "not_counted"
    UNSCORED = "unscored"
    FURTHER = "further"
    """Requests that count in a conversation besides one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One pair under one evaluator."""

    item: int = 0
    """The needle's number for recall probes, else 0."""
    outcome: str
    """A PairOutcome."""
    unscored_reason: str = ""
    baseline_passed: bool | None = None
    candidate_passed: bool | None = None
    baseline_label: str = ""
    candidate_label: str = ""
    baseline_reason: str = ""
    candidate_reason: str = ""
    origin: str = "live"
    """Where the baseline's outcome comes from: `live` or `replay`."""
    own_stratum: str = ""
    """Of this item, besides those of its unit (`service.strata`): the depth of a recall question."""
    details: tuple[tuple[str, str, int], ...] = ()
    """Name, kind and amount of what a comparison counted; added up by `details`, not kept with the pair."""

    def __post_init__(self) -> None:
        scored = PairOutcome(self.outcome) is PairOutcome.SCORED
        if scored != (self.baseline_passed is not None and self.candidate_passed is not None):
            raise ValueError("a pair has two judgements exactly when it is scored")
        if (self.outcome == PairOutcome.UNSCORED) != bool(self.unscored_reason):
            raise ValueError("a pair has an unscored_reason exactly when it is unscored")
        if self.origin not in ("live", "replay"):
            raise ValueError(f"origin is live or replay, not {self.origin!r}")

    @property
    def harm(self) -> bool:
        return bool(self.baseline_passed) and self.candidate_passed is False

    @property
    def benefit(self) -> bool:
        return self.baseline_passed is False and bool(self.candidate_passed)

    @property
    def both_failed(self) -> bool:
        return self.baseline_passed is False and self.candidate_passed is False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What one capture says about one tier, by one evaluator, in one epoch."""

    capture_id: str
    model: str
    tier: str
    arm: str
    """An Arm."""
    evaluator: str
    version: str
    epoch: str
    conversation: str
    stratum: str
    tenant: str
    digest: str
    """Of the request, as `wire` reads it; empty when it is not to be compared with others."""
    counted: bool
    """Whether it asks to count; `record` grants it when the capture holds the claims."""
    rows: tuple[PairRow, ...]
    at: float
    """Unix seconds."""
    marginals: tuple[str, ...] = ()
    """Its stratum in each dimension by itself (`service.strata`)."""
    waits: bool = False
    """Whether it asks to count when its conversation is closed, with all others of it, and not at once."""

    def __post_init__(self) -> None:
        Arm(self.arm)
        if self.counted and self.waits:
            raise ValueError("a unit that waits for its conversation to close does not count yet")
        own = [row.own_stratum for row in self.rows if row.own_stratum]
        if any(" " in each or "=" not in each for each in (*self.marginals, *own)):
            raise ValueError(f"marginal strata are named dimension=bucket, got {(*self.marginals, *own)}")
        if not self.rows:
            raise ValueError("a unit without pairs says nothing: not applicable is a row as well")
        if len({row.item for row in self.rows}) != len(self.rows):
            raise ValueError("a unit has an item twice")

    @property
    def id(self) -> str:
        return key_of(self.capture_id, self.tier, self.arm, self.evaluator, self.version, self.epoch)

    @property
    def claim(self) -> Claim:
        return Claim(
            tier=self.tier,
            arm=self.arm,
            epoch=self.epoch,
            evaluator=self.evaluator,
            version=self.version,
            conversation="" if self.waits else self.conversation,
            digest=self.digest,
        )

    @property
    def strata(self) -> tuple[str, ...]:
        """Every stratum it is in."""
        return (self.stratum, *self.marginals)

    @property
    def scored(self) -> tuple[PairRow, ...]:
        return tuple(row for row in self.rows if row.outcome == PairOutcome.SCORED)

    def when_late(self) -> Unit:
        """The same for a conversation that is closed: what was scored or lost is late, and nothing counts."""
        rows = tuple(
            PairRow(
                item=row.item,
                outcome=PairOutcome.UNSCORED.value,
                unscored_reason=LATE,
                candidate_reason="its conversation was closed before",
                origin=row.origin,
                own_stratum=row.own_stratum,
            )
            if row.outcome in (PairOutcome.SCORED, PairOutcome.UNSCORED)
            else row
            for row in self.rows
        )
        return replace(self, rows=rows, counted=False, waits=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to count for a conversation and a request, under one evaluator on one tier in one epoch."""

    tier: str
    arm: str
    epoch: str
    evaluator: str
    version: str
    conversation: str
    """Empty when all requests of a conversation count together."""
    digest: str = ""
    """Of the request; empty when it is not to be compared with others."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What a capture must hold, all of it, to count."""
        scope = (self.tier, self.arm, self.epoch, self.evaluator, self.version)
        named = (("conversation", self.conversation), ("digest", self.digest))
        return tuple(key_of(what, *scope, name) for what, name in named if name)
