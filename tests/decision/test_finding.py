"""One criterion: what passes, what harms, what is in the way, and the numbers that say so."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.eprocess import G10, Differences, confidence_sequence
from service.decision.finding import find
from service.decision.policy import AlphaSpending, Criterion, Hypothesis, Policy
from service.decision.tally import Tally, Triple
from service.decision.thresholds import Thresholds, thresholds
from service.decision.verdict import Decision, Finding

ONE_SHOT = AlphaSpending.FIRST_ATTEMPT


def policy_of(criterion: Criterion, **changes: Any) -> Policy:
    return Policy(**({"criteria": (criterion,), "alpha_spending": ONE_SHOT} | changes))


def found(criterion: Criterion, tally: Tally, *, tiers: int = 1, **changes: Any) -> Finding:
    policy = policy_of(criterion)
    return find(policy, criterion, tally, thresholds(policy, tiers=tiers, attempt=1), **changes)


REFUSAL = Criterion(evaluator="refusal")
BOTH_WAYS = Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT)


def test_zero_discordance_is_accepted_from_481_pairs() -> None:
    assert found(REFUSAL, Tally.of_pairs(n=480, harm=0, benefit=0)).decision is Decision.UNDECIDED
    accepted = found(REFUSAL, Tally.of_pairs(n=481, harm=0, benefit=0))
    assert accepted.decision is Decision.ACCEPT
    assert accepted.reason == "shown within the margin of 0.01: e-value 20.1 >= 20"
    assert accepted.more_pairs is None


def test_too_few_pairs_say_how_many_and_how_many_more() -> None:
    finding = found(REFUSAL, Tally.of_pairs(n=12, harm=0, benefit=0))
    assert finding.decision is Decision.UNDECIDED
    assert finding.reason == "counted pairs (12) < min_pairs (300)"
    assert finding.more_pairs == 481 - 12


def test_without_pairs_there_is_no_estimate_and_the_whole_interval() -> None:
    finding = found(REFUSAL, Tally())
    assert finding.decision is Decision.UNDECIDED
    assert finding.estimate is None
    assert (finding.interval.lower, finding.interval.upper) == (-1.0, 1.0)
    assert finding.interval.level == pytest.approx(0.9)


def test_one_huge_conversation_is_one_in_the_estimate_as_in_the_e_values() -> None:
    """Pooled, half of all pairs went wrong; of a thousand conversations, one did."""
    finding = found(
        Criterion(evaluator="refusal", margin=0.05),
        Tally(units={Triple(1000, 1000, 0): 1, Triple(1, 0, 0): 999}),
    )
    assert (finding.n, finding.harm, finding.conversations) == (1999, 1000, 1000)
    assert finding.estimate == pytest.approx(1 / 1000)
    assert finding.interval.lower < 1 / 1000 < finding.interval.upper < 0.05
    assert finding.decision is Decision.ACCEPT


def test_harm_is_shown_before_the_minimum_of_pairs() -> None:
    finding = found(REFUSAL, Tally.of_pairs(n=40, harm=20, benefit=0))
    assert finding.decision is Decision.REJECT
    assert finding.reason.startswith("harm beyond the margin of 0.01 shown: e-value ")
    assert finding.reason.endswith(" >= 20")
    assert finding.warn
    assert finding.more_pairs is None


def test_a_warning_does_not_block_acceptance() -> None:
    # +0.3 points for sure, and for sure below one point.
    finding = found(REFUSAL, Tally.of_pairs(n=60_000, harm=300, benefit=120))
    assert finding.warn
    assert finding.decision is Decision.ACCEPT


def test_an_evident_difference_has_no_forecast() -> None:
    finding = found(REFUSAL, Tally.of_pairs(n=2000, harm=22, benefit=2))
    assert finding.decision is Decision.UNDECIDED
    assert finding.warn
    assert finding.more_pairs is None


def test_pairs_without_a_score_withhold_acceptance() -> None:
    tally = Tally.of_pairs(n=970, harm=0, benefit=0) + Tally(unscored={"shadow": 30})
    finding = found(REFUSAL, tally)
    assert finding.decision is Decision.UNDECIDED
    assert finding.reason == "unscored share 0.03 > 0.01"
    assert finding.more_pairs is None


def test_harm_stands_only_if_no_missing_score_could_undo_it() -> None:
    weak = Tally.of_pairs(n=100, harm=10, benefit=0)
    assert found(REFUSAL, weak).decision is Decision.REJECT
    assert found(REFUSAL, weak + Tally(unscored={"shadow": 5})).decision is Decision.UNDECIDED
    strong = Tally.of_pairs(n=100, harm=60, benefit=0) + Tally(unscored={"shadow": 5})
    assert found(REFUSAL, strong).decision is Decision.REJECT


def test_missing_scores_are_no_harm_to_equivalence() -> None:
    lost = Tally(unscored={"shadow": 500})
    assert found(BOTH_WAYS, lost).decision is Decision.UNDECIDED
    for strong in (Tally.of_pairs(n=100, harm=60, benefit=0), Tally.of_pairs(n=100, harm=0, benefit=60)):
        assert found(BOTH_WAYS, strong + Tally(unscored={"shadow": 5})).decision is Decision.REJECT
        assert found(BOTH_WAYS, strong + lost).decision is Decision.UNDECIDED


def test_losses_in_one_arm_withhold_acceptance() -> None:
    tally = Tally.of_pairs(n=9950, harm=0, benefit=0) + Tally(unscored={"shadow": 50})
    control = Tally.of_pairs(n=9999, harm=0, benefit=0) + Tally(unscored={"shadow": 1})
    assert found(REFUSAL, tally).decision is Decision.ACCEPT
    finding = found(REFUSAL, tally, control=control)
    assert finding.decision is Decision.UNDECIDED
    assert finding.reason.startswith("unscored share differs between arms")


def test_a_criterion_that_the_baseline_fails_too_often_cannot_pass() -> None:
    tally = Tally(units={Triple(1, 0, 0): 1000}, both_failed=501)
    finding = found(REFUSAL, tally)
    assert finding.decision is Decision.UNDECIDED
    assert finding.reason == "uninformative: baseline failure share 0.501 > baseline_failure_cap 0.5"
    assert found(REFUSAL, Tally(units={Triple(1, 0, 0): 1000}, both_failed=500)).decision is Decision.ACCEPT


def test_all_answers_failing_in_both_arms_is_not_equality() -> None:
    assert (
        found(REFUSAL, Tally(units={Triple(1, 0, 0): 5000}, both_failed=5000)).decision is Decision.UNDECIDED
    )


def test_equivalence_needs_both_directions() -> None:
    fewer = Tally.of_pairs(n=2000, harm=0, benefit=12)
    assert found(REFUSAL, fewer).decision is Decision.ACCEPT
    assert found(BOTH_WAYS, fewer).decision is Decision.UNDECIDED
    assert found(BOTH_WAYS, Tally.of_pairs(n=481, harm=0, benefit=0)).decision is Decision.ACCEPT


@pytest.mark.parametrize(("harm", "benefit"), [(60, 0), (0, 60)])
def test_harm_in_either_direction_is_harm_to_equivalence(harm: int, benefit: int) -> None:
    finding = found(BOTH_WAYS, Tally.of_pairs(n=1000, harm=harm, benefit=benefit))
    assert finding.decision is Decision.REJECT
    assert finding.warn


def test_an_equivalence_forecast_waits_for_the_slower_direction() -> None:
    tally = Tally.of_pairs(n=400, harm=2, benefit=0)
    one_way, both_ways = found(REFUSAL, tally).more_pairs, found(BOTH_WAYS, tally).more_pairs
    assert one_way is not None
    assert both_ways == one_way
    mirrored = found(BOTH_WAYS, Tally.of_pairs(n=400, harm=0, benefit=2)).more_pairs
    assert mirrored == both_ways


def test_a_criterion_that_nothing_can_show_has_no_forecast() -> None:
    finding = found(REFUSAL, Tally.of_pairs(n=400, harm=200, benefit=200))
    assert finding.decision is Decision.UNDECIDED
    assert finding.more_pairs is None


def test_past_its_last_pair_a_criterion_is_not_shown() -> None:
    tally = Tally.of_pairs(n=1000, harm=12, benefit=10)
    finding = found(REFUSAL, tally, max_pairs=1000)
    assert finding.decision is Decision.UNDECIDED
    assert finding.reason.startswith("not_shown: counted pairs (1000) >= max_pairs (1000): not yet shown")
    assert finding.more_pairs is None
    assert (
        found(REFUSAL, Tally.of_pairs(n=1000, harm=0, benefit=0), max_pairs=1000).decision is Decision.ACCEPT
    )


def test_a_conversation_is_one_unit_however_many_pairs_it_has() -> None:
    # 10 of 11 conversations lose all their 8 pairs: as pairs overwhelming, as conversations 10 of 11.
    finding = found(REFUSAL, Tally(units={Triple(8, 8, 0): 3, Triple(8, 0, 0): 100}))
    assert (finding.n, finding.conversations, finding.harm) == (824, 103, 24)
    assert finding.decision is Decision.UNDECIDED


def test_alpha_spent_on_the_first_attempt_leaves_none_for_a_second() -> None:
    policy = policy_of(REFUSAL)
    spent = thresholds(policy, tiers=1, attempt=2)
    assert (spent.alpha_accept, spent.accept) == (0.0, math.inf)
    finding = find(policy, REFUSAL, Tally.of_pairs(n=9000, harm=0, benefit=0), spent)
    assert finding.decision is Decision.UNDECIDED
    assert finding.reason == "no error rate is left for attempt 2 > 1"
    assert finding.more_pairs is None
    harmed = find(policy, REFUSAL, Tally.of_pairs(n=40, harm=30, benefit=0), spent)
    assert harmed.decision is Decision.REJECT


def test_the_interval_says_the_same_as_the_decision() -> None:
    tally = Tally.of_pairs(n=481, harm=0, benefit=0)
    assert found(REFUSAL, tally).interval.upper <= 0.01
    assert found(REFUSAL, Tally.of_pairs(n=480, harm=0, benefit=0)).interval.upper > 0.01
    both = found(BOTH_WAYS, tally).interval
    assert (both.lower, both.upper) == confidence_sequence(Differences.of_tally(tally), 0.05, lower_grid=G10)
    assert both.lower == pytest.approx(-both.upper)


@st.composite
def any_tally(draw: st.DrawFn) -> Tally:
    units = {}
    for _ in range(draw(st.integers(0, 4))):
        pairs = draw(st.integers(1, 5))
        harm = draw(st.integers(0, pairs))
        units[Triple(pairs, harm, draw(st.integers(0, pairs - harm)))] = draw(st.integers(1, 10**7))
    concordant = sum((t.pairs - t.harm - t.benefit) * count for t, count in units.items())
    return Tally(
        units=units,
        both_failed=draw(st.integers(0, concordant)),
        unscored={"shadow": draw(st.integers(0, 10**6))},
        not_counted=draw(st.integers(0, 10**6)),
    )


@given(
    any_tally(),
    any_tally(),
    st.sampled_from(Hypothesis),
    st.floats(0.0001, 0.999),
    st.sampled_from([1e-6, 0.05, 0.6, 0.999]),
    st.integers(1, 500),
)
def test_every_valid_tally_has_a_finding_without_a_gap(
    tally: Tally, control: Tally, hypothesis: Hypothesis, margin: float, alpha: float, attempt: int
) -> None:
    criterion = Criterion(evaluator="any", hypothesis=hypothesis, margin=margin)
    policy = policy_of(
        criterion,
        alpha_accept=alpha,
        alpha_harm=alpha,
        alpha_warn=alpha,
        alpha_spending=AlphaSpending.OVER_ATTEMPTS,
    )
    limits: Thresholds = thresholds(policy, tiers=2, attempt=attempt)
    finding = find(policy, criterion, tally, limits, control=control, max_pairs=1000)
    log_e = finding.log_e
    assert finding.estimate is None or finding.interval.lower <= finding.estimate <= finding.interval.upper
    assert all(math.isfinite(value) for value in (log_e.noninferiority, log_e.harm, log_e.warn))
    assert -1 <= finding.interval.lower <= finding.interval.upper <= 1
    assert 0 <= finding.interval.level < 1
    assert (finding.estimate is None) == (finding.n == 0)
    # One sentence, with what was found and what it was held to.
    assert len(re.findall(r"[\d.]+(?:e[+-]\d+)?|infinity", finding.reason)) >= 2
    assert not re.search(r"\. |\.$", finding.reason)
    assert finding.more_pairs is None or (finding.more_pairs > 0 and finding.decision is Decision.UNDECIDED)
    if finding.n == 0:
        assert finding.decision is Decision.UNDECIDED


KINDNESS = {Decision.REJECT: 0, Decision.UNDECIDED: 1, Decision.ACCEPT: 2}


@given(
    st.integers(0, 300),
    st.integers(0, 100),
    st.sampled_from([0, 100, 700, 10**7]) | st.integers(0, 5000),
    st.integers(1, 50),
    st.sampled_from([1e-6, 0.01, 0.2, 0.999]),
    st.sampled_from([1e-12, 0.05, 0.5]),
)
def test_more_harm_among_as_many_pairs_never_makes_a_finding_kinder(
    harm: int, benefit: int, equal: int, turned: int, margin: float, alpha: float
) -> None:
    n, criterion = harm + benefit + equal, Criterion(evaluator="any", margin=margin, min_pairs=1)
    policy = policy_of(criterion, alpha_accept=alpha, alpha_harm=alpha)
    limits = thresholds(policy, tiers=1, attempt=1)
    before, after = (
        find(policy, criterion, Tally.of_pairs(n=n, harm=harms, benefit=benefit), limits)
        for harms in (harm, harm + min(turned, equal))
    )
    assert KINDNESS[after.decision] <= KINDNESS[before.decision]
    slack = 1e-9 * (1 + abs(before.log_e.noninferiority) + abs(before.log_e.harm))
    assert after.log_e.noninferiority <= before.log_e.noninferiority + slack
    assert after.log_e.harm >= before.log_e.harm - slack
    assert after.interval.lower >= before.interval.lower - 1e-11
    assert after.interval.upper >= before.interval.upper - 1e-11


@given(any_tally(), st.sampled_from(Hypothesis))
def test_a_smaller_error_rate_never_has_narrower_limits(tally: Tally, hypothesis: Hypothesis) -> None:
    criterion = Criterion(evaluator="any", hypothesis=hypothesis)
    widest = (0.0, 0.0)
    for alpha in (0.5, 0.05, 0.01, 1e-6, 1e-12):
        policy = policy_of(criterion, alpha_accept=alpha)
        found = find(policy, criterion, tally, thresholds(policy, tiers=1, attempt=1)).interval
        if alpha < 0.5:
            assert found.lower <= widest[0] + 1e-11
            assert found.upper >= widest[1] - 1e-11
        widest = found.lower, found.upper


@pytest.mark.parametrize("attempt", [1, 3])
@pytest.mark.parametrize("n", [480, 560, 700])
def test_limits_are_at_the_error_rate_of_the_attempt(attempt: int, n: int) -> None:
    policy = policy_of(REFUSAL, alpha_spending=AlphaSpending.OVER_ATTEMPTS)
    limits = thresholds(policy, tiers=1, attempt=attempt)
    finding = find(policy, REFUSAL, Tally.of_pairs(n=n, harm=0, benefit=0), limits)
    assert finding.interval.level == pytest.approx(1 - 2 * 0.05 * 6 / (math.pi * attempt) ** 2)
    assert (finding.interval.upper <= REFUSAL.margin) == (finding.decision is Decision.ACCEPT)
