"""The SLO gate: did the tier miss its latency goal no more often than the baseline, in one load run?

A load run sends the same requests to both arms, alternating in blocks at equal load, at a rate where the
baseline passes about 99 %. A request that missed the SLO failed, so the run is a table of pairs; requests of
one block resemble one another, so the block is the unit: one `Triple` each (statistics A10, B5).

    t = Tango's z(delta_slo) / sqrt(DEFF)           DEFF of Rao & Scott over blocks, guarded (`clusters`)
    passed   P(T <= t) <= alpha_j                   T: Student's t with blocks - 1 degrees of freedom
    failed   P(T >= t) <= alpha_j                   harm beyond delta_slo

A handful of blocks estimates its own variance badly, hence t (Thomas & Rao 1987, JASA 82:630) where Rao &
Scott have a normal. One look per run. The j-th run of an epoch is held to alpha_j, as epochs are (A5): a run
a week until one passes must not work, and must not condemn either. Who runs one asks `held_to` of
`service.store.verdicts.measurements` for j and alpha_j, and keeps what the gate says by `put_measurement`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from service.decision import tango
from service.decision.binomial import highest_share, lowest_share
from service.decision.clusters import ASSUMED_CORRELATION, design_effect
from service.decision.evidence import Measured, Shown
from service.decision.planning import check_scenario, fixed_pairs
from service.decision.tally import Tally
from service.decision.terms import DEFAULT_TERMS, Terms
from service.decision.wording import compared_shares, units

NO_ALPHA = Measured(shown=Shown.UNDECIDED, reason="no error rate is left: the first attempt had all of it")


@dataclass(frozen=True, slots=True, kw_only=True)
class SloPlan:
    """What a load run needs, before it begins, and what its budget affords; in requests of each arm."""

    wanted: int
    """For the power asked for (.9) if the tier is equal: how far a run extends its window."""
    least: int
    """For the least power (.8): with less, the run is not worth its load."""
    affordable: int
    """By the budget of its job."""
    least_power: float = DEFAULT_TERMS.least_power

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
            f"the least for a power of {self.least_power:g}",
        )


def plan_run(
    *,
    miss_share: float,
    affordable: int,
    alpha: float,
    terms: Terms = DEFAULT_TERMS,
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
                margin=terms.slo_margin,
                discordance=2 * miss_share * (1 - miss_share),
                alpha=alpha,
                power=power,
                design_effect=design_effect,
            )
        )

    return SloPlan(
        wanted=needed(terms.power),
        least=needed(terms.least_power),
        affordable=affordable,
        least_power=terms.least_power,
    )


def p_values(
    blocks: Tally, *, margin: float = DEFAULT_TERMS.slo_margin, correlation: float = ASSUMED_CORRELATION
) -> tuple[float, float]:
    """One-sided p against a rise of at least `margin`, and one of at most `margin`; 1 below 2 blocks."""
    degrees = blocks.conversations - 1
    if degrees < 1:
        return 1.0, 1.0
    statistic = t_statistic(blocks, margin=margin, effect=design_effect(blocks, correlation=correlation))
    return float(stdtr(degrees, statistic)), float(stdtr(degrees, -statistic))


def t_statistic(blocks: Tally, *, margin: float, effect: float) -> float:
    """Tango's z(margin) over the root of the design effect."""
    return tango.z(blocks.harm, blocks.benefit, blocks.n, margin, design_effect=effect)


