"""What a policy asks for in plain numbers is what `decide` then asks for."""

from __future__ import annotations

import math

import pytest

from service.decision.decide import decide
from service.decision.demands import demands
from service.decision.evidence import Evidence
from service.decision.policy import AlphaSpending, Asked, Criterion, Gate, Hypothesis, Policy, Role
from service.decision.tally import Tally
from service.decision.verdict import Decision

OFF = dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED}


@pytest.mark.parametrize("hypothesis", list(Hypothesis))
@pytest.mark.parametrize(("attempt", "margin", "least"), [(1, 0.01, 10), (3, 0.01, 10), (1, 0.05, 300)])
def test_a_clean_tier_passes_at_the_pairs_it_names_and_not_before(
    hypothesis: Hypothesis, attempt: int, margin: float, least: int
) -> None:
    policy = Policy(
        criteria=(Criterion(evaluator="refusal", hypothesis=hypothesis, margin=margin, min_pairs=least),),
        gates=OFF,
    )
    (demand,) = demands(policy, tiers=1, attempt=attempt)
    assert demand.clean_pairs is not None

    def decided(pairs: int) -> Decision:
        tallies = {"refusal": Tally.of_pairs(n=pairs, harm=0, benefit=0)}
        evidence = Evidence(model="m", tier="t", epoch="e", attempt=attempt, tallies=tallies)
        return decide(policy, evidence, rung_below=None).decision

    assert decided(demand.clean_pairs) is Decision.ACCEPT
    assert decided(demand.clean_pairs - 1) is Decision.UNDECIDED


def test_the_classic_numbers() -> None:
    policy = Policy(
        criteria=tuple(Criterion(evaluator=name) for name in ("a", "b", "c")),
        alpha_spending=AlphaSpending.FIRST_ATTEMPT,
    )
    (first, *_) = demands(policy, tiers=4, strata=10)
    assert first.clean_pairs == 481  # statistics A8
    assert math.exp(first.limits.accept) == pytest.approx(20)
    assert math.exp(first.limits.harm) == pytest.approx(3 * 4 / 0.05)
    assert math.exp(first.limits.strata) == pytest.approx(3 * 4 * 10 / 0.01)


def test_roles_are_told_apart_and_an_end_by_hand_is_kept() -> None:
    policy = Policy(
        criteria=(
            Criterion(evaluator="shown", role=Role.SHOWN),
            Criterion(evaluator="muted", role=Role.MUTED),
            Criterion(evaluator="decides", max_pairs=777),
        )
    )
    asked = demands(policy, tiers=1)
    assert [each.criterion.evaluator for each in asked] == ["decides", "shown"]
    assert asked[0].max_pairs == 777
    assert asked[1].max_pairs is not None
    assert asked[1].max_pairs > 5000


def test_without_an_error_rate_nothing_passes() -> None:
    policy = Policy(criteria=(Criterion(evaluator="a"),), alpha_spending=AlphaSpending.FIRST_ATTEMPT)
    (demand,) = demands(policy, tiers=1, attempt=2)
    assert (demand.clean_pairs, demand.limits.alpha_accept) == (None, 0)
    (hopeless,) = demands(Policy(criteria=(Criterion(evaluator="a", margin=1e-12),)), tiers=1)
    assert hopeless.clean_pairs is None
