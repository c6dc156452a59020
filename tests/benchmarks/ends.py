"""Where an epoch stops looking: how many tiers are accepted, rejected or end as `not_shown` at N_max.

One criterion, looked at after every pair. N_max = 6 x n90(psi_plan) is fixed at the minimum of pairs from the
discordance until then (statistics A13).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from service.decision.planning import max_pairs
from service.decision.policy import Criterion
from tests.benchmarks.crossings import Stream, first_harm, first_pass
from tests.benchmarks.procedure import Rates
from tests.benchmarks.rows import ALPHA, MARGIN, PASS, Row, Sizes, share, typical
from tests.benchmarks.streams import pair_stream

MIN_PAIRS = Criterion(evaluator="any").min_pairs


def planned_end(stream: Stream) -> int:
    """N_max as the epoch fixes it."""
    discordant = int(np.searchsorted(stream.at, MIN_PAIRS, side="right"))
    return max_pairs(margin=MARGIN, alpha=ALPHA, discordant=discordant, pairs=MIN_PAIRS)


CASES = (
    (0.01, 0.0),
    (0.02, 0.0),
    (0.05, 0.0),
    (0.02, 0.003),
    (0.05, 0.003),
    (0.0101, MARGIN),
    (0.02, MARGIN),
    (0.05, MARGIN),
)
"""Discordance and true rise."""


def ends(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Equal tiers, tiers with a third of the margin, and tiers exactly at it."""
    words = {"reference": "-", "source": "-"}
    for discordance, rise in CASES:
        rates = Rates(harm=(discordance + rise) / 2, benefit=(discordance - rise) / 2)
        planned, accepted, rejected = [], [], []
        for _ in range(sizes.pairs // 4):
            stream = pair_stream(generator, 4 * sizes.horizon, rates.harm, rates.benefit)
            end = planned_end(stream)
            harmed = first_harm(stream, MARGIN, PASS)
            # Acceptance waits for the minimum of pairs.
            passed = max(first_pass(stream, MARGIN, PASS), MIN_PAIRS)
            planned.append(end)
            accepted.append(passed <= end and passed < harmed)
            rejected.append(harmed <= end and harmed <= passed)
        case = f"until N_max, true rise {100 * rise:g} pp, discordance {100 * discordance:g} %"
        yield typical(planned, measured="N_max, median", case=case, **words)
        wrong = rise >= MARGIN
        yield share(
            accepted,
            measured="wrongly accepted" if wrong else "accepted",
            case=case,
            bound=ALPHA if wrong else None,
            **words,
        )
        yield share(rejected, measured="wrongly rejected", case=case, bound=ALPHA, **words)
        neither = ~(np.array(accepted) | np.array(rejected))
        yield share(neither, measured="not shown", case=case, **words)
