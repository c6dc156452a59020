"""The money gate against limits put together by hand from scipy's t and R's Tango interval."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from service.decision.evidence import Shown
from service.decision.failure_chain import ChainStep, FailureChain
from service.decision.money import Arm, at_terms, failure_rise, money_gate
from service.decision.tally import Tally, Triple
from service.decision.terms import Terms

ORACLE = json.loads((Path(__file__).parent / "oracles" / "paired_binary_R.json").read_text())
CASE = next(case for case in ORACLE["cases"] if case["n"] >= 1000 and case["b"] + case["c"] >= 20)
PAIRS = Tally.of_pairs(n=CASE["n"], harm=CASE["b"], benefit=CASE["c"])
SLOW = (980.0, 1010.0, 995.0, 1005.0, 1000.0, 990.0, 1015.0, 1005.0)


def weighing(weight: float) -> Terms:
    return Terms(failure=FailureChain.of_weight(weight))


CLEAN = Tally.of_pairs(n=3000, harm=10, benefit=10)


def arm(
    rates: tuple[float, ...] = SLOW, ratio: float = 1.0, price: float = 2.0, tokens: float = 300.0
) -> Arm:
    return Arm(
        price_per_hour=price,
        tokens_per_second=tuple(ratio * rate for rate in rates),
        mean_output_tokens=tokens,
    )


def cost_limits(rates: tuple[float, ...], level: float) -> tuple[float, float]:
    costs = [2.0 / (3600 * rate) * 300 for rate in rates]
    return float(np.mean(costs)), float(stats.t.ppf((1 + level) / 2, 7) * stats.sem(costs))


def test_the_limits_are_students_tangos_and_movers() -> None:
    measured = money_gate(arm(), arm(ratio=1.2), PAIRS, alpha=0.05)
    (base, base_half), (candidate, half) = (
        cost_limits(tuple(ratio * rate for rate in SLOW), 0.9) for ratio in (1.0, 1.2)
    )
    rise, (lower, upper) = CASE["theta_hat"], CASE["tango_ci90_ratesci"]
    value = base - candidate - 4 * base * rise
    down = math.hypot(base_half, half, 4 * base * (upper - rise))
    up = math.hypot(base_half, half, 4 * base * (rise - lower))
    figures = measured.reason.split("request ")[1].replace("[", "").replace("]:", "").replace(",", "").split()
    assert [float(figure) for figure in figures[:3]] == pytest.approx(
        [value, value - down, value + up], rel=1e-3
    )


@pytest.mark.parametrize(
    ("ratio", "failures", "shown"),
    [
        (1.2, CLEAN, Shown.PASSED),
        (0.9, CLEAN, Shown.FAILED),
        (1.0, CLEAN, Shown.UNDECIDED),
        # 2.1 times the throughput and 41 points more failures cost more than they save.
        (2.1, Tally.of_pairs(n=3000, harm=1250, benefit=20), Shown.FAILED),
        # The worked example of the docs: 4.1 points leave 1.56 of 2.1.
        (2.1, Tally.of_pairs(n=3000, harm=126, benefit=3), Shown.PASSED),
    ],
)
def test_money_is_shown_saved_or_lost(ratio: float, failures: Tally, shown: Shown) -> None:
    assert money_gate(arm(), arm(ratio=ratio), failures, alpha=0.05).shown is shown


def test_what_running_the_tier_costs_counts() -> None:
    saved = cost_limits(SLOW, 0.9)[0] / 6
    assert money_gate(arm(), arm(ratio=1.2), CLEAN, alpha=0.05, operations=2 * saved).shown is Shown.FAILED


def test_a_failure_weighs_as_much_as_one_says() -> None:
    failures = Tally.of_pairs(n=3000, harm=126, benefit=3)
    assert money_gate(arm(), arm(ratio=1.2), failures, alpha=0.05, terms=weighing(0)).shown is Shown.PASSED
    assert money_gate(arm(), arm(ratio=1.2), failures, alpha=0.05, terms=weighing(10)).shown is Shown.FAILED


def test_a_later_run_is_held_to_less() -> None:
    """At 1.6 % saved, 90 % limits exclude nothing saved, and 99 % limits do not."""
    assert money_gate(arm(), arm(ratio=1.016), CLEAN, alpha=0.05, terms=weighing(0)).shown is Shown.PASSED
    assert money_gate(arm(), arm(ratio=1.016), CLEAN, alpha=0.005, terms=weighing(0)).shown is Shown.UNDECIDED


def test_conversations_widen_the_limits_of_the_failures() -> None:
    apart = Tally.of_pairs(n=400, harm=40, benefit=40)
    together = Tally(units={Triple(4, 4, 0): 10, Triple(4, 0, 4): 10, Triple(4, 0, 0): 80})
    loose, tight = failure_rise(together, level=0.9), failure_rise(apart, level=0.9)
    assert loose.value == tight.value == 0
    assert loose.upper - loose.lower > 1.8 * (tight.upper - tight.lower)


def test_the_figures_of_a_run_can_be_weighed_again() -> None:
    """Whoever finds that failures cost more needs no other load run."""
    failures = Tally.of_pairs(n=3000, harm=126, benefit=3)
    cheap, dear = (money_gate(arm(), arm(ratio=1.2), failures, alpha=0.05, terms=weighing(k)) for k in (1, 9))
    assert (cheap.shown, dear.shown) == (Shown.PASSED, Shown.FAILED)
    again = json.loads(json.dumps(dict(cheap.numbers)))
    assert at_terms(replace(cheap, numbers=again), weighing(9)) == dear
    priced = Terms(failure=FailureChain(steps=(ChainStep(name="person", share=0.01, price=5.0),)))
    assert at_terms(dear, priced).shown is Shown.FAILED
    assert at_terms(dear, priced).numbers["failure besides"] == pytest.approx(0.05)


def test_the_net_benefit_is_told_per_million_tokens_too() -> None:
    numbers = money_gate(arm(), arm(ratio=1.2), CLEAN, alpha=0.05, terms=weighing(0)).numbers
    saved = float(numbers["baseline per 1M tokens"]) - float(numbers["candidate per 1M tokens"])
    assert numbers["net benefit per 1M tokens"] == pytest.approx(saved)


def test_where_no_error_rate_is_left_nothing_is_shown() -> None:
    measured = money_gate(arm(), arm(ratio=2.0), CLEAN, alpha=0.0)
    assert measured.shown is Shown.UNDECIDED
    assert measured.reason.startswith("no error rate is left")


@pytest.mark.parametrize(
    ("baseline", "candidate", "failures", "reason"),
    [
        (arm(SLOW[:7]), arm(), CLEAN, "blocks of the baseline (7) < 8"),
        (arm(), arm(SLOW[:7]), CLEAN, "blocks of the candidate (7) < 8"),
        (arm(), arm((0.0, *SLOW)), CLEAN, "a block of the candidate served no token within the SLO"),
        (arm(), arm(ratio=2.0), Tally(), "no pair of answers"),
    ],
)
def test_without_evidence_money_is_undecided(
    baseline: Arm, candidate: Arm, failures: Tally, reason: str
) -> None:
    measured = money_gate(baseline, candidate, failures, alpha=0.05)
    assert measured.shown is Shown.UNDECIDED
    assert reason in measured.reason


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: arm((-1.0, *SLOW)),
        lambda: arm((math.inf, *SLOW)),
        lambda: failure_rise(Tally(), level=0.9),
        lambda: money_gate(arm(), arm(), CLEAN, alpha=0.5),
    ],
)
def test_impossible_figures_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        wrong()
