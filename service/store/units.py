"""A unit: what one capture says about one tier by one evaluator, and what that adds to the counts.

A pair, or one pair for each recall needle. Values only; `pairs` records them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from service.store.schema import key_of

DUE = "due"
"""Outcome in the pair ledger that counts every pair, whatever became of it."""


class Arm(StrEnum):
    """What the baseline was compared with."""

    CANDIDATE = "candidate"
    CONTROL = "control"
    """The baseline again."""


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

    def __post_init__(self) -> None:
        Arm(self.arm)
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
            conversation=self.conversation,
            digest=self.digest,
        )

    @property
    def scored(self) -> tuple[PairRow, ...]:
        return tuple(row for row in self.rows if row.outcome == PairOutcome.SCORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to count for a conversation and a request, under one evaluator on one tier in one epoch."""

    tier: str
    arm: str
    epoch: str
    evaluator: str
    version: str
    conversation: str
    digest: str = ""
    """Of the request; empty when it is not to be compared with others."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What a capture must hold, all of it, to count."""
        scope = (self.tier, self.arm, self.epoch, self.evaluator, self.version)
        of_conversation = key_of("conversation", *scope, self.conversation)
        return (of_conversation, key_of("digest", *scope, self.digest)) if self.digest else (of_conversation,)


class TallyRow(NamedTuple):
    """Key of one row of `tallies`, in its order."""

    model: str
    tier: str
    arm: str
    epoch: str
    evaluator: str
    kind: str
    reason: str
    pairs: int
    harm: int
    benefit: int
    version: str
    stratum: str


class LedgerRow(NamedTuple):
    """Key of one row of `pair_ledger`; the outcome is a PairOutcome or `DUE`."""

    model: str
    tier: str
    arm: str
    evaluator: str
    outcome: str
    reason: str


def tally_rows(unit: Unit, *, counted: bool) -> Counter[TallyRow]:
    """What a unit adds to the tallies."""
    rows: Counter[TallyRow] = Counter()

    def key(kind: Kind, reason: str = "", triple: tuple[int, int, int] = (0, 0, 0)) -> TallyRow:
        place = (unit.model, unit.tier, unit.arm, unit.epoch, unit.evaluator)
        return TallyRow(*place, kind.value, reason, *triple, unit.version, unit.stratum)

    scored = unit.scored
    if scored and counted:
        harm, benefit = sum(row.harm for row in scored), sum(row.benefit for row in scored)
        rows[key(Kind.UNIT, triple=(len(scored), harm, benefit))] += 1
        rows[key(Kind.BOTH_FAILED)] += sum(row.both_failed for row in scored)
    else:
        rows[key(Kind.NOT_COUNTED)] += len(scored)
    for row in unit.rows:
        if row.outcome == PairOutcome.UNSCORED:
            rows[key(Kind.UNSCORED, row.unscored_reason)] += 1
    return +rows


def ledger_rows(unit: Unit) -> Counter[LedgerRow]:
    """What a unit adds to the pair ledger."""
    rows: Counter[LedgerRow] = Counter()
    place = (unit.model, unit.tier, unit.arm, unit.evaluator)
    rows[LedgerRow(*place, DUE, "")] += len(unit.rows)
    for row in unit.rows:
        rows[LedgerRow(*place, row.outcome, row.unscored_reason)] += 1
    return rows
