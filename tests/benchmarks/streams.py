"""One criterion simulated, looked at after every unit: error at the margin, pairs to pass, pairs to reject.

The references are statistics B2: computed before this code existed, by another program, with 500 to 4,000
repeats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from service.decision.multiplicity import log_harm_threshold
from tests.benchmarks.crossings import Stream, first_harm, first_pass
from tests.benchmarks.procedure import Rates
from tests.benchmarks.rows import ALPHA, MARGIN, PASS, Row, Sizes, share, typical


def pair_stream(generator: np.random.Generator, length: int, harm: float, benefit: float) -> Stream:
    """Independent pairs."""
    drawn = generator.random(length)
    return Stream.of(np.where(drawn < harm, 1.0, np.where(drawn < harm + benefit, -1.0, 0.0)))


def boundary(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """A tier exactly at the margin, looked at after every pair. At a discordance of 1 % it has no benefit."""
    reference = {1.01: ".032", 2.0: ".034", 5.0: ".043", 1.0: "-"}
    for psi, accepted in reference.items():
        source = "-" if accepted == "-" else "B2.2"
        streams = [
            pair_stream(generator, sizes.horizon, (psi / 100 + MARGIN) / 2, (psi / 100 - MARGIN) / 2)
            for _ in range(sizes.boundary)
        ]
        case = f"true rise 1 pp, discordance {psi:g} %"
        yield share(
            [math.isfinite(first_pass(stream, MARGIN, PASS)) for stream in streams],
            measured="wrongly passes",
            case=case,
            reference=accepted,
            source=source,
            bound=ALPHA,
        )
        yield share(
            [math.isfinite(first_harm(stream, MARGIN, PASS)) for stream in streams],
            measured="wrongly harmful",
            case=case,
            reference="-" if accepted == "-" else ".030 to .043",
            source=source,
            bound=ALPHA,
        )


def conversations(
    generator: np.random.Generator, count: int, rates: Rates, correlation: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """D of every pair, and its conversation: 1 + Poisson(3) pairs each, Dirichlet-multinomial."""
    sizes = 1 + generator.poisson(3, count)
    chances = np.array([rates.harm, rates.benefit, 1 - rates.harm - rates.benefit])
    if correlation:
        # Correlation of two pairs of a conversation = 1 / (1 + concentration).
        own = generator.dirichlet(chances * (1 / correlation - 1), count)
    else:
        own = np.tile(chances, (count, 1))
    owner = np.repeat(np.arange(count), sizes)
    drawn, harm, benefit = generator.random(owner.size), own[owner, 0], own[owner, 1]
    return np.where(drawn < harm, 1.0, np.where(drawn < harm + benefit, -1.0, 0.0)), owner


def clustered(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Conversations at the margin whose pairs fail together: three ways to count them."""
    count = sizes.horizon // 4
    reference = {0.0: (".018", ".027", ".048"), 0.2: (".020", ".017", ".140"), 0.5: (".020", ".038", ".368")}
    for correlation, (mean, first, naive) in reference.items():
        passed: list[tuple[bool, bool, bool]] = []
        for _ in range(sizes.clustered):
            pairs, owner = conversations(generator, count, Rates(harm=0.015, benefit=0.005), correlation)
            means = np.bincount(owner, pairs, count) / np.bincount(owner, minlength=count)
            firsts = pairs[np.flatnonzero(np.diff(owner, prepend=-1))]
            passed.append(
                tuple(
                    math.isfinite(first_pass(Stream.of(units), MARGIN, PASS))
                    for units in (means, firsts, pairs)
                )
            )
        case = f"true rise 1 pp, discordance 2 %, correlation {correlation:g}"
        by_rule = np.array(passed).T
        named = (("conversation means", mean), ("first pair of each", first))
        for rule, (unit, published) in zip(by_rule, named, strict=False):
            yield share(
                rule,
                measured=f"wrongly passes, {unit}",
                case=case,
                reference=published,
                source="B2.7",
                bound=ALPHA,
            )
        yield share(
            by_rule[2],
            measured="for contrast: every pair as if independent",
            case=case,
            reference=naive,
            source="B2.7",
        )


