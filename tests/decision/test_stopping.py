"""Simulated stopping times against the tables of the statistics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.decision.stopping import Stopping, simulate


@pytest.mark.parametrize(
    ("difference", "discordance", "mean", "median", "most"),
    # Statistics B4 (margin .01, alpha .05): mean, median and 90 % quantile of the pairs, each from its own
    # simulation, so 8 % apart at most.
    [
        (0.0, 0.005, 771, 763, 1253),
        (0.0, 0.02, 1678, 1459, 3125),
        (0.001, 0.01, 1259, 1134, 2348),
        (0.0025, 0.02, 2979, 2549, 5878),
    ],
)
def test_pairs_to_accept_agree_with_the_table(
    difference: float, discordance: float, mean: int, median: int, most: int
) -> None:
    found = simulate(margin=0.01, discordance=discordance, difference=difference, alpha=0.05, seed=7)
    assert found.reached == 1
    assert found.mean == pytest.approx(mean, rel=0.08)
    assert found.quantile(0.5) == pytest.approx(median, rel=0.08)
    assert found.quantile(0.9) == pytest.approx(most, rel=0.08)


def test_without_discordance_every_epoch_stops_at_the_same_pair() -> None:
    found = simulate(margin=0.01, discordance=0.0, alpha=0.05, seed=1, repeats=50)
    assert set(found.pairs) == {481}


def test_the_same_seed_gives_the_same_pairs() -> None:
    first, again, other = (
        simulate(margin=0.05, discordance=0.05, alpha=0.05, seed=seed, repeats=100) for seed in (3, 3, 4)
    )
    assert np.array_equal(first.pairs, again.pairs)
    assert not np.array_equal(first.pairs, other.pairs)


def test_what_does_not_accept_in_time_has_no_mean() -> None:
    found = Stopping(pairs=np.array([100.0, 200.0, math.inf, 300.0]))
    assert found.reached == 0.75
    assert found.mean is None
    assert found.quantile(0.5) == 300
    assert found.quantile(0.9) is None


def test_a_scenario_that_cannot_end_is_given_up() -> None:
    # With every pair discordant no bet of the grid grows at this margin.
    assert simulate(margin=0.0001, discordance=1.0, alpha=0.05, seed=1, repeats=3).reached == 0


def test_the_slowest_of_several_criteria_decides() -> None:
    one = simulate(margin=0.05, discordance=0.05, alpha=0.05, seed=3, repeats=500)
    three = one.slowest_of(3, seed=4)
    assert three.mean is not None
    assert one.mean is not None
    assert three.mean > one.mean
    # All three within q have the chance of one, cubed.
    assert three.quantile(0.729) == pytest.approx(one.quantile(0.9), rel=0.15)
    assert np.array_equal(one.slowest_of(1, seed=4).pairs, one.pairs)


def test_a_difference_at_the_margin_is_refused() -> None:
    with pytest.raises(ValueError, match="below the margin"):
        simulate(margin=0.01, discordance=0.02, difference=0.01, alpha=0.05, seed=1)
