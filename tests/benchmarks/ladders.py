"""The whole procedure simulated: three criteria, the A/A gate, one tier or four."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.decision.multiplicity import log_harm_threshold
from tests.benchmarks.crossings import first_harm, first_pass
from tests.benchmarks.procedure import (
    ACCEPT,
    POLICY,
    REJECT,
    UNDECIDED,
    Rates,
    control_alarms,
    decide_looks,
    drawn_counts,
)
from tests.benchmarks.rows import ALPHA, MARGIN, PASS, Row, Sizes, share, typical
from tests.benchmarks.streams import pair_stream


def worse(json: float = 0.0, recall: float = 0.0, refusal: float = 0.0) -> tuple[Rates, ...]:
    """A tier with these rises at discordances of 1, 4 and 2 %; beyond that, beside .1 % of benefits."""
    return tuple(
        Rates(harm=(psi + rise) / 2, benefit=(psi - rise) / 2)
        if rise <= psi
        else Rates(harm=rise + 0.001, benefit=0.001)
        for psi, rise in ((0.01, json), (0.04, recall), (0.02, refusal))
    )


QUIET_CONTROL = (
    Rates(harm=0.001, benefit=0.001),
    Rates(harm=0.005, benefit=0.005),
    Rates(harm=0.0025, benefit=0.0025),
)
"""The baseline against itself: discordances of .2, 1 and .5 %."""
BIASED_CONTROL = (Rates(harm=0.021, benefit=0.001), *QUIET_CONTROL[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladders:
    """How many epochs of one ladder ended, tier by tier (epochs x tiers)."""

    first: NDArray[np.int8]
    """The first decision on each tier, `UNDECIDED` if there was none."""
    pairs: NDArray[np.float64]
    """Pairs of each criterion until then, infinite if there was none."""
    alarmed: NDArray[np.bool_]
    """Whether the control ever rang."""

    def decided(self, tier: int, decision: int) -> NDArray[np.bool_]:
        return np.asarray(self.first[:, tier] == decision)


def ladders(
    generator: np.random.Generator,
    sizes: Sizes,
    tiers: tuple[tuple[Rates, ...], ...],
    control: tuple[Rates, ...] = QUIET_CONTROL,
) -> Ladders:
    """Many epochs of one ladder, each to the horizon."""
    looks = sizes.ladder_horizon // sizes.ladder_step
    first, pairs, alarmed = [], [], []
    for _ in range(sizes.ladders):
        counts = np.stack(
            [drawn_counts(generator, tier, looks=looks, step=sizes.ladder_step) for tier in tiers]
        )
        controls = drawn_counts(generator, control, looks=looks, step=sizes.ladder_step)
        decisions = decide_looks(POLICY, counts, controls)
        at = (decisions != 0).argmax(axis=1)
        found = decisions[np.arange(len(tiers)), at]
        first.append(found)
        pairs.append(np.where(found != 0, (at + 1) * sizes.ladder_step, math.inf))
        alarmed.append(bool(control_alarms(controls, -math.log(POLICY.alpha_warn)).any()))
    return Ladders(first=np.array(first), pairs=np.array(pairs), alarmed=np.array(alarmed))


ONE_TIER = (
    ("all equal", worse(), ACCEPT, "1.000", "2,980"),
    ("all +0.3 pp", worse(0.003, 0.003, 0.003), ACCEPT, "1.000", "-"),
    ("JSON at the margin", worse(json=MARGIN), None, ".048", ""),
    ("recall at the margin", worse(recall=MARGIN), None, ".050", ""),
    ("all at the margin", worse(MARGIN, MARGIN, MARGIN), None, ".000", ""),
    ("JSON +4.1 pp", worse(json=0.041), REJECT, "1.000", "345"),
    ("recall +2 pp", worse(recall=0.02), REJECT, "1.000", "3,379"),
    ("refusal +1.5 pp", worse(refusal=0.015), REJECT, "1.000", "6,395"),
)
"""Name, rates, what should come of it, and B2.6: its share, its median pairs."""


def one_tier(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Three criteria, one tier: as the reference had it, and as it is."""
    for name, rates, right, reference, median in ONE_TIER:
        plain = kept_crossings(generator, sizes, rates)
        for rule, ended in (("kept crossings", plain), ("procedure", ladders(generator, sizes, (rates,)))):
            words = {"case": f"{rule}, one tier, {name}", "source": "B2.6"}
            if right is None:
                wrong = ended.decided(0, ACCEPT)
                yield share(wrong, measured="wrongly accepted", reference=reference, bound=ALPHA, **words)
                continue
            verb = "accepted" if right == ACCEPT else "rejected"
            yield share(ended.decided(0, right), measured=verb, reference=reference, **words)
            yield typical(ended.pairs[:, 0], measured="pairs, median", reference=median, **words)


