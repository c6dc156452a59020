"""What one run's report says, as frozen types: JSON out, and the same JSON in.

Moments are unix seconds; units of what was measured stand in `measured`. What is not known is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from service.decision.policy import Gate, Role
from service.decision.verdict import Decision, GateState
from service.report import codec
from service.report.advised import Capacity
from service.report.codec import DocumentError as DocumentError
from service.report.measured import Concurrency, EngineSeries, Figure, Load, Money, Sweep

SCHEMA = "tiergate.report/2"
"""Changes with any field that older readers would not know."""
READS = (SCHEMA, "tiergate.report/1")
"""What this version reads; 1 has no advice about capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleLook:
    """One criterion as if looked at once, at the end: shown, decides nothing (statistics A7)."""

    difference: Figure
    """With Tango's limits over conversations."""
    p_value: float
    """Tango's, over conversations, against a rise of the margin or more; both ways for an equivalence."""
    exact_p: float | None
    """The same by enumeration, each pair alone; None where that takes long and Tango's is as good."""
    design_effect: float
    """How many times more pairs these conversations need than independent pairs; at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One criterion of a verdict."""

    criterion: str
    role: Role
    decision: Decision
    reason: str
    n: int
    conversations: int
    harm: int
    benefit: int
    estimate: float | None
    lower: float
    upper: float
    level: float
    margin: float
    both_ways: bool = False
    """A fall beyond the margin is harm as well."""
    warn: bool = False
    more_pairs: int | None = None
    single_look: SingleLook | None = None
    """None without pairs."""
    control: Figure | None = None
    """The baseline against itself: the share of pairs that differ, over control pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFigures:
    """What the evidence on one tier amounted to when the report was made."""

    decision: Decision
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    gates: Mapping[Gate, GateState] = field(default_factory=dict)
    epoch: str = ""
    attempt: int = 1
    alpha: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReport:
    """Everything about one tier."""

    name: str
    baseline: bool = False
    verdict: VerdictFigures | None = None
    """None for the baseline."""
    load: Load | None = None
    sweep: Sweep | None = None
    concurrency: Concurrency | None = None
    money: Money | None = None
    engine: tuple[EngineSeries, ...] = ()
    engine_not_told: tuple[str, ...] = ()
    """Numbers that the engine does not tell."""
    capacity: Capacity | None = None
    """What is advised; decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLine:
    """Pairs of one evaluator on one arm of one tier, and what became of them."""

    tier: str
    arm: str
    evaluator: str
    due: int
    scored: int
    unscored: Mapping[str, int] = field(default_factory=dict)
    not_applicable: int = 0
    over_budget: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where every request of the model went."""

    seen: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    sampled: int = 0
    shipped: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    processed: int = 0
    expired: int = 0
    lost: int = 0
    waiting: int = 0
    in_flight: int = 0
    unaccounted: int = 0
    balanced: bool = True
    problems: tuple[str, ...] = ()
    pairs: tuple[PairLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run itself."""

    id: str
    model: str
    state: str
    began_at: float
    ended_at: float | None = None
    """None while it runs."""
    begun_by: str = ""
    """A person's name, or the schedule."""
    why: str = ""
    """Why it ended before its end; empty when it did not."""
    blocks: int = 0
    blocks_done: int = 0
    tokens: int | None = None
    """Spent, prompts and output."""
    remarks: tuple[str, ...] = ()
    """What was not measured, and why, one sentence each."""
    replay_of: str | None = None
    """Digest of the manifest that it repeats."""
    differences: tuple[str, ...] = ()
    """From that manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The run before this one of the same model, as far as it is compared."""

    id: str
    ended_at: float
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    """By tier."""
    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    """By tier and by the names of `changes.KEY_FIGURES`."""
    manifest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run's report."""

    run: Run
    made_at: float
    currency: str = "CNY"
    slo_ttft_seconds: float | None = None
    slo_tpot_seconds: float | None = None
    tiers: tuple[TierReport, ...] = ()
    """Along the ladder, the baseline first."""
    ledger: Ledger | None = None
    earlier: Earlier | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Everything needed to repeat the run."""
    conclusion: Mapping[str, str] = field(default_factory=dict)
    """One paragraph by language."""
    schema: str = SCHEMA

    def __post_init__(self) -> None:
        if self.schema not in READS:
            raise ValueError(f"the report is of schema {self.schema}, this version reads {', '.join(READS)}")
        names = [each.name for each in self.tiers]
        if len(set(names)) != len(names):
            raise ValueError("a tier stands twice in the report")
        if sum(each.baseline for each in self.tiers) > 1:
            raise ValueError("a report has one baseline")
        if not all(math.isfinite(each) for each in (self.made_at, self.run.began_at)):
            raise ValueError("moments are finite")

    @property
    def baseline(self) -> TierReport | None:
        """What the others are measured against."""
        return next((each for each in self.tiers if each.baseline), None)

    @property
    def candidates(self) -> tuple[TierReport, ...]:
        return tuple(each for each in self.tiers if not each.baseline)


def to_json(report: Report) -> str:
    """The report as a text of JSON, for a file or an answer."""
    return codec.written(report)


def from_json(text: str | bytes) -> Report:
    """The report in a text that `to_json` wrote; DocumentError says where it is none."""
    return codec.read(Report, text)
