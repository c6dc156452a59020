"""The SLO gate: did the tier miss its latency goal no more often than the baseline, in one load run?

A load run sends the same requests to both arms, alternating in blocks at equal load, at a rate where the
baseline passes about 99 %. A request that missed the SLO failed, so the run is a table of pairs; requests of
one block resemble one another, so the block is the unit: one `Triple` each (statistics A10, B5).

    t = Tango's z(delta_slo) / sqrt(DEFF)           DEFF of Rao & Scott over blocks, guarded (`clusters`)
    passed   P(T <= t) <= alpha_j                   T: Student's t with blocks - 1 degrees of freedom
    failed   P(T >= t) <= alpha_j                   harm beyond delta_slo

A handful of blocks estimates its own variance badly, hence t (Thomas & Rao 1987, JASA 82:630) where Rao &
Scott have a normal. One look per run. The j-th run of an epoch is to be held to alpha_j, as epochs are (A5,
`multiplicity.attempt_alpha`): a run a week until one passes must not work, and must not condemn either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr

from service.decision import tango
from service.decision.clusters import ASSUMED_CORRELATION, design_effect
from service.decision.evidence import Measured, Shown
from service.decision.planning import check_scenario, fixed_pairs
from service.decision.tally import Tally
from service.decision.wording import compared_shares

SLO_MARGIN = 0.01
"""delta_slo: the largest tolerable rise of the share of requests that miss the SLO."""
LEAST_BLOCKS = 8
MOST_BASELINE_MISSES = 0.03
"""Beyond this share of misses the rate was too high: what both arms miss together says nothing."""
LEAST_POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class SloPlan:
    """What a load run needs, before it begins, and what its budget affords; in requests of each arm."""

    wanted: int
    """For a power of .9 if the tier is equal: how far a run extends its window."""
    least: int
    """For a power of .8: with less, the run is not worth its load."""
    affordable: int

    @property
    def requests(self) -> int:
        """How many to send; 0 when the budget cannot reach the least."""
        return min(self.wanted, self.affordable) if self.affordable >= self.least else 0

    @property
    def without_power(self) -> Measured | None:
        """What the gate says instead of a run; None when the run can be afforded."""
        if self.requests:
            return None
        return Measured(
            shown=Shown.UNDECIDED,
            reason=f"slo_power: affordable requests ({self.affordable:,}) < {self.least:,}, "
            f"the least for a power of {LEAST_POWER:g}",
        )


def plan_run(
    *,
    miss_share: float,
    affordable: int,
    alpha: float,
    margin: float = SLO_MARGIN,
    design_effect: float = 1.0,
) -> SloPlan:
    """At the last known share of misses: about 1,900 requests at 1 %, margin .01, alpha .05; 5,100 at 3 %.

    Both arms are taken to miss independently: discordance 2 p (1 - p). ValueError outside [0, 1].
    """
    if not 0 <= miss_share <= 1:
        raise ValueError(f"the share of misses must be in [0, 1], got {miss_share}")
    if affordable < 0:
        raise ValueError(f"affordable requests must be at least 0, got {affordable}")

    def needed(power: float) -> int:
        return math.ceil(
            fixed_pairs(
                margin=margin,
                discordance=2 * miss_share * (1 - miss_share),
                alpha=alpha,
                power=power,
                design_effect=design_effect,
            )
        )

    return SloPlan(wanted=needed(0.9), least=needed(LEAST_POWER), affordable=affordable)


def p_values(
    blocks: Tally, *, margin: float = SLO_MARGIN, correlation: float = ASSUMED_CORRELATION
) -> tuple[float, float]:
    """One-sided p against a rise of at least `margin`, and one of at most `margin`; 1 below 2 blocks."""
    degrees = blocks.conversations - 1
    if degrees < 1:
        return 1.0, 1.0
    effect = design_effect(blocks, correlation=correlation)
    statistic = tango.z(blocks.harm, blocks.benefit, blocks.n, margin, design_effect=effect)
    return float(stdtr(degrees, statistic)), float(stdtr(degrees, -statistic))


def slo_gate(
    blocks: Tally,
    *,
    alpha: float,
    margin: float = SLO_MARGIN,
    correlation: float = ASSUMED_CORRELATION,
) -> Measured:
    """What one load run shows. `blocks`: a triple for each block, its requests, harms and benefits.

    `alpha` is what this run is held to. `correlation` within a block is assumed while fewer than 20 blocks
    are discordant; take it from load runs of the baseline against itself. Total on every tally; ValueError
    for an `alpha` or a `margin` outside (0, 1).
    """
    check_scenario(margin=margin, difference=0, discordance=0, alpha=alpha)
    count = blocks.conversations
    if count < LEAST_BLOCKS:
        return Measured(shown=Shown.UNDECIDED, reason=f"blocks of the load run ({count}) < {LEAST_BLOCKS}")
    missing = blocks.baseline_failures / blocks.n
    if missing > MOST_BASELINE_MISSES:
        found, allowed = compared_shares(missing, MOST_BASELINE_MISSES)
        return Measured(
            shown=Shown.UNDECIDED, reason=f"rate too high: baseline miss share {found} > {allowed}"
        )
    within, beyond = p_values(blocks, margin=margin, correlation=correlation)
    rise = f"miss share {(blocks.harm - blocks.benefit) / blocks.n:+.4f} over {blocks.n:,} requests"
    for p_value, shown, side in ((within, Shown.PASSED, "below"), (beyond, Shown.FAILED, "above")):
        if p_value <= alpha:
            found, allowed = compared_shares(p_value, alpha)
            return Measured(shown=shown, reason=f"{rise}: {side} {margin:g} at p {found} <= {allowed}")
    least = fixed_pairs(
        margin=margin,
        discordance=(blocks.harm + blocks.benefit) / blocks.n,
        alpha=alpha,
        power=LEAST_POWER,
        design_effect=design_effect(blocks, correlation=correlation),
    )
    if blocks.n < least:
        return Measured(
            shown=Shown.UNDECIDED,
            reason=f"slo_power: requests ({blocks.n:,}) < {math.ceil(least):,}, "
            f"the least for a power of {LEAST_POWER:g}",
        )
    found, allowed = compared_shares(within, alpha)
    return Measured(
        shown=Shown.UNDECIDED, reason=f"{rise}: not shown below {margin:g}: p {found} > {allowed}"
    )
