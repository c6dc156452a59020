"""The whole procedure with the gates that a load run decides: three criteria, four tiers, A/A, SLO, money.

A load run a week (`load_runs`), the first after 2,500 pairs of each criterion. Its gates speak until the next
run; the j-th run is held to alpha_j.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from service.decision.multiplicity import attempt_alpha
from service.decision.policy import Gate
from tests.benchmarks.ladders import QUIET_CONTROL, Ladders, worse
from tests.benchmarks.load_runs import SLO_MARGIN, misses_at, money_run, slo_run
from tests.benchmarks.procedure import (
    ACCEPT,
    CODE_OF,
    GATED,
    MISSING,
    REJECT,
    Codes,
    Rates,
    decide_looks,
    drawn_counts,
)
from tests.benchmarks.rows import ALPHA, MARGIN, Row, Sizes, share, typical

FIRST_RUN, WEEK = 2500, 7500
"""Pairs of a criterion before the first load run, and from one to the next."""
EQUAL_FAILURES = Rates(harm=0.01, benefit=0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """The truth about one tier: its criteria, its SLO misses beside the baseline's, its throughput."""

    criteria: tuple[Rates, ...]
    misses: Rates
    ratio: float
    """Throughput in multiples of the baseline's, at the same price."""


def tier(*, json: float = 0.0, misses: float = 0.0, ratio: float = 1.2) -> Tier:
    """A tier with these rises and this throughput; otherwise fine."""
    return Tier(criteria=worse(json=json), misses=misses_at(misses), ratio=ratio)


def load_runs(
    generator: np.random.Generator, tiers: tuple[Tier, ...], looks: int, step: int
) -> dict[Gate, Codes]:
    """What each gate says at each look (tiers x looks): the latest run, `MISSING` before the first."""
    found = {gate: np.full((len(tiers), looks), MISSING, dtype=np.int8) for gate in (Gate.SLO, Gate.MONEY)}
    for number, each in enumerate(tiers):
        for run, at in enumerate(range(FIRST_RUN // step, looks, WEEK // step), start=1):
            alpha = attempt_alpha(ALPHA, run)
            slo = slo_run(generator, each.misses, alpha)
            money = money_run(generator, each.ratio, EQUAL_FAILURES, alpha)
            found[Gate.SLO][number, at:] = CODE_OF[slo.shown]
            found[Gate.MONEY][number, at:] = CODE_OF[money.shown]
    return found


def whole_ladders(generator: np.random.Generator, sizes: Sizes, tiers: tuple[Tier, ...]) -> Ladders:
    """Many epochs of one ladder with all gates, each to the horizon."""
    looks, step = sizes.ladder_horizon // sizes.ladder_step, sizes.ladder_step
    first, pairs = [], []
    for _ in range(sizes.gated):
        counts = np.stack([drawn_counts(generator, each.criteria, looks=looks, step=step) for each in tiers])
        control = drawn_counts(generator, QUIET_CONTROL, looks=looks, step=step)
        decisions = decide_looks(GATED, counts, control, load_runs(generator, tiers, looks, step))
        at = (decisions != 0).argmax(axis=1)
        found = decisions[np.arange(len(tiers)), at]
        first.append(found)
        pairs.append(np.where(found != 0, (at + 1) * step, math.inf))
    return Ladders(
        first=np.array(first), pairs=np.array(pairs), alarmed=np.zeros(sizes.gated, dtype=np.bool_)
    )


FINE = tier()
HARD = tier(json=MARGIN, misses=SLO_MARGIN, ratio=1.0)
"""At every margin at once."""


def whole(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Four tiers; what is wrong with the second or third of them varies."""
    words = {"reference": "-", "source": "-"}

    ended = whole_ladders(generator, sizes, (FINE,) * 4)
    case = "four tiers, all gates: all fine"
    yield share((ended.first == ACCEPT).all(axis=1), measured="all accepted", case=case, **words)
    yield share(
        (ended.first == REJECT).any(axis=1), measured="any wrongly rejected", case=case, bound=ALPHA, **words
    )
    yield typical(ended.pairs[:, 0], measured="pairs to accept the first, median", case=case, **words)
    yield typical(ended.pairs[:, 3], measured="pairs to accept the fourth, median", case=case, **words)

    at_a_margin = (
        ("SLO misses at their margin", tier(misses=SLO_MARGIN)),
        ("saves nothing", tier(ratio=1.0)),
        ("JSON at the margin", tier(json=MARGIN)),
    )
    for name, second in at_a_margin:
        ended = whole_ladders(generator, sizes, (FINE, second, FINE, FINE))
        case = f"four tiers, all gates: the second {name}"
        accepted = ended.decided(1, ACCEPT)
        yield share(accepted, measured="second wrongly accepted", case=case, bound=ALPHA, **words)
        yield share(
            ended.decided(1, REJECT), measured="second wrongly rejected", case=case, bound=2 * ALPHA, **words
        )
        yield share(
            ended.decided(3, ACCEPT), measured="fourth accepted, only past the second", case=case, **words
        )

    shown_to_fail = (
        ("SLO misses +3 pp", tier(misses=0.03)),
        ("loses 10 %", tier(ratio=1 / 1.1)),
    )
    for name, third in shown_to_fail:
        ended = whole_ladders(generator, sizes, (FINE, FINE, third, FINE))
        case = f"four tiers, all gates: the third {name}"
        yield share(ended.decided(1, ACCEPT), measured="second accepted", case=case, **words)
        yield share(ended.decided(2, REJECT), measured="third rejected", case=case, **words)
        yield share(
            ended.decided(2, ACCEPT), measured="third wrongly accepted", case=case, bound=ALPHA, **words
        )
        yield share(
            ended.decided(3, ACCEPT), measured="fourth wrongly accepted", case=case, bound=ALPHA, **words
        )
        yield typical(ended.pairs[:, 2], measured="pairs to reject the third, median", case=case, **words)

    ended = whole_ladders(generator, sizes, (HARD,) * 4)
    case = "four tiers, all gates: each at every margin at once"
    yield share(
        (ended.first == ACCEPT).any(axis=1), measured="any wrongly accepted", case=case, bound=ALPHA, **words
    )
    yield share(
        (ended.first == REJECT).any(axis=1),
        measured="any wrongly rejected",
        case=case,
        bound=ALPHA + len(ended.first[0]) * 2 * ALPHA,
        **words,
    )
