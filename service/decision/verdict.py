"""A verdict and its findings: three answers, and the worst finding wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.decision.policy import BaselineAfterApproval, Gate, Role


class Decision(StrEnum):
    """The three answers, of a criterion and of a tier."""

    ACCEPT = "accept"
    UNDECIDED = "undecided"
    REJECT = "reject"


class GateState(StrEnum):
    """What is known of a gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """There is evidence, and it shows neither."""
    MISSING = "missing"
    """It is required, and there is none."""
    NOT_ASKED = "not_asked"
    """The policy switched it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Limits of theta, the rise of the failure rate, in (-1, 1); positive is worse."""

    lower: float
    upper: float
    level: float
    """Coverage, such as .95."""
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogE:
    """Natural logarithms of the e-values (statistics A1); compare with log(1/alpha)."""

    noninferiority: float
    harm: float
    warn: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumHarm:
    """One criterion in one stratum of the traffic, as evidence of harm there."""

    stratum: str
    n: int
    conversations: int
    harm: int
    benefit: int
    estimate: float
    """Mean over conversations of (harm - benefit) / n, each counted once."""
    log_e_harm: float
    """log E_HARM(margin) within the stratum; where scores are missing, had they spoken against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What people's labels say of a criterion's difference (`correction`, `labelled`)."""

    labels: int
    """Pairs of which people say what they are."""
    undecided: int
    """Pairs that they looked at and left open."""
    estimate: float
    """Rise of the failure rate by their labels."""
    interval: Interval
    """For one look; it never decides by itself."""
    raw_estimate: float
    """By the evaluator alone."""
    raw_interval: Interval
    suffices: bool
    """Whether it has taken the place of the raw difference."""
    missing: str = ""
    """What the labels lack; empty when they suffice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One criterion's state, with every number it rests on."""

    criterion: str
    decision: Decision
    """`accept` = shown within the margin, `reject` = harm shown (statistics A3)."""
    reason: str
    n: int
    """Pairs that count."""
    conversations: int
    """Units that these are of."""
    harm: int
    """Pairs of which only the candidate failed."""
    benefit: int
    """Pairs of which only the baseline failed."""
    estimate: float | None
    """Mean over conversations of (harm - benefit) / n, each counted once, as the interval is of it; None
    without pairs: absence of evidence is never a number. By people's labels where these suffice."""
    interval: Interval
    margin: float
    log_e: LogE
    warn: bool
    more_pairs: int | None
    """Expected further pairs to `accept` at the present discordance; None when decided or out of sight."""
    role: Role = Role.DECISIVE
    not_shown: bool = False
    """Undecided with all the pairs, or all the time, that the criterion may ask for (A4)."""
    worst_strata: tuple[StratumHarm, ...] = ()
    """The strata with most evidence of harm, worst first, whether or not it is enough."""
    log_e_holm: float | None = None
    """The harm e-value adjusted over the ladder by e-Holm (B3); compares with log(1/alpha_harm) by itself.
    Shown; None outside a ladder and for criteria that do not decide."""
    correction: Correction | None = None
    """None without labels."""

    @property
    def raw(self) -> tuple[float | None, Interval]:
        """Estimate and limits by the evaluator alone, whether or not labels took their place."""
        if self.correction is None:
            return self.estimate, self.interval
        return self.correction.raw_estimate, self.correction.raw_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the evidence on one tier amounts to under one policy."""

    model: str
    tier: str
    decision: Decision
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]
    gates: Mapping[Gate, GateState]
    epoch: str
    attempt: int = 1
    alpha_accept: float = 0.05
    """The error rate this attempt is held to; 0 when none is left for it."""
    not_shown: bool = False
    """Undecided past N_max or T_max: the ladder treats it as a reject (A4)."""
    baseline_after_approval: BaselineAfterApproval = BaselineAfterApproval.KEPT
    """Switched off: `alpha_accept` is already halved for it."""

    @property
    def decisive(self) -> tuple[Finding, ...]:
        """The findings that decide."""
        return tuple(each for each in self.findings if each.role is Role.DECISIVE)