def kept_crossings(generator: np.random.Generator, sizes: Sizes, rates: tuple[Rates, ...]) -> Ladders:
    """As B2.6 has it: all criteria non-inferiority, a look after every pair, what has passed stays passed."""
    threshold = log_harm_threshold(criteria=len(rates), tiers=1, alpha=ALPHA)
    first, pairs = [], []
    for _ in range(sizes.ladders):
        streams = [pair_stream(generator, sizes.ladder_horizon, rate.harm, rate.benefit) for rate in rates]
        passed = max(first_pass(stream, MARGIN, PASS) for stream in streams)
        harmed = min(first_harm(stream, MARGIN, threshold) for stream in streams)
        first.append([ACCEPT if passed < harmed else REJECT if math.isfinite(harmed) else UNDECIDED])
        pairs.append([min(passed, harmed)])
    return Ladders(
        first=np.array(first, dtype=np.int8),
        pairs=np.array(pairs),
        alarmed=np.zeros(sizes.ladders, dtype=bool),
    )


def four_tiers(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Three criteria, the A/A gate and four tiers above the baseline in fixed sequence."""
    words = {"reference": "-", "source": "-"}
    ended = ladders(generator, sizes, (worse(),) * 4)
    case = "four tiers, all equal"
    yield share((ended.first == ACCEPT).all(axis=1), measured="all accepted", case=case, **words)
    yield share(
        (ended.first == REJECT).any(axis=1), measured="any wrongly rejected", case=case, bound=ALPHA, **words
    )
    yield typical(ended.pairs[:, 0], measured="pairs to accept the first, median", case=case, **words)
    yield typical(ended.pairs[:, 3], measured="pairs to accept the fourth, median", case=case, **words)
    yield share(
        ended.alarmed, measured="control rings at least once, and withholds for a while", case=case, **words
    )

    ended = ladders(generator, sizes, (worse(recall=MARGIN),) * 4)
    yield share(
        (ended.first == ACCEPT).any(axis=1),
        measured="any wrongly accepted",
        case="four tiers, each with recall at the margin",
        bound=ALPHA,
        **words,
    )
    ended = ladders(generator, sizes, (worse(), worse(json=MARGIN), worse(), worse()))
    case = "four tiers, the second with JSON at the margin"
    yield share(ended.decided(0, ACCEPT), measured="first accepted", case=case, **words)
    yield share(ended.decided(1, ACCEPT), measured="second wrongly accepted", case=case, bound=ALPHA, **words)
    yield share(
        ended.decided(3, ACCEPT), measured="fourth accepted, only past the second", case=case, **words
    )

    ended = ladders(generator, sizes, (worse(), worse(), worse(json=0.041), worse()))
    case = "four tiers, the third with JSON +4.1 pp"
    yield share(ended.decided(1, ACCEPT), measured="second accepted", case=case, **words)
    yield share(ended.decided(2, REJECT), measured="third rejected", case=case, **words)
    yield typical(ended.pairs[:, 2], measured="pairs to reject the third, median", case=case, **words)
    yield share(ended.decided(3, ACCEPT), measured="fourth accepted", case=case, bound=ALPHA, **words)

    tilted = worse(json=0.02)
    ended = ladders(generator, sizes, (tilted,) * 4, BIASED_CONTROL)
    case = "four equal tiers, an arm bias of 2 pp on JSON in control and candidates"
    yield share(ended.alarmed, measured="control rings", case=case, **words)
    yield share((ended.first == ACCEPT).any(axis=1), measured="any accepted", case=case, **words)
    yield share(
        (ended.first == REJECT).any(axis=1), measured="any rejected before it rings", case=case, **words
    )
