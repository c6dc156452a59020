"""Everything `decide` may know about one tier: tallies, control, coverage, what load runs measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from service.decision.correction import Labels
from service.decision.energy import Energy
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
    """One sentence with both numbers."""
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)
    """What it rests on, by name; `margin` and `alpha` are what it was held to."""
    run: int | None = None
    """j: which run of the epoch, so that its alpha was alpha_j; None when nothing was looked at."""
    age_seconds: float | None = None
    """Since the end of the run; None outside a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Real traffic and evidence by stratum, both in requests."""

    traffic: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(min(counts.values(), default=0) < 0 for counts in (self.traffic, self.evidence)):
            raise ValueError("traffic and evidence are counts: none can be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Whether what differs between baseline and candidate is the precision alone (design section 10)."""

    differences: tuple[str, ...] = ()
    """One sentence for each fact that differs, with both values."""
    unsettled: str | None = None
    """Why the engines of a tier cannot be told apart yet: replicas that disagree, a version that changes."""
    not_told: tuple[str, ...] = ()
    """Facts that one side or both do not tell, and that were not compared."""


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
    attribution: Attribution | None = None
    """None when the engines tell nothing about themselves."""
    strata: Mapping[str, Mapping[str, Tally]] = field(default_factory=dict)
    """By evaluator and stratum, unscored pairs included. Strata whose units' mean difference is within the
    margin, in either direction, may be left out: their E_HARM is at most 1 (`strata`)."""
    strata_under_test: int = 1
    """How many strata there can be: fixed before any evidence, for the correction of the worst of them."""
    tenants: Mapping[str, Mapping[str, Tally]] = field(default_factory=dict)
    """By evaluator and tenant; needed only under a `tenant_share_cap`."""
    age_seconds: float | None = None
    """Since the first counted pair of the epoch."""
    slo: Measured | None = None
    money: Measured | None = None
    measured_within: float | None = None
    """Seconds; a load run that ended before counts as none. None = however old."""
    skipped: str | None = None
    """Why an admin lets the tiers above do without this one (statistics A4); None while they need it."""
    skipped_below: tuple[str, ...] = ()
    """The tiers below that are skipped: alpha is shared as by `independent`, for this tier too."""
    restored: str | None = None
    """Who gave this tier its alpha back, when and why, so that earlier epochs are no attempts (A5)."""
    max_pairs: Mapping[str, int] = field(default_factory=dict)
    """N_max by evaluator name, fixed once per epoch (statistics A13); without one, no end."""
    energy: Mapping[str, Energy] = field(default_factory=dict)
    """By evaluator name, from requests that both arms answered twice; shown, and in no decision (A11)."""
    labels: Mapping[str, Labels] = field(default_factory=dict)
    """What people say of a random sample of the counted pairs, by evaluator name (ADR 27)."""

    def __post_init__(self) -> None:
        if self.attempt < 1 or self.tiers_under_test < 1:
            raise ValueError(
                f"attempt and tiers_under_test count from 1, got {self.attempt} and {self.tiers_under_test}"
            )
        if self.strata_under_test < 1:
            raise ValueError(f"strata_under_test counts from 1, got {self.strata_under_test}")
        for evaluator, strata in self.strata.items():
            if len(strata) > self.strata_under_test:
                raise ValueError(
                    f"{evaluator} has evidence in {len(strata)} strata, more than the "
                    f"{self.strata_under_test} under test: the harm of the worst would be shown too easily"
                )
