"""Planned pairs against R, and forecasts against the published table of the e-process."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.eprocess import Differences, log_e_noninferiority
from service.decision.planning import (
    discordance_limit,
    fixed_pairs,
    max_pairs,
    pairs_to_pass,
    zero_discordance_pairs,
)
from service.decision.tally import Tally, Triple
from service.decision.tango import restricted_benefit

ORACLE = json.loads((Path(__file__).parent / "oracles" / "planning_R.json").read_text())


def test_planned_pairs_agree_with_r() -> None:
    for case in ORACLE["cases"]:
        found = fixed_pairs(
            margin=case["delta"],
            difference=case["theta"],
            discordance=case["psi"],
            alpha=case["alpha"],
            power=case["power"],
        )
        assert found == pytest.approx(case["n_rmle"], rel=ORACLE["tolerance_rel"]), case
        harm, benefit = (case["psi"] + case["theta"]) / 2, (case["psi"] - case["theta"]) / 2
        restricted = float(restricted_benefit(harm, benefit, 1, case["delta"]))
        # R's optimiser stops at 1e-12 where the estimate is 0.
        assert restricted == pytest.approx(case["rmle_p01"], rel=ORACLE["tolerance_rel"], abs=1e-11), case


def test_a_design_effect_multiplies_the_pairs() -> None:
    plain = fixed_pairs(margin=0.01, discordance=0.02, alpha=0.05, power=0.9)
    doubled = fixed_pairs(margin=0.01, discordance=0.02, alpha=0.05, power=0.9, design_effect=2)
    assert doubled == 2 * plain
    assert math.ceil(plain) == 1901


def test_a_power_below_alpha_needs_no_pairs() -> None:
    assert fixed_pairs(margin=0.01, discordance=0.02, alpha=0.4, power=0.01) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin": 0.0},
        {"alpha": 1.0},
        {"discordance": 1.5},
        {"discordance": math.nan},
        {"difference": 0.03},
        {"difference": math.nan},
        {"discordance": 0.02, "difference": 0.01},
        {"power": 1.0},
        {"design_effect": 0.5},
        {"design_effect": math.inf},
    ],
)
def test_what_no_sample_can_show_is_refused(wrong: dict[str, Any]) -> None:
    scenario = {"margin": 0.01, "discordance": 0.02, "alpha": 0.05, "power": 0.9} | wrong
    with pytest.raises(ValueError, match=r".+"):
        fixed_pairs(**scenario)


@pytest.mark.parametrize(
    ("margin", "alpha", "fewest"),
    # 22: the demo's margin. 538 and 25: the share of alpha .05 that a first attempt gets.
    [
        (0.01, 0.05, 481),
        (0.005, 0.05, 964),
        (0.02, 0.05, 239),
        (0.2, 0.05, 22),
        (0.01, 0.05 * 6 / math.pi**2, 538),
        (0.2, 0.05 * 6 / math.pi**2, 25),
    ],
)
def test_zero_discordance_needs_a_known_number_of_pairs(margin: float, alpha: float, fewest: int) -> None:
    assert zero_discordance_pairs(margin, alpha) == fewest


def test_a_margin_that_nobody_can_show_is_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        zero_discordance_pairs(1e-8, 1e-9)


def test_without_discordance_the_forecast_is_exact() -> None:
    seen = Differences.of_tally(Tally.of_pairs(n=200, harm=0, benefit=0))
    assert pairs_to_pass(seen, 0.01, math.log(20)) == 281


def test_what_passes_already_needs_nothing() -> None:
    assert pairs_to_pass(Differences.of({0.0: 500}), 0.01, math.log(20)) == 0


@pytest.mark.parametrize(
    ("discordance", "simulated_mean"),
    # Statistics B4, theta = 0, margin .01, alpha .05.
    [(0.005, 771), (0.01, 1071), (0.02, 1678), (0.03, 2329), (0.05, 3747), (0.1, 7641)],
)
def test_the_forecast_is_a_little_above_the_mean(discordance: float, simulated_mean: int) -> None:
    # A tiny history with that discordance: the forecast is then all but the whole way.
    history = Differences.of({1.0: 1, -1.0: 1, 0.0: round(2 / discordance) - 2})
    whole = history.units + (pairs_to_pass(history, 0.01, math.log(20)) or 0)
    assert simulated_mean < whole < 1.25 * simulated_mean


def test_a_forecast_counts_pairs_and_not_conversations() -> None:
    quiet = Differences.of_tally(Tally(units={Triple(4, 0, 0): 100}))
    assert pairs_to_pass(quiet, 0.01, math.log(20), pairs_per_unit=4) == 381 * 4


@pytest.mark.parametrize(
    ("history", "threshold"),
    [
        ({1.0: 50, -1.0: 50}, math.log(20)),  # every pair discordant: no bet of the grid grows
        ({0.0: 10}, math.inf),  # no error rate left
    ],
)
def test_what_will_never_pass_has_no_forecast(history: dict[float, int], threshold: float) -> None:
    assert pairs_to_pass(Differences.of(history), 0.01, threshold) is None


def test_a_deep_hole_is_out_of_sight() -> None:
    assert pairs_to_pass(Differences.of({1.0: 10**9, 0.0: 10**10}), 0.01, math.log(20)) is None


@given(st.integers(0, 400), st.integers(0, 3), st.integers(0, 3))
def test_the_forecast_is_the_first_number_of_pairs_that_passes(n: int, harm: int, benefit: int) -> None:
    tally = Tally.of_pairs(n=n + harm + benefit, harm=harm, benefit=benefit)
    needed = pairs_to_pass(Differences.of_tally(tally), 0.05, math.log(20))
    if needed and not harm and not benefit:
        assert log_e_noninferiority(Differences.of({0.0: n + needed}), 0.05) >= math.log(20)
        assert log_e_noninferiority(Differences.of({0.0: n + needed - 1}), 0.05) < math.log(20)
    assert needed is None or needed >= 0


def test_the_limit_of_the_discordance_is_clopper_and_pearsons() -> None:
    assert discordance_limit(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59), rel=1e-12)
    assert discordance_limit(0, 0) == 1
    assert discordance_limit(10, 10) == 1
    with pytest.raises(ValueError, match="discordant"):
        discordance_limit(3, 2)


def test_an_epoch_stops_at_six_times_its_planned_sample() -> None:
    least = max_pairs(margin=0.01, alpha=0.05, discordant=0, pairs=10_000)
    assert least == math.ceil(6 * fixed_pairs(margin=0.01, discordance=0.01, alpha=0.05, power=0.9))
    noisy = max_pairs(margin=0.01, alpha=0.05, discordant=0, pairs=10_000, control_discordance=0.05)
    assert noisy == math.ceil(6 * fixed_pairs(margin=0.01, discordance=0.05, alpha=0.05, power=0.9))
    assert max_pairs(margin=0.01, alpha=0.05, discordant=15, pairs=300) > noisy


@pytest.mark.parametrize(
    ("margin", "difference"), [(5e-324, 0.0), (1e-200, 0.0), (9e-9, 0.0), (0.01, 0.01 - 1e-9)]
)
def test_what_no_number_of_pairs_could_tell_apart_is_refused(margin: float, difference: float) -> None:
    with pytest.raises(ValueError, match="apart or more"):
        fixed_pairs(margin=margin, discordance=0.01, alpha=0.05, power=0.9, difference=difference)


@pytest.mark.parametrize("alpha", [0.05, 1e-12])
@pytest.mark.parametrize("margin", [1e-6, 0.01, 0.5, 0.95, 0.999])
def test_no_epoch_ends_before_a_clean_tier_could_pass(margin: float, alpha: float) -> None:
    """One look may take a single pair at a margin near 1, where the e-process takes five."""
    end = max_pairs(margin=margin, alpha=alpha, discordant=0, pairs=300)
    assert end >= zero_discordance_pairs(margin, alpha)
