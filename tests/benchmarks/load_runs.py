"""What is looked at once simulated: the money gate after a load run, and Tango's test over conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from service.decision import tango
from service.decision.clusters import design_effect
from service.decision.economics import (
    Estimate,
    mean_of_blocks,
    money_shown,
    net_benefit,
    request_cost,
    unit_cost,
)
from service.decision.evidence import Shown
from service.decision.tally import Tally, Triple
from tests.benchmarks.procedure import Rates
from tests.benchmarks.rows import ALPHA, MARGIN, Row, Sizes, share
from tests.benchmarks.streams import conversations

BLOCKS, PAIRS, WEIGHT, TOKENS = 8, 3000, 4.0, 300.0
SPREAD = 0.03
"""Of a block's throughput, as a share of its mean."""


def money(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Eight blocks an arm, 3,000 pairs with a discordance of 2 %, a failure at four baseline requests."""
    rates = Rates(harm=0.0125, benefit=0.0075)
    # At this ratio the dearer failures use up exactly what the throughput saves.
    even = 1 / (1 - WEIGHT * (rates.harm - rates.benefit))
    for ratio, case in ((even, "saves nothing"), (1.05 * even, "saves 5 %"), (even / 1.05, "loses 5 %")):
        shown = [_shown(generator, ratio, rates) for _ in range(sizes.gates)]
        passed, failed = ([each is state for each in shown] for state in (Shown.PASSED, Shown.FAILED))
        words = {"case": f"money gate, a tier that {case}"}
        if ratio == even:
            words |= {"reference": ".056", "source": "B5"}
            yield share(passed, measured="passes (approximate limits: near .05)", **words)
            yield share(failed, measured="fails (approximate limits: near .05)", **words)
        else:
            words |= {"reference": "-", "source": "-"}
            verb, right = ("passes", passed) if ratio > even else ("fails", failed)
            yield share(right, measured=verb, **words)


def _shown(generator: np.random.Generator, ratio: float, rates: Rates) -> Shown:
    def costs(rate: float) -> Estimate:
        throughput = rate * (1 + SPREAD * generator.standard_normal(BLOCKS))
        return mean_of_blocks(
            [
                request_cost(unit_cost(price_per_hour=2, tokens_per_second=each), mean_output_tokens=TOKENS)
                for each in throughput.tolist()
            ],
            level=1 - 2 * ALPHA,
        )

    harm, benefit, _ = generator.multinomial(
        PAIRS, [rates.harm, rates.benefit, 1 - rates.harm - rates.benefit]
    ).tolist()
    lower, upper = tango.interval(harm, benefit, PAIRS, 1 - 2 * ALPHA)
    rise = Estimate(value=(harm - benefit) / PAIRS, lower=lower, upper=upper)
    benefit_per_request = net_benefit(
        baseline=costs(1000.0), candidate=costs(1000.0 * ratio), failure_rise=rise, weight=WEIGHT
    )
    return money_shown(benefit_per_request).shown


def single_looks(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """The single look over 250 conversations at the margin: Tango's test with the guarded design effect."""
    reference = {0.0: (".017", ".047"), 0.2: (".030", ".107"), 0.5: (".052", ".170")}
    for correlation, (guarded, naive) in reference.items():
        p_values = []
        for _ in range(sizes.gates):
            pairs, owner = conversations(generator, 250, Rates(harm=0.015, benefit=0.005), correlation)
            tally = _tally(pairs, owner)
            table = (tally.harm, tally.benefit, tally.n, MARGIN)
            effect = design_effect(tally)
            p_values.append(
                (tango.noninferiority_p(*table, design_effect=effect), tango.noninferiority_p(*table))
            )
        with_effect, without = (np.array(p_values) <= ALPHA).T
        words = {"case": f"one look, true rise 1 pp, correlation {correlation:g}", "source": "B1.6"}
        yield share(with_effect, measured="Tango, design effect: p <= .05", reference=guarded, **words)
        yield share(without, measured="Tango, pairs as if independent", reference=naive, **words)


def _tally(pairs: NDArray[np.float64], owner: NDArray[np.int64]) -> Tally:
    sizes = np.bincount(owner)
    harms, benefits = np.bincount(owner, pairs > 0), np.bincount(owner, pairs < 0)
    triples = zip(sizes.tolist(), harms.astype(int).tolist(), benefits.astype(int).tolist(), strict=True)
    return Tally(units=Counter(Triple(*triple) for triple in triples))
