"""When an epoch ends: N_max is planned once, at the minimum of pairs; T_max ends it whatever it has."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.decision.clusters import design_effect
from service.decision.ending import out_of_pairs, out_of_time, planned_max_pairs
from service.decision.planning import MOST_PAIRS, discordance_limit, fixed_pairs
from service.decision.policy import AlphaSpending, Criterion, Policy
from service.decision.tally import Tally, Triple
from service.decision.thresholds import thresholds

REFUSAL = Criterion(evaluator="refusal")


def planned(tally: Tally, criterion: Criterion = REFUSAL, attempt: int = 1, **changes: Any) -> int | None:
    control = changes.pop("control", None)
    policy = Policy(**({"criteria": (criterion,), "alpha_spending": AlphaSpending.FIRST_ATTEMPT} | changes))
    limits = thresholds(policy, tiers=1, attempt=attempt)
    return planned_max_pairs(policy, criterion, tally, limits, control=control)


def six_n90(psi: float, alpha: float = 0.05, effect: float = 1.0) -> int:
    return math.ceil(
        6 * fixed_pairs(margin=0.01, discordance=psi, alpha=alpha, power=0.9, design_effect=effect)
    )


def test_before_the_minimum_of_pairs_nothing_is_planned() -> None:
    assert planned(Tally.of_pairs(n=299, harm=0, benefit=0)) is None
    assert planned(Tally.of_pairs(n=300, harm=0, benefit=0)) == six_n90(max(0.01, 1 - 0.05 ** (1 / 300)))


def test_discordance_is_planned_at_the_largest_of_floor_control_and_own_limit() -> None:
    clean = Tally.of_pairs(n=100_000, harm=0, benefit=0)
    assert planned(clean) == six_n90(0.01)
    noisy_control = Tally.of_pairs(n=1000, harm=25, benefit=15)
    assert planned(clean, control=noisy_control) == six_n90(0.04)
    own = Tally.of_pairs(n=300, harm=9, benefit=6)
    assert planned(own, control=noisy_control) == six_n90(discordance_limit(15, 300))
    assert planned(clean, control=Tally()) == six_n90(0.01)


def test_the_plan_is_blind_to_the_direction() -> None:
    plans = {planned(Tally.of_pairs(n=400, harm=harm, benefit=20 - harm)) for harm in range(21)}
    assert len(plans) == 1


def test_a_later_attempt_is_planned_at_its_own_error_rate() -> None:
    tally = Tally.of_pairs(n=100_000, harm=0, benefit=0)
    spending = {"alpha_spending": AlphaSpending.OVER_ATTEMPTS}
    assert planned(tally, attempt=3, **spending) == six_n90(0.01, 0.05 * 6 / (9 * math.pi**2))
    # The only attempt is spent: the plan is that of the first, so that the epoch ends.
    assert planned(tally, attempt=2) == six_n90(0.01)


def test_conversations_take_their_design_effect_more() -> None:
    tally = Tally(units={Triple(4, 2, 0): 5, Triple(4, 0, 0): 200})
    effect = design_effect(tally)
    assert effect > 1.5
    assert planned(tally) == six_n90(discordance_limit(10, 820), effect=effect)


def test_a_wide_margin_never_plans_less_than_the_minimum() -> None:
    wide = Criterion(evaluator="refusal", margin=0.5, min_pairs=5000)
    assert planned(Tally.of_pairs(n=5000, harm=0, benefit=0), wide) == 5000


def test_a_person_says_when_to_stop_at_any_number_of_pairs() -> None:
    by_hand = Criterion(evaluator="refusal", max_pairs=700)
    assert planned(Tally(), by_hand) == 700
    assert planned(Tally.of_pairs(n=9000, harm=90, benefit=90), by_hand) == 700
    short = Tally.of_pairs(n=700, harm=9, benefit=8)
    assert out_of_pairs(by_hand, short, 10_000) == "counted pairs (700) >= max_pairs (700)"
    assert out_of_pairs(by_hand, Tally.of_pairs(n=699, harm=9, benefit=8), 300) is None


def test_without_a_plan_there_is_no_last_pair() -> None:
    many = Tally.of_pairs(n=10**6, harm=0, benefit=0)
    assert out_of_pairs(REFUSAL, many, None) is None
    assert out_of_pairs(REFUSAL, many, 10**6) == "counted pairs (1000000) >= max_pairs (1000000)"


@pytest.mark.parametrize(
    ("longest", "age", "ended"),
    [
        (None, 1e9, None),
        (604_800.0, None, None),
        (604_800.0, 604_799.0, None),
        (604_800.0, 700_000.4, "age of the epoch (700000 s) >= longest (604800 s)"),
    ],
)
def test_an_epoch_may_take_so_long(longest: float | None, age: float | None, ended: str | None) -> None:
    policy = Policy(criteria=(REFUSAL,), longest_seconds=longest)
    assert out_of_time(policy, age) == ended


@pytest.mark.parametrize("margin", [1e-9, 1e-50, 1e-160, 1e-200, 5e-324])
def test_a_margin_that_nobody_can_show_ends_at_a_number_that_a_database_can_hold(margin: float) -> None:
    criterion = Criterion(evaluator="refusal", margin=margin)
    assert planned(Tally.of_pairs(n=300, harm=1, benefit=1), criterion) == MOST_PAIRS
    assert planned(Tally.of_pairs(n=300, harm=1, benefit=1), criterion, alpha_accept=1e-300) == MOST_PAIRS
