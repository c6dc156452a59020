"""The whole decision on a ladder, for every look of an epoch at once: the vectorised form of `decide_ladder`.

For pairs that are all scored, one in a conversation, with coverage and attribution switched off and strata
left out. `test_procedure.py` compares it with the real function, look by look.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.decision.eprocess import G10, H5, Grid, log_factors
from service.decision.evidence import Shown
from service.decision.policy import AlphaSpending, Asked, Criterion, Gate, Hypothesis, LadderRule, Policy
from service.decision.thresholds import thresholds
from tests.benchmarks.crossings import Numbers, mixtures

UNDECIDED, ACCEPT, REJECT = 0, 1, 2
Codes = NDArray[np.int8]
MISSING = -1
"""Of a gate that no load run has looked at yet; afterwards what the latest one showed, by `CODE_OF`."""
CODE_OF = {Shown.UNDECIDED: UNDECIDED, Shown.PASSED: ACCEPT, Shown.FAILED: REJECT}

POLICY = Policy(
    criteria=(
        Criterion(evaluator="structured_output"),
        Criterion(evaluator="long_context_recall"),
        Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT),
    ),
    gates={
        Gate.QUALITY: Asked.REQUIRED,
        Gate.CONTROL: Asked.REQUIRED,
        Gate.COVERAGE: Asked.OFF,
        Gate.ATTRIBUTION: Asked.OFF,
        Gate.SLO: Asked.OFF,
        Gate.MONEY: Asked.OFF,
    },
    # All of alpha on this epoch: what a first attempt may err at most, and what the reference used.
    alpha_spending=AlphaSpending.FIRST_ATTEMPT,
)
GATED = replace(POLICY, gates={**POLICY.gates, Gate.SLO: Asked.REQUIRED, Gate.MONEY: Asked.REQUIRED})
"""The same with the two gates that a load run decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Chances that only the candidate, and that only the baseline, fails."""

    harm: float
    benefit: float


def drawn_counts(
    generator: np.random.Generator, rates: tuple[Rates, ...], *, looks: int, step: int
) -> Numbers:
    """Harm, benefit and equal pairs of each criterion so far, a look every `step` pairs."""
    drawn = [
        generator.multinomial(step, [rate.harm, rate.benefit, 1 - rate.harm - rate.benefit], size=looks)
        for rate in rates
    ]
    return np.stack(drawn).cumsum(axis=1).astype(np.float64)


def decide_looks(
    policy: Policy, tiers: Numbers, control: Numbers, load_runs: Mapping[Gate, Codes] | None = None
) -> Codes:
    """The decision on each tier at each look (tiers x looks).

    `tiers`: counts of harm, benefit and equal pairs so far (tiers x criteria x looks x 3); `control` without
    the axis of tiers. `load_runs`: for each gate that a load run decides, its state (tiers x looks).
    """
    if policy.ladder_rule is not LadderRule.FIXED_SEQUENCE:
        raise ValueError("only ladders in fixed sequence are simulated")
    limits = thresholds(policy, tiers=tiers.shape[0], attempt=1)
    alarm = control_alarms(control, limits.warn)
    ready = _enough(policy, control)
    decisions = np.zeros((tiers.shape[0], tiers.shape[2]), dtype=np.int8)
    failed, shown = np.zeros_like(decisions, dtype=bool), np.ones_like(decisions, dtype=bool)
    for states in (load_runs or {}).values():
        failed |= states == REJECT
        shown &= states == ACCEPT
    below = np.ones(tiers.shape[2], dtype=bool)
    for tier, counts in enumerate(tiers):
        harm, passing = failed[tier].copy(), shown[tier].copy()
        for criterion, table in zip(policy.criteria, counts, strict=True):
            pairs = table.sum(axis=-1)
            harmful = _harm(criterion, table) >= limits.harm
            harm |= harmful
            passing &= ~harmful & (pairs >= criterion.min_pairs)
            passing &= table[:, 1] <= criterion.baseline_failure_cap * pairs
            passing &= _noninferiority(criterion, table) >= limits.accept
        decisions[tier, harm & ~alarm] = REJECT
        decisions[tier, passing & ready & below & ~harm & ~alarm] = ACCEPT
        below = decisions[tier] == ACCEPT
    return decisions


def control_alarms(control: Numbers, log_threshold: float) -> NDArray[np.bool_]:
    """At which looks the baseline differs from itself, on any criterion in either direction."""
    loudest = np.maximum(_log_e(control, 0.0, H5, down=True), _log_e(control, 0.0, H5, down=False))
    return np.asarray((loudest >= log_threshold).any(axis=0))


def _enough(policy: Policy, control: Numbers) -> NDArray[np.bool_]:
    least = np.array([criterion.min_pairs for criterion in policy.criteria])
    return np.asarray((control.sum(axis=-1) >= least[:, None]).all(axis=0))


def _harm(criterion: Criterion, table: Numbers) -> Numbers:
    upward = _log_e(table, criterion.margin, H5, down=True)
    if criterion.hypothesis is Hypothesis.NON_INFERIOR:
        return upward
    mirrored = table[..., [1, 0, 2]]
    return np.asarray(np.logaddexp(upward, _log_e(mirrored, criterion.margin, H5, down=True)) - math.log(2))


def _noninferiority(criterion: Criterion, table: Numbers) -> Numbers:
    upward = _log_e(table, criterion.margin, G10, down=False)
    if criterion.hypothesis is Hypothesis.NON_INFERIOR:
        return upward
    return np.minimum(upward, _log_e(table[..., [1, 0, 2]], criterion.margin, G10, down=False))


def _log_e(counts: Numbers, margin: float, grid: Grid, *, down: bool) -> Numbers:
    """log E_NI(margin), or with `down` log E_HARM(margin), of tables of harm, benefit and equal pairs."""
    signs = np.array([-1.0, 1.0, 0.0]) if down else np.array([1.0, -1.0, 0.0])
    factors = log_factors(signs, -margin if down else margin, grid)
    return mixtures(counts @ factors.T, grid)