def slo_gate(blocks: Tally, *, alpha: float, terms: Terms = DEFAULT_TERMS) -> Measured:
    """What one load run shows. `blocks`: a triple for each block, its requests, harms and benefits.

    `alpha` is what this run is held to; at 0 nothing can be shown. The correlation within a block is assumed
    while fewer than 20 blocks are discordant; take it from load runs of the baseline against itself. Total on
    every tally; ValueError for an `alpha` outside [0, 1).
    """
    if not alpha:
        return NO_ALPHA
    margin = terms.slo_margin
    check_scenario(margin=margin, difference=0, discordance=0, alpha=alpha)
    count = blocks.conversations
    numbers: dict[str, float | int | str] = {
        "margin": margin,
        "alpha": alpha,
        "blocks": count,
        "requests": blocks.n,
        "missed by the candidate alone": blocks.harm,
        "missed by the baseline alone": blocks.benefit,
        "missed by both": blocks.both_failed,
    }

    def said(shown: Shown, reason: str) -> Measured:
        return Measured(shown=shown, reason=reason, numbers=numbers)

    if count < terms.least_blocks:
        return said(Shown.UNDECIDED, f"blocks of the load run ({count}) < {terms.least_blocks}")
    missing = blocks.baseline_failures / blocks.n
    if missing > terms.most_baseline_misses:
        found, allowed = compared_shares(missing, terms.most_baseline_misses)
        return said(Shown.UNDECIDED, f"rate too high: baseline miss share {found} > {allowed}")
    effect = design_effect(blocks, correlation=terms.block_correlation)
    within, beyond = p_values(blocks, margin=margin, correlation=terms.block_correlation)
    numbers |= {
        "blocks (n, b, c)": units(blocks),
        "correlation in a block, assumed: rho": terms.block_correlation,
        "design effect": effect,
        "t": t_statistic(blocks, margin=margin, effect=effect),
        "p within the margin": within,
        "p beyond the margin": beyond,
    }
    rise = f"miss share {(blocks.harm - blocks.benefit) / blocks.n:+.4f} over {blocks.n:,} requests"
    for p_value, shown, side in ((within, Shown.PASSED, "below"), (beyond, Shown.FAILED, "above")):
        if p_value <= alpha:
            found, allowed = compared_shares(p_value, alpha)
            return said(shown, f"{rise}: {side} {margin:g} at p {found} <= {allowed}")
    least = fixed_pairs(
        margin=margin,
        discordance=(blocks.harm + blocks.benefit) / blocks.n,
        alpha=alpha,
        power=terms.least_power,
        design_effect=effect,
    )
    if blocks.n < least:
        return said(
            Shown.UNDECIDED,
            f"slo_power: requests ({blocks.n:,}) < {math.ceil(least):,}, "
            f"the least for a power of {terms.least_power:g}",
        )
    found, allowed = compared_shares(within, alpha)
    return said(Shown.UNDECIDED, f"{rise}: not shown below {margin:g}: p {found} > {allowed}")


def baseline_slo(
    blocks: Sequence[tuple[int, int]], *, alpha: float, terms: Terms = DEFAULT_TERMS
) -> Measured:
    """Whether the baseline itself keeps its SLO at this rate. `blocks`: requests and misses of each.

    Passed if the upper limit of its miss share over blocks (Student's t, weighted by requests) is at most
    `most_baseline_misses`, failed if the lower is above: where a rollback asks whether the rung below holds.
    """
    if not alpha:
        return NO_ALPHA
    if any(not 0 <= missed <= requests for requests, missed in blocks):
        raise ValueError("a block misses no more requests than it has")
    most = terms.most_baseline_misses
    counted = [(requests, missed) for requests, missed in blocks if requests]
    requests, missed = (sum(each) for each in zip(*counted, strict=True)) if counted else (0, 0)
    numbers: dict[str, float | int | str] = {
        "most misses": most,
        "alpha": alpha,
        "blocks": len(counted),
        "requests": requests,
        "missed": missed,
    }
    if len(counted) < terms.least_blocks:
        reason = f"blocks of the load run ({len(counted)}) < {terms.least_blocks}"
        return Measured(shown=Shown.UNDECIDED, reason=reason, numbers=numbers)
    share, count = missed / requests, len(counted)
    # Of a ratio of sums; and never narrower than independent requests would have it (Clopper & Pearson 1934),
    # for blocks without a miss have no variance and prove little.
    between = math.fsum((m - share * r) ** 2 for r, m in counted) * count / (count - 1) / requests**2
    half = -float(stdtrit(count - 1, alpha)) * math.sqrt(between)
    lower = min(share - half, lowest_share(missed, requests, alpha))
    upper = max(share + half, highest_share(missed, requests, 1 - alpha))
    numbers |= {"lower limit": max(0.0, lower), "upper limit": min(1.0, upper)}
    told = f"miss share {share:.4f} over {requests:,} requests"
    if upper <= most:
        found, allowed = compared_shares(upper, most)
        return Measured(
            shown=Shown.PASSED, reason=f"{told}: upper limit {found} <= {allowed}", numbers=numbers
        )
    if lower > most:
        found, allowed = compared_shares(lower, most)
        return Measured(
            shown=Shown.FAILED, reason=f"{told}: lower limit {found} > {allowed}", numbers=numbers
        )
    return Measured(
        shown=Shown.UNDECIDED, reason=f"{told}: its limits enclose the {most:g} allowed", numbers=numbers
    )
