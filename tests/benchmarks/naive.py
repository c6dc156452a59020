"""What looking again and again does to tests that are made for one look, and to planned looks.

A tier exactly at the margin, as in `streams.boundary`. Between two pairs that differ, z of Tango's and of
Wald's test has one peak and no valley, so its least value is right before a pair that differs or right after
one; `test_naive.py` compares that with looking after every pair.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from service.decision.tango import restricted_benefit
from tests.benchmarks.crossings import Numbers, Stream
from tests.benchmarks.rows import ALPHA, MARGIN, Row, Sizes, share
from tests.benchmarks.streams import pair_stream
from tests.decision.group_sequential import bounds, obrien_fleming

FIRST_LOOK = 100
"""Pairs before which nobody takes such a test for one."""
MANY_LOOKS, FEW_LOOKS = 20, 5
REFERENCE = {
    1.01: (".349", ".203", ".637", ".046"),
    2.0: (".392", ".215", ".529", ".044"),
    5.0: (".417", ".223", ".444", ".055"),
}
"""B2.2 by discordance in per cent: Tango at every pair, at 20 looks, Wald at every pair, Lan-DeMets at 5."""


def counts_at(stream: Stream, looks: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Harms and benefits among the first so many pairs."""
    reached = np.searchsorted(stream.at, looks, side="right")
    of_harm, of_benefit = (np.append(0, (sign * stream.differences > 0).cumsum()) for sign in (1, -1))
    return of_harm[reached].astype(np.float64), of_benefit[reached].astype(np.float64)


def tango_z(harm: Numbers, benefit: Numbers, n: Numbers, margin: float) -> Numbers:
    """`tango.z` for looks of different lengths."""
    variance = n * (2 * restricted_benefit(harm, benefit, n, margin) + margin * (1 - margin))
    return np.asarray((harm - benefit - n * margin) / np.sqrt(variance))


def wald_z(harm: Numbers, benefit: Numbers, n: Numbers, margin: float) -> Numbers:
    """Without a discordant pair there is no variance, and the test is sure of itself."""
    variance = harm + benefit - (harm - benefit) ** 2 / n
    sure = np.where(harm - benefit < n * margin, -np.inf, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, (harm - benefit - n * margin) / np.sqrt(variance), sure)


def least_looks(stream: Stream) -> NDArray[np.int64]:
    """Where z may be least: the first look, the last, and the two around each pair that differs."""
    looks = np.unique(np.concatenate([stream.at - 1, stream.at, [FIRST_LOOK, stream.length]]))
    return looks[looks >= FIRST_LOOK]


def ever_passes(stream: Stream, margin: float, critical: float) -> tuple[bool, bool]:
    """Whether Tango's and Wald's z are at most `critical` at any pair from the first look on."""
    looks = least_looks(stream)
    counts = (*counts_at(stream, looks), looks.astype(np.float64))
    return tuple(bool((z(*counts, margin) <= critical).any()) for z in (tango_z, wald_z))  # type: ignore[return-value]


def naive_looks(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """How often each approves the tier at some look."""
    critical = float(ndtri(ALPHA))
    planned = -np.array(bounds(obrien_fleming, ALPHA, [k / FEW_LOOKS for k in range(1, FEW_LOOKS + 1)]))
    every = [sizes.horizon * np.arange(1, looks + 1) // looks for looks in (MANY_LOOKS, FEW_LOOKS)]
    for psi, reference in REFERENCE.items():
        passed = []
        for _ in range(sizes.boundary):
            stream = pair_stream(generator, sizes.horizon, (psi / 100 + MARGIN) / 2, (psi / 100 - MARGIN) / 2)
            tango, wald = ever_passes(stream, MARGIN, critical)
            many, few = (tango_z(*counts_at(stream, looks), looks * 1.0, MARGIN) for looks in every)
            passed.append((tango, bool((many <= critical).any()), wald, bool((few <= planned).any())))
        names = (
            "Tango at every pair from the 100th",
            f"Tango at {MANY_LOOKS} looks",
            "Wald at every pair from the 100th",
            f"bounds for {FEW_LOOKS} planned looks",
        )
        for name, found, published in zip(names, np.array(passed).T, reference, strict=True):
            yield share(
                found,
                measured=f"for contrast: {name}",
                case=f"true rise 1 pp, discordance {psi:g} %",
                reference=published,
                source="B2.2",
            )
