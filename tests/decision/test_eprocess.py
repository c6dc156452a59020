"""The e-process against 60-digit arithmetic and confseq, and the properties that make it a decision."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.eprocess import (
    G10,
    H5,
    Differences,
    Grid,
    confidence_sequence,
    log_capital,
    log_e_harm,
    log_e_noninferiority,
    log_factors,
    log_mean,
    log_mixtures,
    upper_limit,
)
from service.decision.tally import Tally, Triple

ORACLE = json.loads((Path(__file__).parent / "oracles" / "eprocess.json").read_text())
CASES = [pytest.param(case, id=f"{case['b']}-{case['c']}-{case['n']}") for case in ORACLE["cases"]]


def of_counts(n: int, harm: int, benefit: int) -> Differences:
    return Differences.of_tally(Tally.of_pairs(n=n, harm=harm, benefit=benefit))


def test_the_grid_is_the_one_that_the_reference_numbers_were_made_with() -> None:
    assert G10.bets == pytest.approx(ORACLE["grid"]["kappa"], rel=1e-15)
    assert G10.weights == pytest.approx(ORACLE["grid"]["weight"], rel=1e-15)


@pytest.mark.parametrize("case", CASES)
def test_log_e_values_agree_with_sixty_digit_arithmetic(case: dict[str, float]) -> None:
    differences = of_counts(case["n"], case["b"], case["c"])
    tolerance = {"abs": ORACLE["tolerance"]["log_e"], "rel": 1e-12}
    assert log_e_noninferiority(differences, case["m"]) == pytest.approx(case["log_e_ni"], **tolerance)
    assert log_e_harm(differences, case["m"], G10) == pytest.approx(case["log_e_harm"], **tolerance)


@pytest.mark.parametrize("case", [case for case in CASES if case.values[0]["log_e_ni_confseq"] is not None])
def test_log_e_values_agree_with_the_capital_of_confseq(case: dict[str, float]) -> None:
    found = log_e_noninferiority(of_counts(case["n"], case["b"], case["c"]), case["m"])
    assert found == pytest.approx(case["log_e_ni_confseq"], abs=ORACLE["tolerance"]["confseq"])


@pytest.mark.parametrize("case", CASES)
def test_the_confidence_sequence_agrees_with_reference_bisection(case: dict[str, float]) -> None:
    differences = of_counts(case["n"], case["b"], case["c"])
    lower, upper = confidence_sequence(differences, ORACLE["alpha"], lower_grid=G10)
    assert lower == pytest.approx(case["lower95"], abs=ORACLE["tolerance"]["bounds"])
    assert upper == pytest.approx(case["upper95"], abs=ORACLE["tolerance"]["bounds"])


@pytest.mark.parametrize(("margin", "fewest"), [(0.01, 481), (0.005, 964), (0.02, 239)])
def test_zero_discordance_passes_from_a_known_number_of_pairs(margin: float, fewest: int) -> None:
    threshold = math.log(20)
    assert log_e_noninferiority(of_counts(fewest - 1, 0, 0), margin) < threshold
    assert log_e_noninferiority(of_counts(fewest, 0, 0), margin) >= threshold


def test_harm_is_the_mirror_image_of_noninferiority() -> None:
    mirrored = log_e_noninferiority(of_counts(1000, 4, 45), -0.01, H5)
    assert log_e_harm(of_counts(1000, 45, 4), 0.01) == pytest.approx(mirrored, rel=1e-12)


def test_without_units_there_is_no_evidence_and_no_limit() -> None:
    nothing = Differences.of({})
    assert nothing.units == 0
    assert log_e_noninferiority(nothing, 0.01) == pytest.approx(0, abs=1e-12)
    assert log_e_harm(nothing, 0.01) == pytest.approx(0, abs=1e-12)
    assert confidence_sequence(nothing, 0.05) == (-1.0, 1.0)


@pytest.mark.parametrize(("harm", "benefit", "end"), [(50, 0, 1), (0, 50, 0)])
def test_when_every_pair_goes_one_way_the_limit_there_is_open(harm: int, benefit: int, end: int) -> None:
    limits = confidence_sequence(of_counts(50, harm, benefit), 0.05)
    assert limits[end] == (1.0 if end else -1.0)
    assert -1 < limits[1 - end] < 1


def test_at_ten_million_pairs_nothing_overflows() -> None:
    differences = of_counts(10_000_000, 500_000, 400_000)
    lower, upper = confidence_sequence(differences, 0.05)
    assert lower < 0.01 < upper
    assert upper - lower < 0.01
    assert log_e_noninferiority(of_counts(10_000_000, 0, 0), 0.01) == pytest.approx(
        math.log(0.11) + 1e7 * math.log1p(0.999 * 0.01 / 0.99), rel=1e-12
    )


def test_a_conversation_counts_by_the_mean_of_its_pairs() -> None:
    # 10 conversations of 4 pairs with one harm each: D = 1/4, not forty pairs with ten harms.
    conversations = Differences.of_tally(Tally(units={Triple(4, 1, 0): 10}))
    expected = math.log(
        math.fsum(
            weight * (1 + bet * (0.01 - 0.25) / 0.99) ** 10
            for bet, weight in zip(G10.bets, G10.weights, strict=True)
        )
    )
    assert log_e_noninferiority(conversations, 0.01) == pytest.approx(expected, rel=1e-12)


def test_fractional_scores_are_differences_too() -> None:
    thirds = Differences.of({1 / 3: 3, 0.0: 3})
    triples = Differences.of_tally(Tally(units={Triple(3, 1, 0): 3, Triple(3, 0, 0): 3}))
    assert log_e_harm(thirds, 0.0) == pytest.approx(log_e_harm(triples, 0.0), rel=1e-14)


@pytest.mark.parametrize("histogram", [{1.5: 1}, {-1.01: 1}, {0.0: -1}, {math.nan: 1}, {0.0: math.inf}])
def test_what_is_not_a_difference_is_refused(histogram: dict[float, Any]) -> None:
    with pytest.raises(ValueError, match="must be in"):
        Differences.of(histogram)


@pytest.mark.parametrize("bound", [-1.0, 1.0, 2.0, math.nan])
def test_a_bound_on_theta_is_inside_minus_one_and_one(bound: float) -> None:
    with pytest.raises(ValueError, match="must be in"):
        log_e_noninferiority(of_counts(1, 0, 0), bound)


@pytest.mark.parametrize("alpha", [0.0, 1.0, math.nan])
def test_alpha_is_a_probability(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        upper_limit(of_counts(1, 0, 0), alpha)


@pytest.mark.parametrize(
    ("bets", "weights"),
    [((), ()), ((0.5,), (0.5, 0.5)), ((1.0,), (1.0,)), ((0.5,), (0.9,)), ((0.5, 0.1), (1.5, -0.5))],
)
def test_a_grid_is_a_distribution_over_bets_below_one(
    bets: tuple[float, ...], weights: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match=r"bet|weights"):
        Grid(bets=bets, weights=weights)


def test_the_mean_of_two_e_values_does_not_leave_log_space() -> None:
    assert log_mean(math.log(3), math.log(5)) == pytest.approx(math.log(4))
    assert log_mean(5000.0, -5000.0) == pytest.approx(5000 - math.log(2))


counts = st.tuples(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))


@given(counts, st.floats(0.001, 0.99))
def test_every_valid_table_has_finite_e_values(parts: tuple[int, int, int], margin: float) -> None:
    harm, benefit, concordant = parts
    differences = of_counts(harm + benefit + concordant, harm, benefit)
    assert math.isfinite(log_e_noninferiority(differences, margin))
    assert math.isfinite(log_e_harm(differences, margin))
    assert math.isfinite(log_e_harm(differences, 0.0))


@given(counts, st.sampled_from([1e-6, 0.03, 0.05, 0.5, 0.9]))
def test_limits_are_ordered_and_agree_with_the_e_value(parts: tuple[int, int, int], alpha: float) -> None:
    harm, benefit, concordant = parts
    differences = of_counts(harm + benefit + concordant, harm, benefit)
    lower, upper = confidence_sequence(differences, alpha, lower_grid=G10)
    assert -1 <= lower <= upper <= 1
    for margin in (0.01, 0.2):
        passes = log_e_noninferiority(differences, margin) >= -math.log(alpha)
        assert passes == (upper <= margin) or upper == pytest.approx(margin, abs=1e-9)


@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 50)), min_size=1, max_size=8))
def test_evidence_grows_with_the_bound_that_is_to_be_excluded(units: list[tuple[float, int]]) -> None:
    differences = Differences.of(dict(units))
    values = [log_e_noninferiority(differences, m) for m in (-0.5, -0.01, 0.0, 0.01, 0.2, 0.9)]
    assert values == sorted(values) or np.allclose(values, sorted(values), atol=1e-9)


@pytest.mark.parametrize("discordance", [0.0101, 0.02, 0.05])
def test_peeking_at_every_pair_errs_at_most_alpha_exactly_at_the_margin(discordance: float) -> None:
    """Statistics B2.2 found .032, .034 and .043 over 20,000 pairs; here 6,000 pairs, 600 epochs, seeded."""
    generator = np.random.default_rng(20)
    epochs, pairs, margin = 600, 6000, 0.01
    draws = generator.random((epochs, pairs))
    harm, benefit = (discordance + margin) / 2, (discordance - margin) / 2
    harms = (draws < harm).cumsum(axis=1)
    benefits = (draws > 1 - benefit).cumsum(axis=1)
    looked = np.arange(1, pairs + 1)
    capital = np.full((epochs, pairs), -np.inf)
    for bet, weight in zip(G10.bets, G10.weights, strict=True):
        one = (
            harms * math.log1p(-bet)
            + (looked - harms - benefits) * math.log1p(bet * margin / (1 - margin))
            + benefits * math.log1p(bet * (1 + margin) / (1 - margin))
        )
        capital = np.logaddexp(capital, one + math.log(weight))
    wrong = (capital >= math.log(20)).any(axis=1).mean()
    # 0.05 plus three standard errors of 600 epochs.
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / epochs)
    assert capital[0, -1] == pytest.approx(
        log_e_noninferiority(of_counts(pairs, int(harms[0, -1]), int(benefits[0, -1])), margin), rel=1e-9
    )


@st.composite
def distributions(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Values of D in [-1, 1], fractions included, and their probabilities."""
    values = draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]) | st.floats(-1, 1), min_size=1, max_size=6))
    weights = draw(st.lists(st.floats(0.001, 1), min_size=len(values), max_size=len(values)))
    total = math.fsum(weights)
    return values, [weight / total for weight in weights]


