"""The SLO gate against Tango's statistic from R with Student's t, and the sizes of statistics A10."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.decision.clusters import design_effect
from service.decision.evidence import Shown
from service.decision.slo import baseline_slo, p_values, plan_run, slo_gate
from service.decision.tally import Tally, Triple
from service.decision.terms import Terms

ORACLE = json.loads((Path(__file__).parent / "oracles" / "paired_binary_R.json").read_text())
TABLES = [case for case in ORACLE["cases"] if case["n"] >= 2 and case["b"] + case["c"] >= 20]


def run_of(*triples: tuple[int, int, int], blocks: int = 1, both_failed: int = 0) -> Tally:
    """These triples, each in so many blocks."""
    return Tally(units={Triple(*triple): blocks for triple in triples}, both_failed=both_failed)


@pytest.mark.parametrize("case", TABLES)
def test_blocks_of_one_request_give_tangos_statistic_with_students_t(case: dict[str, Any]) -> None:
    tally = Tally.of_pairs(n=case["n"], harm=case["b"], benefit=case["c"])
    statistic = case["z_d0_p0.01"]
    expected = stats.t.cdf(statistic, case["n"] - 1), stats.t.sf(statistic, case["n"] - 1)
    assert p_values(tally, margin=0.01) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_blocks_that_differ_among_themselves_count_for_less() -> None:
    alike = run_of((240, 3, 3), blocks=24)
    unlike = run_of((240, 6, 0), (240, 0, 6), blocks=12)
    assert design_effect(unlike) > 2 * design_effect(alike)
    assert p_values(alike)[0] < p_values(unlike)[0] < 0.5


def test_few_discordant_blocks_are_taken_to_be_correlated_as_much_as_one_says() -> None:
    few = run_of((240, 1, 1), blocks=12)
    assert slo_gate(few, alpha=0.05).shown is Shown.UNDECIDED
    assert slo_gate(few, alpha=0.05, terms=Terms(block_correlation=0.0)).shown is Shown.PASSED


@pytest.mark.parametrize(
    ("tally", "shown", "reason"),
    [
        (
            run_of((240, 2, 2), blocks=24),
            Shown.PASSED,
            "miss share +0.0000 over 5,760 requests: below 0.01 at p",
        ),
        (run_of((240, 12, 0), blocks=24), Shown.FAILED, "above 0.01 at p"),
        (run_of((240, 5, 3), (240, 6, 3), blocks=12), Shown.UNDECIDED, "not shown below 0.01: p"),
        (run_of((40, 1, 1), blocks=24), Shown.UNDECIDED, "slo_power: requests (960) < "),
        (run_of((240, 2, 2), blocks=7), Shown.UNDECIDED, "blocks of the load run (7) < 8"),
        (
            run_of((240, 2, 2), blocks=24, both_failed=200),
            Shown.UNDECIDED,
            "rate too high: baseline miss share 0.0431 > 0.03",
        ),
        (Tally(), Shown.UNDECIDED, "blocks of the load run (0) < 8"),
    ],
)
def test_a_load_run_passes_fails_or_shows_nothing(tally: Tally, shown: Shown, reason: str) -> None:
    measured = slo_gate(tally, alpha=0.05)
    assert measured.shown is shown
    assert reason in measured.reason


def test_a_later_run_is_held_to_less() -> None:
    tally = run_of((100, 1, 1), (100, 2, 1), blocks=12)
    within, _ = p_values(tally)
    assert slo_gate(tally, alpha=1.01 * within).shown is Shown.PASSED
    assert slo_gate(tally, alpha=0.99 * within).shown is Shown.UNDECIDED


@pytest.mark.parametrize(
    ("misses", "margin", "wanted"),
    [(0.01, 0.01, 1900), (0.01, 0.005, 7000), (0.03, 0.01, 5100), (0.03, 0.005, 20_000)],
)
def test_a_run_needs_the_requests_of_the_contract(misses: float, margin: float, wanted: int) -> None:
    plan = plan_run(miss_share=misses, affordable=10**6, alpha=0.05, terms=Terms(slo_margin=margin))
    assert plan.wanted == pytest.approx(wanted, rel=0.02)
    assert plan.requests == plan.wanted
    assert plan.without_power is None


def test_a_run_extends_its_window_within_the_budget() -> None:
    plan = plan_run(miss_share=0.01, affordable=1600, alpha=0.05)
    assert plan.least < plan.requests == 1600 < plan.wanted


def test_a_budget_without_power_is_said_and_not_spent() -> None:
    plan = plan_run(miss_share=0.01, affordable=1000, alpha=0.05)
    assert plan.requests == 0
    assert plan.without_power is not None
    assert plan.without_power.shown is Shown.UNDECIDED
    assert plan.without_power.reason.startswith("slo_power: affordable requests (1,000) < 1,386,")
    assert plan_run(miss_share=0.01, affordable=2500, alpha=0.05, design_effect=2.0).requests == 0


def test_where_no_error_rate_is_left_nothing_is_shown() -> None:
    measured = slo_gate(run_of((240, 12, 0), blocks=24), alpha=0.0)
    assert measured.shown is Shown.UNDECIDED
    assert measured.reason.startswith("no error rate is left")


def test_a_run_says_what_it_rests_on_and_what_it_was_held_to() -> None:
    numbers = slo_gate(run_of((240, 2, 2), blocks=24), alpha=0.03, terms=Terms(slo_margin=0.02)).numbers
    assert numbers["margin"] == 0.02
    assert numbers["alpha"] == 0.03
    assert (numbers["blocks"], numbers["requests"]) == (24, 5760)
    assert numbers["p within the margin"] == pytest.approx(
        p_values(run_of((240, 2, 2), blocks=24), margin=0.02)[0]
    )


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        (Terms(slo_margin=0.002), "not shown below 0.002"),
        (Terms(least_blocks=25), "blocks of the load run (24) < 25"),
        (Terms(most_baseline_misses=0.008), "rate too high: baseline miss share 0.00833 > 0.008"),
    ],
)
def test_a_run_is_held_to_the_terms_of_the_policy(terms: Terms, reason: str) -> None:
    tally = run_of((240, 2, 2), blocks=24)
    assert slo_gate(tally, alpha=0.05).shown is Shown.PASSED
    measured = slo_gate(tally, alpha=0.05, terms=terms)
    assert measured.shown is Shown.UNDECIDED
    assert reason in measured.reason or measured.reason.startswith("slo_power")


@pytest.mark.parametrize(
    ("misses", "shown"),
    [((2,) * 12, Shown.PASSED), ((12,) * 12, Shown.FAILED), ((0, 14) * 6, Shown.UNDECIDED)],
)
def test_the_baseline_keeps_its_slo_or_not(misses: tuple[int, ...], shown: Shown) -> None:
    assert baseline_slo([(240, missed) for missed in misses], alpha=0.05).shown is shown


def test_a_few_blocks_of_the_baseline_show_nothing() -> None:
    assert "blocks of the load run (7) < 8" in baseline_slo([(240, 0)] * 7, alpha=0.05).reason
    assert baseline_slo([], alpha=0.05).shown is Shown.UNDECIDED
    assert baseline_slo([(10, 0)] * 8, alpha=0.05).shown is Shown.UNDECIDED


@given(
    blocks=st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 1), st.floats(0, 1)), max_size=30),
    alpha=st.floats(1e-9, 1 - 1e-9),
)
def test_every_load_run_has_an_answer(blocks: list[tuple[int, float, float]], alpha: float) -> None:
    units: Counter[Triple] = Counter()
    for requests, differing, harmful in blocks:
        discordant = int(requests * differing)
        harm = int(discordant * harmful)
        units[Triple(requests, harm, discordant - harm)] += 1
    tally = Tally(units=units)
    assert all(math.isfinite(p_value) for p_value in p_values(tally))
    assert slo_gate(tally, alpha=alpha).reason


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: slo_gate(Tally(), alpha=1.0),
        lambda: baseline_slo([(10, 11)], alpha=0.05),
        lambda: plan_run(miss_share=-0.1, affordable=1, alpha=0.05),
        lambda: plan_run(miss_share=0.1, affordable=-1, alpha=0.05),
        lambda: plan_run(miss_share=0.1, affordable=1, alpha=1.0),
    ],
)
def test_impossible_runs_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"must be|no more requests than"):
        wrong()
