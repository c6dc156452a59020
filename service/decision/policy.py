"""What a person asks for: criteria, margins, error rates, gates. Defaults are production's (statistics A)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from service.decision.terms import DEFAULT_TERMS, Terms

DECISIVE_BY_DEFAULT = ("structured_output", "long_context_recall", "refusal")
"""What a policy without criteria decides by. Every other evaluator is shown until a policy names it."""


class Hypothesis(StrEnum):
    """What has to be shown of a criterion."""

    NON_INFERIOR = "non_inferior"
    """The candidate fails at most `margin` more often."""
    EQUIVALENT = "equivalent"
    """The candidate fails neither `margin` more nor `margin` less often; harm either way is harm."""


class Gate(StrEnum):
    """A condition on acceptance; `quality` is the criteria themselves and cannot be switched off."""

    QUALITY = "quality"
    CONTROL = "control"
    COVERAGE = "coverage"
    ATTRIBUTION = "attribution"
    """Baseline and candidate differ in precision and in nothing else."""
    SLO = "slo"
    MONEY = "money"


class Asked(StrEnum):
    """Whether the policy asks for a gate."""

    REQUIRED = "required"
    OFF = "off"


class Role(StrEnum):
    """What a criterion is for."""

    DECISIVE = "decisive"
    SHOWN = "shown"
    """Found and printed; it neither accepts nor rejects, and shares no error rate."""
    MUTED = "muted"
    """Scored and stored; no finding is made of it."""


class Units(StrEnum):
    """What counts as one unit of evidence (statistics A2)."""

    FIRST_SAMPLED = "first_sampled"
    """The first sampled request of a conversation, at once."""
    CLOSED_CONVERSATIONS = "closed_conversations"
    """A conversation with all its sampled requests, once it is closed."""


class BaselineAfterApproval(StrEnum):
    """What becomes of the baseline once a tier is approved: it decides how much a wrong approval costs."""

    KEPT = "kept"
    SWITCHED_OFF = "switched_off"
    """Nothing is left to fall back to or to compare with: acceptance is held to half of `alpha_accept`."""


class AlphaSpending(StrEnum):
    """How `alpha_accept` is shared over the epochs in which one tier is submitted again (statistics A5)."""

    OVER_ATTEMPTS = "over_attempts"
    """Attempt j gets alpha 6 / (pi^2 j^2): any number of attempts, together at most alpha."""
    FIRST_ATTEMPT = "first_attempt"
    """The first attempt gets all of alpha, so no later one can be accepted."""


class LadderRule(StrEnum):
    """How the tiers of a ladder share `alpha_accept` (statistics A4)."""

    FIXED_SEQUENCE = "fixed_sequence"
    """Each at full alpha, and only after the rung below was accepted."""
    INDEPENDENT = "independent"
    """Each at alpha / tiers under test, in any order."""


class OnHarm(StrEnum):
    """What the guard does about a tier that serves clients and is shown to do harm."""

    ROLL_BACK = "roll_back"
    """One rung, by itself."""
    ASK = "ask"
    """Says so once, and leaves it to a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One evaluator's hypothesis."""

    evaluator: str
    hypothesis: Hypothesis = Hypothesis.NON_INFERIOR
    margin: float = 0.01
    """Largest tolerable rise of the failure rate, as a share (0.01 = 1 percentage point)."""
    min_pairs: int = 300
    """With fewer nothing is accepted; harm may be shown before."""
    baseline_failure_cap: float = 0.5
    """Above this share of baseline failures the criterion measures nothing and cannot pass."""
    role: Role = Role.DECISIVE
    max_pairs: int | None = None
    """N_max as a person wants it; None = planned at `min_pairs` (statistics A13)."""

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise ValueError(f"margin of {self.evaluator} must be in (0, 1), got {self.margin}")
        if self.min_pairs < 1:
            raise ValueError(f"min_pairs of {self.evaluator} must be at least 1, got {self.min_pairs}")
        if self.max_pairs is not None and self.max_pairs < self.min_pairs:
            raise ValueError(
                f"max_pairs of {self.evaluator} must be at least its min_pairs ({self.min_pairs}), "
                f"got {self.max_pairs}"
            )
        if not 0 < self.baseline_failure_cap <= 1:
            raise ValueError(f"baseline_failure_cap of {self.evaluator} must be in (0, 1]")