@given(distributions(), st.sampled_from([G10, H5]))
def test_no_bet_gains_on_average_while_the_null_holds(
    distribution: tuple[list[float], list[float]], grid: Grid
) -> None:
    """All there is to validity, for fractions as for counts: E[1 + k (m - D)/(1 - m)] <= 1 if E[D] >= m."""
    values, chances = distribution
    mean = math.fsum(value * chance for value, chance in zip(values, chances, strict=True))
    for below in (0.0, 0.01, 0.3):
        bound = mean - below
        if -1 < bound < 1:
            factors = np.exp(log_factors(np.array(values), bound, grid))
            assert np.all(factors > 0)
            expected = factors @ np.array(chances)
            assert np.all(expected <= 1 + 1e-9)
            if not below:
                assert expected == pytest.approx(np.ones(len(grid.bets)), abs=1e-9)


histograms = st.dictionaries(
    st.sampled_from([-1.0, -0.5, 0.0, 1 / 3, 1.0]), st.integers(0, 10**6), max_size=5
)


@given(histograms, histograms, st.floats(-0.9, 0.9))
def test_evidence_of_two_workers_is_the_evidence_of_both(
    first: dict[float, int], second: dict[float, int], bound: float
) -> None:
    both = {value: first.get(value, 0) + second.get(value, 0) for value in first | second}
    parts = [log_capital(Differences.of(each), bound, G10) for each in (first, second)]
    assert log_capital(Differences.of(both), bound, G10) == pytest.approx(
        parts[0] + parts[1], rel=1e-9, abs=1e-6
    )


