"""Everything `decide` may know about one tier: tallies, the control, coverage, and what load runs measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from service.decision.tally import Tally


class Shown(StrEnum):
    """What a gate outside of quality has shown so far."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A gate's own finding, from a load run."""

    shown: Shown
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Real traffic and evidence by stratum, in requests and in counted pairs."""

    traffic: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One tier against the baseline, in one epoch."""

    model: str
    tier: str
    epoch: str
    attempt: int = 1
    """j-th epoch of this tier that reached its minimum of pairs (statistics A5); sets its alpha."""
    tiers_under_test: int = 1
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    """By evaluator name."""
    control: Mapping[str, Tally] | None = None
    """Baseline against itself, by evaluator name; None when no control can run (no capacity)."""
    coverage: Coverage | None = None
    slo: Measured | None = None
    money: Measured | None = None
