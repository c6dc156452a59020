"""The energy distance sees what equal failure rates hide, and stays quiet where nothing changed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.decision.clusters import cluster_variance
from service.decision.energy import Energy, Repeats, energy_distance, noise_of, noise_share_of
from service.decision.tally import Tally, Triple

failure = st.sampled_from([0.0, 1.0, 0.25, 0.5])
repeats = st.lists(
    st.builds(
        Repeats,
        conversation=st.sampled_from("abcdef"),
        baseline=st.tuples(failure, failure),
        candidate=st.tuples(failure, failure),
    ),
    max_size=30,
)
Numbers = NDArray[np.float64]


def drawn(seed: int, p: Numbers, q: Numbers) -> Energy:
    generator = np.random.default_rng(seed)
    a, r = (
        (generator.random((2, p.size)) < p).astype(float),
        (generator.random((2, q.size)) < q).astype(float),
    )
    return energy_distance(
        Repeats(conversation=str(i), baseline=(a[0, i], a[1, i]), candidate=(r[0, i], r[1, i]))
        for i in range(p.size)
    )


@given(repeats)
def test_the_terms_are_the_three_discordances(requests: list[Repeats]) -> None:
    found = energy_distance(requests)
    if not requests:
        assert (found.value, found.standard_error, found.noise_share, found.p_value) == (None,) * 4
        return
    assert found.value is not None
    assert found.psi_between is not None
    assert found.psi_control is not None
    assert found.psi_candidate is not None
    assert found.value == pytest.approx(
        found.psi_between - found.psi_control / 2 - found.psi_candidate / 2, abs=1e-12
    )
    assert (found.standard_error is None) == (found.conversations < 2)


@given(repeats)
def test_exchanging_the_arms_or_the_repeats_changes_nothing(requests: list[Repeats]) -> None:
    exchanged = [
        Repeats(conversation=each.conversation, baseline=each.candidate[::-1], candidate=each.baseline)
        for each in requests
    ]
    found, other = energy_distance(requests), energy_distance(exchanged)
    assert other.value == (None if found.value is None else pytest.approx(found.value, abs=1e-12))


def test_a_request_by_hand() -> None:
    """A fails twice, Q once: ((1-0)(1-1) + (1-1)(1-0)) / 2 = 0. A twice, Q never: 1."""
    one = Repeats(conversation="a", baseline=(1, 1), candidate=(0, 1))
    two = Repeats(conversation="b", baseline=(1, 1), candidate=(0, 0))
    found = energy_distance([one, two])
    assert (found.value, found.psi_control, found.psi_candidate, found.psi_between) == (0.5, 0, 0.5, 0.75)
    # Deviations -.5 and .5: sqrt(2/1 x .5) / 2.
    assert found.standard_error == pytest.approx(0.5)


def test_the_standard_error_is_that_of_clusters() -> None:
    """Answers that never vary make e = (A - Q)^2, so harms alone are a tally whose variance is known."""
    harmed, clean = (
        {"baseline": (0.0, 0.0), "candidate": (1.0, 1.0)},
        {"baseline": (0.0, 0.0)} | {"candidate": (0.0, 0.0)},
    )
    requests = [
        *(Repeats(conversation="a", **harmed) for _ in range(3)),
        *(Repeats(conversation="b", **clean) for _ in range(2)),
        Repeats(conversation="c", **harmed),
    ]
    tally = Tally(units={Triple(3, 3, 0): 1, Triple(2, 0, 0): 1, Triple(1, 1, 0): 1})
    variance = cluster_variance(tally)
    assert variance is not None
    assert energy_distance(requests).standard_error == pytest.approx(math.sqrt(variance))


UNEVEN = np.tile([0.01, 0.01, 0.01, 0.17], 500)
"""Baseline failure probabilities with a mean of 5 %, as in statistics B6."""


def rejected(q: Numbers, repeats_of: int = 40) -> float:
    p_values = [drawn(seed, UNEVEN, q).p_value for seed in range(repeats_of)]
    return float(np.mean([p is not None and p < 0.05 for p in p_values]))


def test_an_unchanged_candidate_is_found_different_about_as_often_as_allowed() -> None:
    assert rejected(UNEVEN) <= 0.15


def test_other_requests_failing_as_often_in_total_are_seen() -> None:
    assert rejected(np.roll(UNEVEN, 1), 10) == 1


def test_a_candidate_with_less_noise_is_seen() -> None:
    """Same rate, but always the same 5 % of the requests."""
    sharper = np.zeros_like(UNEVEN)
    sharper[:100] = 1.0
    assert rejected(sharper, 10) == 1


@pytest.mark.parametrize("change", [lambda p: p, lambda p: np.roll(p, 1)], ids=["unchanged", "others"])
def test_the_estimate_is_unbiased(change: Callable[[Numbers], Numbers]) -> None:
    q = change(UNEVEN)
    values = [drawn(seed, UNEVEN, q).value or 0.0 for seed in range(40)]
    error = float(np.std(values, ddof=1)) / math.sqrt(40)
    assert np.mean(values) == pytest.approx(((q - UNEVEN) ** 2).mean(), abs=4 * error)


def test_the_noise_share_is_one_where_the_arms_are_alike() -> None:
    found = drawn(1, UNEVEN, UNEVEN)
    assert found.noise_share == pytest.approx(1, abs=0.15)
    assert noise_share_of(
        Tally.of_pairs(n=1000, harm=3, benefit=2), Tally.of_pairs(n=500, harm=8, benefit=2)
    ) == pytest.approx(0.25)


def test_the_control_bounds_the_energy_without_a_repeat_of_the_candidate() -> None:
    control, pairs = Tally.of_pairs(n=100, harm=1, benefit=1), Tally.of_pairs(n=50, harm=3, benefit=1)
    noise = noise_of(control, pairs)
    assert noise is not None
    assert (noise.control, noise.candidate, noise.share) == (0.02, 0.08, 0.25)
    assert noise.energy_at_most == pytest.approx(0.07)
    assert noise_of(Tally(), pairs) is None
    assert noise_of(control, Tally()) is None


def test_without_pairs_or_without_a_difference_there_is_no_noise_share() -> None:
    some, none = Tally.of_pairs(n=10, harm=1, benefit=0), Tally.of_pairs(n=10, harm=0, benefit=0)
    assert noise_share_of(Tally(), some) is None
    assert noise_share_of(some, Tally()) is None
    assert noise_share_of(some, none) is None
    assert noise_share_of(none, some) == 0


def test_arms_that_never_fail_have_no_p_value() -> None:
    same = Repeats(conversation="a", baseline=(0, 0), candidate=(0, 0))
    found = energy_distance([same, Repeats(conversation="b", baseline=(0, 0), candidate=(0, 0))])
    assert (found.value, found.standard_error, found.p_value, found.noise_share) == (0, 0, None, None)


@pytest.mark.parametrize("wrong", [1.5, -0.1, math.nan])
def test_a_failure_beyond_one_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="failures"):
        Repeats(conversation="a", baseline=(wrong, 0), candidate=(0, 0))