def _all_required() -> dict[Gate, Asked]:
    return dict.fromkeys(Gate, Asked.REQUIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All criteria, the error rates, and which gates are asked for."""

    criteria: tuple[Criterion, ...]
    alpha_accept: float = 0.05
    """Of accepting a tier that is worse than a margin on any criterion (A3)."""
    alpha_harm: float = 0.05
    """Of rejecting one that is within all margins, over all criteria and tiers (A3)."""
    alpha_warn: float = 0.05
    """Of warning of one that is no worse at all."""
    gates: Mapping[Gate, Asked] = field(default_factory=_all_required)
    on_harm: OnHarm = OnHarm.ROLL_BACK
    max_unscored: float = 0.01
    """Largest share of due pairs without a score before the verdict is withheld."""
    alpha_spending: AlphaSpending = AlphaSpending.OVER_ATTEMPTS
    ladder_rule: LadderRule = LadderRule.FIXED_SEQUENCE
    alpha_strata: float = 0.01
    """Of rejecting a tier for one stratum although none is worse than the margin, over all of them."""
    units: Units = Units.FIRST_SAMPLED
    idle_seconds: float = 1800.0
    """After which a conversation is closed, with `units: closed_conversations`."""
    longest_seconds: float | None = None
    """T_max: an epoch older than this without a decision is not shown (statistics A4); None = no end."""

    baseline_after_approval: BaselineAfterApproval = BaselineAfterApproval.KEPT
    tenant_share_cap: float | None = None
    """Largest share of a criterion's units that one tenant may hold in an acceptance; None = no cap."""
    alpha_gates: float = 0.05
    """Of passing the SLO or the money gate wrongly, and of failing it wrongly, over all load runs."""
    load_runs: Terms = DEFAULT_TERMS
    """What load runs are held to."""

    @property
    def alpha_approval(self) -> float:
        """`alpha_accept`, or half of it when approval switches the baseline off (statistics Defaults)."""
        return self._halved(self.alpha_accept)

    @property
    def alpha_of_gates(self) -> float:
        """`alpha_gates`, halved likewise."""
        return self._halved(self.alpha_gates)

    def _halved(self, alpha: float) -> float:
        return alpha if self.baseline_after_approval is BaselineAfterApproval.KEPT else alpha / 2

    @property
    def decisive(self) -> tuple[Criterion, ...]:
        """The criteria that decide."""
        return tuple(each for each in self.criteria if each.role is Role.DECISIVE)

    @property
    def visible(self) -> tuple[Criterion, ...]:
        """The criteria of which findings are made."""
        return tuple(each for each in self.criteria if each.role is not Role.MUTED)

    def __hash__(self) -> int:
        """By what policies differ in most; equality has the rest."""
        return hash((self.criteria, self.alpha_accept, self.alpha_harm, self.load_runs))

    def __post_init__(self) -> None:
        if not self.criteria:
            raise ValueError("a policy without criteria would accept anything")
        if not self.decisive:
            raise ValueError("a policy without a decisive criterion would accept anything")
        names = [criterion.evaluator for criterion in self.criteria]
        if len(set(names)) != len(names):
            raise ValueError(f"a criterion is named twice: {names}")
        for name in ("alpha_accept", "alpha_harm", "alpha_warn", "alpha_strata"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be in (0, 1), got {getattr(self, name)}")
        if not 0 < self.alpha_gates < 0.5:
            raise ValueError(f"alpha_gates must be in (0, 0.5), got {self.alpha_gates}")
        if self.tenant_share_cap is not None and not 0 < self.tenant_share_cap <= 1:
            raise ValueError(f"tenant_share_cap must be in (0, 1], got {self.tenant_share_cap}")
        if not 0 <= self.max_unscored <= 1:
            raise ValueError(f"max_unscored must be in [0, 1], got {self.max_unscored}")
        if self.gates.get(Gate.QUALITY) is not Asked.REQUIRED:
            raise ValueError("the quality gate cannot be switched off")
        if missing := set(Gate) - set(self.gates):
            raise ValueError(f"gates not mentioned: {sorted(missing)}")
