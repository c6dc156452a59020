"""A plan before any evidence."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.decision.plan import Scenario, plan


def test_one_criterion_is_planned_by_formula_and_by_simulation() -> None:
    made = plan(Scenario(margin=0.01, discordance=0.02), seed=1)
    assert made.fixed == 1901
    assert made.zero_discordance == 481
    assert made.mean == pytest.approx(1678, rel=0.08)
    assert made.median == pytest.approx(1459, rel=0.08)
    assert made.quantile == pytest.approx(3125, rel=0.08)
    assert made.max_pairs == math.ceil(6 * 1900.138)
    rare, one_in_a_hundred = (
        plan(Scenario(margin=0.01, discordance=psi), seed=1, repeats=50) for psi in (0.001, 0.01)
    )
    assert rare.max_pairs == one_in_a_hundred.max_pairs, "an end is planned for 1 % at least"
    assert plan(Scenario(margin=0.01, discordance=0.02), seed=1) == made


def test_several_criteria_take_longer_than_one() -> None:
    one = plan(Scenario(margin=0.05, discordance=0.05), seed=1, repeats=500)
    three = plan(Scenario(margin=0.05, discordance=0.05, criteria=3), seed=1, repeats=500)
    assert three.fixed > one.fixed
    assert three.quantile is not None
    assert one.quantile is not None
    assert three.quantile > one.quantile
    assert three.zero_discordance == one.zero_discordance


def test_conversations_multiply_the_pairs() -> None:
    plain = plan(Scenario(margin=0.05, discordance=0.05), seed=1, repeats=200)
    clustered = plan(Scenario(margin=0.05, discordance=0.05, design_effect=2.0), seed=1, repeats=200)
    assert clustered.fixed == pytest.approx(2 * plain.fixed, abs=2)
    assert plain.mean is not None
    assert clustered.mean == pytest.approx(2 * plain.mean, abs=2)


def test_a_first_attempt_is_planned_at_its_share_of_alpha() -> None:
    scenario = Scenario(margin=0.01, discordance=0.02, attempt=1)
    assert scenario.planned_alpha == pytest.approx(0.05 * 6 / math.pi**2)
    assert plan(scenario, seed=1, repeats=50).zero_discordance == 538


def test_days_follow_from_the_traffic() -> None:
    scenario = Scenario(margin=0.01, discordance=0.02, requests_per_day=1000, sample=0.05, applies=0.5)
    assert scenario.pairs_per_day == 25
    assert Scenario(margin=0.01, discordance=0.02).pairs_per_day is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"criteria": 0},
        {"requests_per_day": 0.0},
        {"requests_per_day": math.inf},
        {"sample": 0.0},
        {"sample": math.nan},
        {"applies": 1.5},
    ],
)
def test_a_scenario_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Scenario(margin=0.01, discordance=0.02, **wrong)


@pytest.mark.parametrize("wrong", [{"power": 1.0}, {"power": 0.0}, {"difference": 0.01}, {"attempt": 0}])
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        plan(Scenario(margin=0.01, discordance=0.02, **wrong), seed=1)


def test_no_plan_stops_before_a_clean_tier_could_pass() -> None:
    made = plan(Scenario(margin=0.999, discordance=0.0, alpha=1e-12), seed=1, repeats=50)
    assert (made.fixed, made.zero_discordance, made.max_pairs) == (1, 5, 5)
