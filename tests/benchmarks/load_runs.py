"""What is looked at once simulated: a load run's SLO and money, and Tango's test over conversations.

A load run has 24 blocks of 240 requests for the SLO, and 8 blocks an arm and 3,000 pairs for the money.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.decision import tango
from service.decision.clusters import design_effect
from service.decision.economics import Estimate, money_shown, net_benefit
from service.decision.evidence import Measured, Shown
from service.decision.money import Arm, failure_rise
from service.decision.slo import slo_gate
from service.decision.tally import Tally, Triple
from service.decision.terms import DEFAULT_TERMS
from tests.benchmarks.procedure import Rates
from tests.benchmarks.rows import ALPHA, MARGIN, Row, Sizes, share
from tests.benchmarks.streams import conversations

SLO_BLOCKS, BLOCK_REQUESTS = 24, 240
BLOCK_CORRELATION = 0.005
"""Of two requests of a block: 240 of them count as about 110."""
MISS_DISCORDANCE = 0.02
"""Both arms pass 99 % and miss independently."""
MONEY_BLOCKS, MONEY_PAIRS, TOKENS, PRICE = 8, 3000, 300.0, 2.0
SPREAD = 0.03
"""Of a block's throughput, as a share of its mean."""
WEIGHT = DEFAULT_TERMS.failure.weight
SLO_MARGIN = DEFAULT_TERMS.slo_margin


def misses_at(rise: float) -> Rates:
    """SLO misses of a tier that misses so much more often."""
    psi = max(MISS_DISCORDANCE, rise)
    return Rates(harm=(psi + rise) / 2, benefit=(psi - rise) / 2)


def slo_run(
    generator: np.random.Generator, misses: Rates, alpha: float, correlation: float = BLOCK_CORRELATION
) -> Measured:
    """One load run's SLO, blocks whose requests miss together a little."""
    chances = np.array([misses.harm, misses.benefit, 1 - misses.harm - misses.benefit])
    possible = chances > 0
    own = np.tile(chances, (SLO_BLOCKS, 1))
    if correlation:
        own[:, possible] = generator.dirichlet(chances[possible] * (1 / correlation - 1), SLO_BLOCKS)
    blocks = generator.multinomial(BLOCK_REQUESTS, own)
    units = Counter(Triple(BLOCK_REQUESTS, harm, benefit) for harm, benefit, _ in blocks.tolist())
    return slo_gate(Tally(units=units), alpha=alpha)


def arm(generator: np.random.Generator, ratio: float) -> Arm:
    """Blocks of one arm; the baseline serves 1,000 tokens a second."""
    rates = 1000 * ratio * (1 + SPREAD * generator.standard_normal(MONEY_BLOCKS))
    return Arm(price_per_hour=PRICE, tokens_per_second=tuple(rates.tolist()), mean_output_tokens=TOKENS)


def money_run(generator: np.random.Generator, ratio: float, failures: Rates, alpha: float) -> Measured:
    """One load run's money; `money_gate`, keeping the limits of tables that come again and again."""
    harm, benefit, _ = generator.multinomial(
        MONEY_PAIRS, [failures.harm, failures.benefit, 1 - failures.harm - failures.benefit]
    ).tolist()
    baseline, candidate = arm(generator, 1.0), arm(generator, ratio)
    level = 1 - 2 * alpha
    return money_shown(
        net_benefit(
            baseline=baseline.costs(level),
            candidate=candidate.costs(level),
            failure_rise=_rise(harm, benefit, level),
            weight=WEIGHT,
        )
    )


@lru_cache(maxsize=100_000)
def _rise(harm: int, benefit: int, level: float) -> Estimate:
    return failure_rise(Tally.of_pairs(n=MONEY_PAIRS, harm=harm, benefit=benefit), level=level)


def slo(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """One load run at alpha .05, by how much the requests of a block miss together."""
    for correlation in (0.0, 0.005, 0.02):
        found = {
            rise: [slo_run(generator, misses_at(rise), ALPHA, correlation).shown for _ in range(sizes.gates)]
            for rise in (SLO_MARGIN, 0.0, 3 * SLO_MARGIN)
        }
        at_margin = found[SLO_MARGIN]
        words = {"reference": "-", "source": "-"}
        case = f"SLO gate, one load run, correlation in a block {correlation:g}"
        # One look of an approximate test: near .05, not below it at any price.
        yield share(
            [each is Shown.PASSED for each in at_margin],
            measured="passes at the margin (approximate: near .05)",
            case=case,
            **words,
        )
        yield share(
            [each is Shown.FAILED for each in at_margin],
            measured="fails at the margin (approximate: near .05)",
            case=case,
            **words,
        )
        yield share(
            [each is Shown.PASSED for each in found[0.0]], measured="passes, equal", case=case, **words
        )
        yield share(
            [each is Shown.FAILED for each in found[3 * SLO_MARGIN]],
            measured="fails, +3 pp of misses",
            case=case,
            **words,
        )


def money(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Eight blocks an arm, 3,000 pairs with a discordance of 2 %, a failure at four baseline requests."""
    rates = Rates(harm=0.0125, benefit=0.0075)
    # At this ratio the dearer failures use up exactly what the throughput saves.
    even = 1 / (1 - WEIGHT * (rates.harm - rates.benefit))
    for ratio, case in ((even, "saves nothing"), (1.05 * even, "saves 5 %"), (even / 1.05, "loses 5 %")):
        shown = [money_run(generator, ratio, rates, ALPHA).shown for _ in range(sizes.gates)]
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
