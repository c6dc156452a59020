"""Harm in one stratum: how often the worst of many is wrongly found harmful, and how soon a broken one is.

Every unit is in one of as many strata as there can be, and each is held to M x S / alpha_strata (ADR 17).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from service.decision.multiplicity import log_harm_threshold
from service.strata import UNIVERSE
from tests.benchmarks.crossings import Stream, first_harm, first_pass
from tests.benchmarks.procedure import POLICY
from tests.benchmarks.rows import ALPHA, MARGIN, PASS, Row, Sizes, share, typical
from tests.benchmarks.streams import pair_stream

DISCORDANCE = 0.02
BROKEN_SHARE = 0.05
"""Of the traffic, in the stratum that breaks."""


def strata_threshold(criteria: int, tiers: int) -> float:
    """What log E_HARM of one stratum is compared with."""
    return log_harm_threshold(criteria=criteria, tiers=tiers, strata=len(UNIVERSE), alpha=POLICY.alpha_strata)


def worst_stratum(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """All strata at the margin; then one stratum that breaks while the others stay equal."""
    count = len(UNIVERSE)
    each = sizes.horizon // count
    harm, benefit = (DISCORDANCE + MARGIN) / 2, (DISCORDANCE - MARGIN) / 2
    # One criterion and one tier: the lowest threshold there is, so the worst case of the error.
    threshold = strata_threshold(1, 1)
    rejected, uncorrected = [], []
    for _ in range(sizes.strata):
        first = [
            (first_harm(stream, MARGIN, threshold), first_harm(stream, MARGIN, PASS))
            for stream in (pair_stream(generator, 4 * each, harm, benefit) for _ in range(count))
        ]
        rejected.append(any(math.isfinite(found) for found, _ in first))
        uncorrected.append(any(math.isfinite(found) for _, found in first))
    words = {"reference": "-", "source": "-"}
    case = f"{count} strata, each at the margin"
    yield share(rejected, measured="any wrongly harmful", case=case, bound=POLICY.alpha_strata, **words)
    yield share(
        uncorrected, measured="for contrast: each stratum held to 1 / alpha alone", case=case, **words
    )
    for rise in (0.1, 0.2, 0.5):
        for criteria, tiers in ((1, 1), (3, 4)):
            yield from _broken(generator, sizes, rise, criteria, tiers)


def _broken(
    generator: np.random.Generator, sizes: Sizes, rise: float, criteria: int, tiers: int
) -> Iterator[Row]:
    """Pairs of all traffic until the tier is rejected for its broken stratum, and what comes of it first."""
    by_stratum, overall, accepted = [], [], []
    for _ in range(sizes.pairs // 4):
        broken = generator.random(sizes.horizon) < BROKEN_SHARE
        harm = np.where(broken, rise + DISCORDANCE / 2, DISCORDANCE / 2)
        drawn = generator.random(sizes.horizon)
        pairs = np.where(drawn < harm, 1.0, np.where(drawn < harm + DISCORDANCE / 2, -1.0, 0.0))
        within = first_harm(Stream.of(pairs[broken]), MARGIN, strata_threshold(criteria, tiers))
        reached = np.flatnonzero(broken)
        by_stratum.append(reached[int(within) - 1] + 1 if math.isfinite(within) else math.inf)
        whole = Stream.of(pairs)
        overall.append(
            first_harm(whole, MARGIN, log_harm_threshold(criteria=criteria, tiers=tiers, alpha=ALPHA))
        )
        accepted.append(first_pass(whole, MARGIN, PASS))
    first = np.minimum(by_stratum, overall)
    case = (
        f"+{100 * rise:g} pp in {BROKEN_SHARE:.0%} of the traffic, {100 * rise * BROKEN_SHARE:g} pp in all, "
        f"criteria x tiers: {criteria * tiers}"
    )
    words = {"case": case, "reference": "-", "source": "-"}
    yield typical(by_stratum, measured="pairs to reject for the stratum, median", **words)
    yield typical(overall, measured="for contrast: over all traffic, median", **words)
    yield share(np.array(accepted) < first, measured="within the margin over all before that", **words)
