"""The share that fails in truth, from an instrument of known error: Rogan and Gladen, with its interval.

An instrument that finds a failure with probability Se (sensitivity) and clears a pass with probability Sp
(specificity) sees the share AP = F Se + (1 - F) (1 - Sp). So (Rogan & Gladen 1978, Am J Epidemiol 107:71-76)

    F = (AP + Sp - 1) / (Se + Sp - 1)

Limits where Se and Sp are themselves estimated from labels (Lang & Reiczigel 2014, Prev Vet Med 113:13-22;
for judges of language models: Lee et al. 2025, arXiv 2511.21140), with z the normal quantile and
AP' = (n AP + z^2/2)/(n + z^2), n' = n + z^2, Se' = (m Se + 1)/(m + 2), m' = m + 2, and Sp' alike with k:

    dF = 2 z^2 (F' Se' (1 - Se')/m' - (1 - F') Sp' (1 - Sp')/k')
    V  = AP' (1 - AP')/n' + F'^2 Se' (1 - Se')/m' + (1 - F')^2 Sp' (1 - Sp')/k'
    limits: F' + dF -+ z sqrt(V) / (Se' + Sp' - 1)

The difference of two arms, each with its own instrument error, has limits by MOVER (Zou & Donner 2008, Stat
Med 27:1693), which takes them for independent: arms of a pair go together, so that the interval is rather too
wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How often an instrument was right, where the truth is known. Counts may be weighted."""

    caught: float = 0.0
    """Failures that it called failures."""
    missed: float = 0.0
    """Failures that it called passes."""
    cleared: float = 0.0
    """Passes that it called passes."""
    blamed: float = 0.0
    """Passes that it called failures."""

    @property
    def sensitivity(self) -> float | None:
        """None without a failure."""
        failures = self.caught + self.missed
        return self.caught / failures if failures else None

    @property
    def specificity(self) -> float | None:
        """None without a pass."""
        passes = self.cleared + self.blamed
        return self.cleared / passes if passes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share with its limits, in [0, 1]."""

    estimate: float
    lower: float
    upper: float


def corrected_share(failing: float, n: float, seen: Seen, *, level: float) -> Rate | None:
    """The true share behind `failing` of n; None where the instrument tells nothing (Se + Sp <= 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    sensitivity, specificity = seen.sensitivity, seen.specificity
    if not n or sensitivity is None or specificity is None or sensitivity + specificity <= 1:
        return None
    z = -float(ndtri((1 - level) / 2))
    failures, passes = seen.caught + seen.missed, seen.cleared + seen.blamed
    estimate = (failing / n + specificity - 1) / (sensitivity + specificity - 1)
    # What makes an interval of an estimate that is exactly 0 or 1: two more labels of each kind.
    more, apparent = n + z**2, (failing + z**2 / 2) / (n + z**2)
    se, sp = (seen.caught + 1) / (failures + 2), (seen.cleared + 1) / (passes + 2)
    spread_se, spread_sp = se * (1 - se) / (failures + 2), sp * (1 - sp) / (passes + 2)
    informative = se + sp - 1
    if informative <= 0:
        return None
    middle = (apparent + sp - 1) / informative
    shift = 2 * z**2 * (middle * spread_se - (1 - middle) * spread_sp)
    variance = apparent * (1 - apparent) / more + middle**2 * spread_se + (1 - middle) ** 2 * spread_sp
    half = z * math.sqrt(variance) / informative
    return Rate(
        estimate=_share(estimate), lower=_share(middle + shift - half), upper=_share(middle + shift + half)
    )


def corrected_difference(baseline: Rate, candidate: Rate) -> Rate:
    """candidate - baseline, in [-1, 1]."""
    estimate = candidate.estimate - baseline.estimate
    below = math.hypot(
        max(0.0, candidate.estimate - candidate.lower), max(0.0, baseline.upper - baseline.estimate)
    )
    above = math.hypot(
        max(0.0, candidate.upper - candidate.estimate), max(0.0, baseline.estimate - baseline.lower)
    )
    return Rate(estimate=estimate, lower=max(-1.0, estimate - below), upper=min(1.0, estimate + above))


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
