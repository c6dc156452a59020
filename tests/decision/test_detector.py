"""The detector against its definition, step by step, and against the published delays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.detector import LOG_ALARM, Stretch, first_alarm
from service.decision.eprocess import H5, Grid

START = Stretch(margin=0.01)
differences = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0]), max_size=30)


def by_definition(units: list[float], margin: float) -> float:
    """sum w_k R_k with R <- (R + 1) f, in plain arithmetic."""
    total = 0.0
    for bet, weight in zip(H5.bets, H5.weights, strict=True):
        statistic = 0.0
        for difference in units:
            statistic = (statistic + 1) * (1 + bet * (difference - margin) / (1 + margin))
        total += weight * statistic
    return total


def stream(seed: int, *, units: int, harm: float, benefit: float) -> list[float]:
    drawn = np.random.default_rng(seed).random(units)
    return np.where(drawn < harm, 1.0, np.where(drawn < harm + benefit, -1.0, 0.0)).tolist()


@given(differences)
def test_the_statistic_is_its_definition(units: list[float]) -> None:
    found = START.after(units)
    assert found.units == len(units)
    assert math.exp(found.log_statistic) == pytest.approx(by_definition(units, 0.01), rel=1e-9)


@given(differences, differences, differences)
def test_joined_stretches_are_the_stretch_of_both_however_grouped(
    first: list[float], second: list[float], third: list[float]
) -> None:
    one, two, three = START.after(first), START.after(second), START.after(third)
    whole = START.after([*first, *second, *third])
    for joined in (one.then(two).then(three), one.then(two.then(three)), one.after(second).then(three)):
        assert joined.units == whole.units
        assert joined.log_product == pytest.approx(whole.log_product, rel=1e-9, abs=1e-9)
        assert joined.log_total == pytest.approx(whole.log_total, rel=1e-9, abs=1e-9)


@given(differences)
def test_no_unit_changes_nothing(units: list[float]) -> None:
    found = START.after(units)
    assert found.then(START) == START.then(found) == found.after([]) == found


def test_the_order_of_the_units_matters() -> None:
    rising, falling = START.after([0.0] * 50 + [1.0] * 5), START.after([1.0] * 5 + [0.0] * 50)
    assert rising.log_statistic > falling.log_statistic + 0.5


def test_before_the_first_unit_there_is_no_evidence_and_no_alarm() -> None:
    assert START.log_statistic == -math.inf
    assert not START.alarm
    assert first_alarm(START, []) is None


def test_the_first_alarm_is_where_the_statistic_reaches_a_hundred_thousand() -> None:
    units = [0.0] * 20 + [1.0] * 40
    found = first_alarm(START, units)
    assert found is not None
    assert by_definition(units[: found - 1], 0.01) < 1e5 <= by_definition(units[:found], 0.01)
    assert START.after(units[:found]).alarm
    assert first_alarm(START.after(units[:found]), []) == 0
    assert first_alarm(START.after(units[:10]), units[10:]) == found - 10


@pytest.mark.parametrize(
    ("harm", "benefit", "median"),
    [(0.042, 0.002, 593), (0.022, 0.002, 2381)],
    ids=["four points worse", "two points worse"],
)
def test_the_delay_is_the_published_one(harm: float, benefit: float, median: int) -> None:
    """Statistics B2.5; its discordance is not given, and matters little."""
    delays = [
        first_alarm(START, stream(seed, units=6 * median, harm=harm, benefit=benefit)) or math.inf
        for seed in range(60)
    ]
    assert float(np.median(delays)) == pytest.approx(median, rel=0.25)


def test_an_equal_tier_stays_quiet() -> None:
    assert all(
        first_alarm(START, stream(seed, units=5_000, harm=0.01, benefit=0.01)) is None for seed in range(10)
    )


def test_long_stretches_neither_overflow_nor_vanish() -> None:
    loud, quiet = START.after([1.0] * 20_000), START.after([0.0] * 20_000)
    assert loud.alarm
    assert math.isfinite(loud.log_statistic)
    assert math.isfinite(quiet.log_statistic)
    assert quiet.log_statistic < LOG_ALARM
    assert quiet.then(loud).alarm


@pytest.mark.parametrize("wrong", [1.5, -1.01, math.nan])
def test_a_difference_beyond_one_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="differences"):
        START.after([wrong])
    with pytest.raises(ValueError, match="differences"):
        first_alarm(START, [wrong])


@pytest.mark.parametrize("margin", [-0.01, 1.0, math.nan])
def test_an_impossible_margin_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        Stretch(margin=margin)


def test_stretches_that_bet_differently_are_not_joined() -> None:
    with pytest.raises(ValueError, match="cannot be joined"):
        START.then(Stretch(margin=0.02))
    with pytest.raises(ValueError, match="cannot be joined"):
        START.then(Stretch(margin=0.01, grid=Grid(bets=(0.5,), weights=(1.0,))))


def test_a_stored_stretch_of_other_bets_is_refused() -> None:
    with pytest.raises(ValueError, match="each of 5 bets"):
        Stretch(margin=0.01, units=3, log_product=(0.0,), log_total=(0.0,))