def to_pass(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Pairs to approve a tier that is equal."""
    reference = {0.5: (799, 763, 1331), 2.0: (1691, 1474, 3199), 5.0: (3757, 3250, 7533)}
    for psi, (mean, median, late) in reference.items():
        pairs = np.array(
            [
                first_pass(pair_stream(generator, 4 * sizes.horizon, psi / 200, psi / 200), MARGIN, PASS)
                for _ in range(sizes.pairs)
            ]
        )
        case = f"true rise 0, discordance {psi:g} %"
        yield Row(
            measured="pairs to pass, mean",
            case=case,
            found=float(pairs.mean()),
            error=float(pairs.std(ddof=1)) / math.sqrt(pairs.size),
            reference=f"{mean:,}",
            source="B2.3",
        )
        yield typical(pairs, measured="median", case=case, reference=f"{median:,}", source="B2.3")
        yield typical(pairs, 0.9, measured="90 %", case=case, reference=f"{late:,}", source="B2.3")


def clusters_to_pass(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Mirrored pairs until an equal tier passes, by what of a conversation counts: all of its pairs are sent.

    An epoch that has not passed by its last pair counts with all of them.
    """
    count = sizes.horizon // 2
    reference = {
        0.0: ("2,925", "6,419", "1,645"),
        0.05: ("3,123", "6,441", "1,723"),
        0.2: ("3,505", "6,380", "-"),
        0.5: ("4,813", "6,682", "-"),
    }
    equal = Rates(harm=0.01, benefit=0.01)
    for correlation, published in reference.items():
        needed: list[tuple[float, ...]] = []
        for _ in range(max(2, sizes.clustered // 4)):
            pairs, owner = conversations(generator, count, equal, correlation)
            each = np.bincount(owner, minlength=count)
            until = np.cumsum(each)
            by_conversation = (
                np.bincount(owner, pairs, count) / each,
                pairs[np.flatnonzero(np.diff(owner, prepend=-1))],
            )
            passed = [first_pass(Stream.of(units), MARGIN, PASS) for units in by_conversation]
            alone = min(first_pass(Stream.of(pairs), MARGIN, PASS), float(pairs.size))
            needed.append((*(float(until[int(min(unit, count)) - 1]) for unit in passed), alone))
        named = ("conversation means", "first pair of each", "for contrast: every pair as if independent")
        for name, found, known in zip(named, np.array(needed).T, published, strict=True):
            yield Row(
                measured=f"pairs to pass, mean, {name}",
                case=f"true rise 0, discordance 2 %, correlation {correlation:g}",
                found=float(found.mean()),
                error=float(found.std(ddof=1)) / math.sqrt(found.size),
                reference=known,
                source="-" if known == "-" else "B2.7",
            )


def to_reject(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Pairs to reject a tier whose JSON fails in 4.9 % of the requests instead of 0.8 %."""
    baseline, candidate = 0.008, 0.049
    cases = (
        ("7 of 8 baseline failures remain", Rates(harm=0.042, benefit=0.001), "258", "470"),
        ("half of the baseline failures remain", Rates(harm=0.045, benefit=0.004), "292", "657"),
        (
            "independent failures",
            Rates(harm=candidate * (1 - baseline), benefit=baseline * (1 - candidate)),
            "360",
            "769",
        ),
    )
    for (name, rates, median, late), criteria in product(cases, (1, 3)):
        threshold = log_harm_threshold(criteria=criteria, tiers=1, alpha=ALPHA)
        pairs = [
            first_harm(pair_stream(generator, sizes.horizon, rates.harm, rates.benefit), MARGIN, threshold)
            for _ in range(sizes.pairs)
        ]
        case = f"JSON failure 0.8 % to 4.9 %, {name}, criteria: {criteria}"
        known = criteria == 1
        source = "B2.4" if known else "-"
        yield typical(
            pairs,
            measured="pairs to reject, median",
            case=case,
            reference=median if known else "-",
            source=source,
        )
        yield typical(pairs, 0.9, measured="90 %", case=case, reference=late if known else "-", source=source)