def highest_mixture(drawn: np.ndarray, margin: float) -> np.ndarray:
    """Of each stream of D, the highest log E_NI over a look after every unit."""
    values, column = np.unique(drawn, return_inverse=True)
    factors = log_factors(values, margin, G10)
    capital = np.zeros((drawn.shape[0], len(G10.bets)))
    highest = np.full(drawn.shape[0], -np.inf)
    for units in column.reshape(drawn.shape).T:
        capital += factors.T[units]
        highest = np.maximum(highest, log_mixtures(capital, G10))
    return highest


def test_fractional_recall_at_the_margin_errs_at_most_alpha_under_peeking() -> None:
    """Statistics B1.5: a total loss now and then beside noise of an eighth, where t limits err .08 to .10."""
    generator = np.random.default_rng(5)
    shape, margin = (300, 2000), 0.01
    noise = generator.choice([-0.125, 0.0, 0.125], p=[0.05, 0.9, 0.05], size=shape)
    # The noise is 0 on average, so the mean is the margin.
    drawn = np.where(generator.random(shape) < margin, 1.0, noise)
    wrong = (highest_mixture(drawn, margin) >= math.log(20)).mean()
    assert wrong <= 0.05


def test_conversations_that_fail_as_one_err_at_most_alpha_and_their_pairs_as_units_do_not() -> None:
    """Statistics A2: closed conversations of four pairs which fail together, exactly at the margin."""
    generator = np.random.default_rng(6)
    conversations, pairs, margin, discordance = 500, 4, 0.05, 0.1
    drawn = generator.random((300, conversations))
    harm, benefit = (discordance + margin) / 2, (discordance - margin) / 2
    means = np.where(drawn < harm, 1.0, np.where(drawn > 1 - benefit, -1.0, 0.0))
    assert (highest_mixture(means, margin) >= math.log(20)).mean() <= 0.05
    assert (highest_mixture(means.repeat(pairs, axis=1), margin) >= math.log(20)).mean() > 0.1
    # The histogram of triples holds the same conversations.
    harms, benefits = int((means[0] == 1).sum()), int((means[0] == -1).sum())
    tally = Tally(
        units={
            Triple(pairs, pairs, 0): harms,
            Triple(pairs, 0, pairs): benefits,
            Triple(pairs, 0, 0): conversations - harms - benefits,
        }
    )
    assert log_e_noninferiority(Differences.of_tally(tally), margin) <= highest_mixture(means[:1], margin)[0]
