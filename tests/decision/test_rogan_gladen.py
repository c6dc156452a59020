"""The share that fails in truth, behind an instrument of known error."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from service.decision.rogan_gladen import Rate, Seen, corrected_difference, corrected_share


def test_the_estimate_is_that_of_a_published_example() -> None:
    # epiR, epi.prev: 23 of 150 positive, sensitivity .96, specificity .89: 5.1 per 100.
    found = corrected_share(23, 150, Seen(caught=96, missed=4, cleared=89, blamed=11), level=0.95)
    assert found is not None
    assert found.estimate == pytest.approx((23 / 150 + 0.89 - 1) / 0.85, abs=1e-12)
    assert found.estimate == pytest.approx(0.051, abs=5e-4)
    assert 0 == found.lower < found.estimate < found.upper < 0.15


def test_a_perfect_instrument_of_great_experience_leaves_the_share_as_it_is() -> None:
    found = corrected_share(30, 300, Seen(caught=1e9, cleared=1e9), level=0.95)
    assert found is not None
    assert found.estimate == pytest.approx(0.1)
    # Agresti-Coull's limits of 30/300.
    middle, n = (30 + 1.96**2 / 2) / (300 + 1.96**2), 300 + 1.96**2
    half = 1.96 * math.sqrt(middle * (1 - middle) / n)
    assert (found.lower, found.upper) == pytest.approx((middle - half, middle + half), abs=1e-4)


@pytest.mark.parametrize(
    "seen", [Seen(), Seen(caught=5), Seen(cleared=5), Seen(caught=1, missed=1, cleared=1, blamed=1)]
)
def test_an_instrument_that_tells_nothing_corrects_nothing(seen: Seen) -> None:
    assert corrected_share(3, 10, seen, level=0.95) is None


def test_no_level_outside_of_0_and_1() -> None:
    with pytest.raises(ValueError, match="level must be in"):
        corrected_share(1, 2, Seen(caught=1, cleared=1), level=1.0)


@pytest.mark.parametrize(("truth", "se", "sp"), [(0.02, 0.8, 0.99), (0.1, 0.7, 0.95), (0.0, 0.9, 0.98)])
def test_the_limits_hold_the_truth_as_often_as_they_say_by_enumeration(
    truth: float, se: float, sp: float
) -> None:
    n, failures, passes, level = 200, 40, 60, 0.90
    apparent = truth * se + (1 - truth) * (1 - sp)
    covered = 0.0
    for caught in range(failures + 1):
        p_caught = binom.pmf(caught, failures, se)
        if p_caught < 1e-5:
            continue
        for cleared in range(passes + 1):
            p_cleared = binom.pmf(cleared, passes, sp)
            if p_cleared < 1e-4:
                continue
            seen = Seen(caught=caught, missed=failures - caught, cleared=cleared, blamed=passes - cleared)
            for failing in range(int(binom.ppf(1 - 1e-4, n, apparent)) + 1):
                found = corrected_share(failing, n, seen, level=level)
                if found is not None and found.lower - 1e-12 <= truth <= found.upper + 1e-12:
                    covered += p_caught * p_cleared * binom.pmf(failing, n, apparent)
    assert covered >= level - 0.02


def test_the_difference_of_arms_lies_between_its_limits_and_is_wider_than_either() -> None:
    first, second = Rate(estimate=0.1, lower=0.05, upper=0.2), Rate(estimate=0.12, lower=0.08, upper=0.15)
    found = corrected_difference(first, second)
    assert found.estimate == pytest.approx(0.02)
    assert found.lower == pytest.approx(0.02 - math.hypot(0.04, 0.1))
    assert found.upper == pytest.approx(0.02 + math.hypot(0.03, 0.05))
    worst = corrected_difference(Rate(estimate=0, lower=0, upper=1), Rate(estimate=0, lower=0, upper=1))
    assert (worst.lower, worst.upper) == (-1, 1)


def test_few_labels_shift_the_limits_by_hand() -> None:
    """Lang & Reiczigel 2014, written out: 300 of 1,000, sensitivity 16/20, specificity 90/100, level .95."""
    z = 1.959963984540054
    n, apparent = 1000 + z**2, (300 + z**2 / 2) / (1000 + z**2)
    se, sp = 17 / 22, 91 / 102
    share = (apparent + sp - 1) / (se + sp - 1)
    shift = 2 * z**2 * (share * se * (1 - se) / 22 - (1 - share) * sp * (1 - sp) / 102)
    variance = apparent * (1 - apparent) / n
    variance += share**2 * se * (1 - se) / 22 + (1 - share) ** 2 * sp * (1 - sp) / 102
    half = z * math.sqrt(variance) / (se + sp - 1)
    found = corrected_share(300, 1000, Seen(caught=16, missed=4, cleared=90, blamed=10), level=0.95)
    assert found is not None
    assert abs(shift) > 0.005
    assert (found.lower, found.upper) == pytest.approx((share + shift - half, share + shift + half))
