"""Two series of one metric, step by step, under the engine of verdicts: is the experiment the worse one?

A step is a pair: the experiment's value is worse, better, or within a tolerance of the control's. theta is
the share of worse steps less the share of better ones, in (-1, 1). Harm is E_HARM(margin) >= 1/alpha, no harm
is E_NI(margin) >= 1/alpha (statistics A1), valid at every look, so that a window may grow until it suffices.
Steps may depend on those before; what is bounded is each step's expected difference, whatever went before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.decision.eprocess import Differences, confidence_sequence, log_e_harm, log_e_noninferiority
from service.decision.verdict import Decision

MARGIN = 0.25
"""The band that Kayenta's own judge allows."""


class Worse(StrEnum):
    """Which way a metric gets worse."""

    INCREASE = "increase"
    DECREASE = "decrease"
    EITHER = "either"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSet:
    """Both series on the same steps; None where a value is missing."""

    control: Sequence[float | None]
    experiment: Sequence[float | None]
    worse: Worse = Worse.EITHER
    rise: float = 0.0
    """How much more than the control's, as a share of its size, is no difference."""
    fall: float = 0.0
    """The same for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFinding:
    """What one metric amounts to."""

    decision: Decision
    upwards: bool
    """Of a rejection: whether the experiment's values are the higher ones."""
    steps: int
    """With a value in both series."""
    higher: int
    """Steps at which the experiment's value is the higher one, beyond `rise`."""
    lower: int
    """The same for lower, beyond `fall`."""
    theta: float | None
    """Of the direction that is worse, or looks it; None without steps."""
    limits: tuple[float, float]
    """Of theta."""
    reason: str


def compare_series(
    metric: MetricSet, *, margin: float = MARGIN, alpha_accept: float, alpha_harm: float
) -> SetFinding:
    """Under `either`, no harm must be shown both ways, and both ways share alpha_harm.

    ValueError for a margin outside (0, 1).
    """
    if not 0 < margin < 1:
        raise ValueError(f"the margin must be in (0, 1), got {margin}")
    signs = [
        _sign(control, experiment, metric)
        for control, experiment in zip(metric.control, metric.experiment, strict=False)
        if control is not None and experiment is not None
    ]
    steps, higher, lower = len(signs), signs.count(1), signs.count(-1)
    up = Differences.of({1.0: higher, -1.0: lower, 0.0: steps - higher - lower})
    ways = {
        Worse.INCREASE: [(True, up)],
        Worse.DECREASE: [(False, up.mirrored())],
        Worse.EITHER: [(True, up), (False, up.mirrored())],
    }[metric.worse]
    upwards, worst = max(ways, key=lambda way: log_e_harm(way[1], margin))
    harm = log_e_harm(worst, margin) >= math.log(len(ways) / alpha_harm)
    fine = all(log_e_noninferiority(way, margin) >= -math.log(alpha_accept) for _, way in ways)
    decision = Decision.REJECT if harm else Decision.ACCEPT if fine else Decision.UNDECIDED
    limits = confidence_sequence(worst, alpha_accept)
    return SetFinding(
        decision=decision,
        upwards=upwards,
        steps=steps,
        higher=higher,
        lower=lower,
        theta=worst.mean,
        limits=limits,
        reason=f"{decision.value}: higher in {higher} and lower in {lower} of {steps} steps, "
        f"net share worse {limits[0]:+.2f} to {limits[1]:+.2f}, margin {margin:g}",
    )


def _sign(control: float, experiment: float, metric: MetricSet) -> int:
    difference, size = experiment - control, abs(control)
    if difference > metric.rise * size:
        return 1
    return -1 if difference < -metric.fall * size else 0
