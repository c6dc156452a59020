"""The retry rate, and that retries are charged once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.decision.economics import Estimate, net_benefit
from service.decision.retries import Resent, baseline_rate, candidate_rate, live_rate
from service.decision.tally import Tally

STRUCTURED = Tally.of_pairs(n=1000, harm=45, benefit=4) + Tally(both_failed=0)


@given(st.integers(1, 5000), st.floats(0, 1))
def test_limits_are_exact(total: int, share: float) -> None:
    again = int(total * share)
    found = live_rate(Resent(total=total, resent=again))
    expected = stats.binomtest(again, total).proportion_ci(0.95, method="exact")
    assert found is not None
    assert found.value == again / total
    assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_tier_that_serves_is_known_by_its_own_clients() -> None:
    found = candidate_rate(Resent(total=200, resent=10), Resent(total=900, resent=9), STRUCTURED)
    assert found is not None
    assert found.value == 0.05
    assert found.source == "live traffic: 10 of 200 requests were sent again"


def test_another_adds_what_it_fails_more_often() -> None:
    found = candidate_rate(None, Resent(total=900, resent=9), STRUCTURED, retried=0.5)
    assert found is not None
    assert found.value == pytest.approx(0.01 + 0.5 * 0.041)
    assert "+4.10 pp" in found.source


def test_without_live_traffic_failures_alone_are_paid_for_again() -> None:
    tally = Tally.of_pairs(n=1000, harm=45, benefit=4) + Tally.of_pairs(n=0, harm=0, benefit=0)
    candidate, baseline = candidate_rate(None, None, tally), baseline_rate(Resent(total=0, resent=0), tally)
    assert candidate is not None
    assert baseline is not None
    assert (candidate.value, baseline.value) == (0.045, 0.004)
    assert candidate_rate(None, None, Tally()) is None
    assert baseline_rate(None, Tally()) is None


def test_the_effective_cost_pays_for_the_retries() -> None:
    found = live_rate(Resent(total=10, resent=1))
    assert found is not None
    assert found.effective(9.0) == pytest.approx(10.0)
    every = live_rate(Resent(total=10, resent=10))
    assert every is not None
    assert every.effective(9.0) is None


def test_retries_are_charged_once() -> None:
    """The net benefit is of unit costs: what a failure costs is in its chain, the retry with it."""
    sure = {name: Estimate(value=value, lower=value, upper=value) for name, value in (("b", 1.0), ("q", 0.5))}
    rise = Estimate(value=0.041, lower=0.041, upper=0.041)
    found = net_benefit(baseline=sure["b"], candidate=sure["q"], failure_rise=rise, weight=4)
    assert found.value == pytest.approx(1.0 - 0.5 - 4 * 0.041)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Resent(total=1, resent=2),
        lambda: live_rate(Resent(total=1, resent=0), level=1.0),
        lambda: candidate_rate(None, None, Tally(), retried=1.1),
        lambda: baseline_rate(None, Tally(), retried=-0.1),
    ],
)
def test_impossible_shares_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"no more requests|must be in"):
        wrong()
