"""Block bootstrap limits: they repeat, they cover under autocorrelation, and shared slowness cancels."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.decision.bootstrap import Block, Resampled, quantile_difference, quantile_ratio

Numbers = NDArray[np.float64]


def cut(baseline: Numbers, candidate: Numbers, count: int) -> list[Block]:
    pieces = zip(np.array_split(baseline, count), np.array_split(candidate, count), strict=True)
    return [Block(baseline=a.tolist(), candidate=q.tolist()) for a, q in pieces]


def autocorrelated(generator: np.random.Generator, n: int, rho: float) -> Numbers:
    """AR(1) with standard normal values."""
    noise = generator.standard_normal(n)
    values = np.empty(n)
    values[0] = noise[0]
    for i in range(1, n):
        values[i] = rho * values[i - 1] + math.sqrt(1 - rho**2) * noise[i]
    return values


def coverage(rho: float, count: int, runs: int = 80) -> float:
    """How often 90 % limits of the difference of P95 hold 0, for arms that are alike; 1,000 values each."""
    held = []
    for seed in range(runs):
        generator = np.random.default_rng(seed)
        blocks = cut(autocorrelated(generator, 1000, rho), autocorrelated(generator, 1000, rho), count)
        found = quantile_difference(blocks, 0.95, seed=seed, repeats=200)
        held.append(found.lower <= 0 <= found.upper)
    return float(np.mean(held))


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_blocks_cover_with_and_without_autocorrelation(rho: float) -> None:
    """Statistics B5 has .895 and .875; 80 runs have a standard error of .035."""
    assert 0.77 <= coverage(rho, 20) <= 0.98


def test_blocks_of_two_requests_would_not_cover() -> None:
    """Statistics B5 has .545 for single requests."""
    assert coverage(0.8, 500, runs=30) < 0.77


def test_the_value_is_that_of_all_requests() -> None:
    generator = np.random.default_rng(3)
    baseline, candidate = generator.lognormal(5, 0.6, 500), generator.lognormal(5.2, 0.6, 500)
    blocks = cut(baseline, candidate, 10)
    p95 = np.quantile(baseline, 0.95), np.quantile(candidate, 0.95)
    difference, ratio = quantile_difference(blocks, 0.95, seed=1), quantile_ratio(blocks, 0.95, seed=1)
    assert difference.value == pytest.approx(p95[1] - p95[0])
    assert ratio.value == pytest.approx(p95[1] / p95[0])
    assert difference.lower < difference.value < difference.upper
    assert ratio.lower < ratio.value < ratio.upper


def test_the_same_seed_gives_the_same_limits_and_another_gives_others() -> None:
    generator = np.random.default_rng(4)
    blocks = cut(generator.lognormal(0, 1, 400), generator.lognormal(0, 1, 400), 10)
    assert quantile_ratio(blocks, 0.9, seed=7) == quantile_ratio(blocks, 0.9, seed=7)
    assert quantile_ratio(blocks, 0.9, seed=7).lower != quantile_ratio(blocks, 0.9, seed=8).lower


def test_what_slows_both_arms_at_once_cancels() -> None:
    """Ten blocks at different speeds, the candidate always twice as slow: the ratio is known exactly."""
    generator = np.random.default_rng(5)
    blocks = []
    for _ in range(10):
        values = generator.lognormal(0, 0.1, 50) * generator.lognormal(0, 1)
        blocks.append(Block(baseline=values.tolist(), candidate=(2 * values).tolist()))
    found = quantile_ratio(blocks, 0.95, seed=1, repeats=200)
    assert (found.lower, found.value, found.upper) == pytest.approx((2, 2, 2))


@settings(max_examples=20, deadline=None)
@given(shift=st.floats(-100, 100), factor=st.floats(0.1, 10))
def test_limits_move_and_stretch_with_the_candidate(shift: float, factor: float) -> None:
    generator = np.random.default_rng(6)
    baseline, candidate = generator.lognormal(0, 1, 120), generator.lognormal(0, 1, 120)

    def difference(values: Numbers) -> Resampled:
        return quantile_difference(cut(baseline, values, 6), 0.9, seed=2, repeats=100)

    plain, moved = difference(candidate), difference(candidate + shift)
    assert moved.lower == pytest.approx(plain.lower + shift, abs=1e-9)
    assert moved.upper == pytest.approx(plain.upper + shift, abs=1e-9)
    ratio = quantile_ratio(cut(baseline, candidate, 6), 0.9, seed=2, repeats=100)
    stretched = quantile_ratio(cut(baseline, factor * candidate, 6), 0.9, seed=2, repeats=100)
    assert stretched.upper == pytest.approx(factor * ratio.upper)


GOOD = Block(baseline=[1.0, 2.0], candidate=[1.0, 2.0])


@pytest.mark.parametrize("compare", [quantile_difference, quantile_ratio])
@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([], "2 blocks"),
        ([GOOD], "2 blocks"),
        ([GOOD, Block(baseline=[1.0], candidate=[])], "values of both arms"),
        ([GOOD, Block(baseline=[1.0], candidate=[math.inf])], "finite"),
        ([GOOD, Block(baseline=[math.nan], candidate=[1.0])], "finite"),
    ],
    ids=["none", "one", "an empty arm", "a timeout", "no number"],
)
def test_blocks_that_cannot_be_compared_are_refused(
    compare: Callable[..., Resampled], blocks: list[Block], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        compare(blocks, 0.95, seed=1)


def test_a_ratio_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        quantile_ratio([GOOD, Block(baseline=[0.0], candidate=[1.0])], 0.95, seed=1)


@pytest.mark.parametrize("wrong", [{"share": 1.0}, {"level": 0.0}, {"repeats": 10}])
def test_an_impossible_quantile_level_or_number_of_repeats_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"in \(0, 1\)|repeats"):
        quantile_difference([GOOD, GOOD], **{"share": 0.95, "seed": 1, **wrong})  # type: ignore[arg-type]
