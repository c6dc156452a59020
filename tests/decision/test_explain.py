"""The chain from counts to decision: complete, in order, and computable from its own numbers."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.energy import Repeats, energy_distance
from service.decision.eprocess import Differences, log_e_harm, log_e_noninferiority
from service.decision.evidence import Attribution, Coverage, Evidence, Measured, Shown
from service.decision.explain import Step, explain
from service.decision.ladder import decide_ladder
from service.decision.policy import (
    AlphaSpending,
    Asked,
    BaselineAfterApproval,
    Criterion,
    Gate,
    Hypothesis,
    LadderRule,
    Policy,
    Role,
    Units,
)
from service.decision.tally import Tally, Triple

POLICY = Policy(
    criteria=(
        Criterion(evaluator="structured_output"),
        Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT),
        Criterion(evaluator="loops", role=Role.SHOWN),
        Criterion(evaluator="length", role=Role.MUTED),
    ),
    gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED},
)
NOISY = Tally.of_pairs(n=2000, harm=12, benefit=10) + Tally(unscored={"timeout": 3})


def steps_of(policy: Policy = POLICY, **changes: Any) -> list[Step]:
    given_ = {
        "model": "qwen",
        "tier": "w8a8",
        "epoch": "e1",
        "tiers_under_test": 2,
        "tallies": {"structured_output": NOISY, "refusal": NOISY, "loops": NOISY},
        "strata": {"structured_output": {"32k+": Tally.of_pairs(n=100, harm=8, benefit=0)}},
        "strata_under_test": 32,
    }
    evidence = Evidence(**(given_ | changes))
    return list(explain(policy, evidence, decide_ladder(policy, [evidence])[0]))


def step(title: str, steps: list[Step]) -> Step:
    return next(each for each in steps if each.title == title)


def test_the_chain_runs_from_the_evidence_to_the_decision() -> None:
    of_criterion = ("counts", "missing scores", "estimate", "e-values", "finding")
    assert [each.title for each in steps_of()] == [
        "evidence",
        "thresholds",
        *(f"structured_output: {part}" for part in (*of_criterion[:4], "worst stratum", "finding")),
        *(f"refusal: {part}" for part in of_criterion),
        *(f"loops: {part}" for part in of_criterion),
        "gates",
        "ladder",
        "decision",
    ]


def test_load_runs_have_a_step_where_the_policy_asks_for_them() -> None:
    asked = replace(POLICY, gates={**POLICY.gates, Gate.SLO: Asked.REQUIRED})
    found = Measured(
        shown=Shown.UNDECIDED,
        reason="p .03 > .0076",
        numbers={"alpha": 0.0076, "requests": 100},
        run=2,
        age_seconds=5 * 3600.0,
    )
    steps = steps_of(asked, slo=found, money=found, measured_within=14 * 86_400.0)
    told = step("slo: load run", steps)
    assert told.sentence == (
        "The latest load run, which ended 5 h ago and counts for 14 d, says undecided: p .03 > .0076. "
        "It is run 2 of this epoch, and so had to show it at alpha_2 = 0.0076."
    )
    assert (told.numbers["requests"], told.numbers["age, seconds"]) == (100, 18_000)
    assert str(told.numbers["formula"]).startswith("t = Tango's z(margin)")
    bare = step("slo: load run", steps_of(asked, slo=replace(found, run=None, age_seconds=None)))
    assert bare.sentence == "The latest load run says undecided: p .03 > .0076."
    assert not any(each.title == "money: load run" for each in steps)


def test_the_noise_of_the_control_has_a_step() -> None:
    quiet = Tally.of_pairs(n=1000, harm=1, benefit=2)
    told = step("structured_output: noise", steps_of(control={"structured_output": quiet}))
    assert told.numbers["psi_AA: baseline against itself"] == 0.003
    assert told.numbers["psi_AQ: candidate against baseline"] == 0.011
    assert told.numbers["noise share psi_AA/psi_AQ"] == pytest.approx(3 / 11)
    assert "27% is as much as chance" in told.sentence


def test_repeats_of_the_candidate_tell_the_energy_distance() -> None:
    quiet = Tally.of_pairs(n=1000, harm=1, benefit=2)
    moved = energy_distance(
        Repeats(conversation=str(number), baseline=(0, 0), candidate=(number % 2, number % 2))
        for number in range(100)
    )
    found = steps_of(control={"structured_output": quiet}, energy={"structured_output": moved})
    told = step("structured_output: noise", found)
    assert told.numbers["energy distance"] == 0.5
    assert told.numbers["requests with two answers of each arm"] == 100
    assert told.numbers["psi_QQ: candidate against itself"] == 0
    assert "Of 100 requests that the candidate answered twice as well" in told.sentence
    assert "is 0.5000 with a standard error of 0.0503" in told.sentence
    assert steps_of(control={"structured_output": quiet})[-1] == found[-1], "the decision is the same"


@pytest.mark.parametrize(
    ("units", "told"),
    [
        (Units.FIRST_SAMPLED, "of each conversation the first request that was sampled counts."),
        (Units.CLOSED_CONVERSATIONS, "once they are over, each by the mean of its pairs."),
    ],
)
def test_what_counts_is_said_in_words(units: Units, told: str) -> None:
    assert step("evidence", steps_of(replace(POLICY, units=units))).sentence.endswith(told)


def test_the_counts_are_enough_to_compute_the_e_values_that_follow() -> None:
    steps = steps_of()
    numbers = step("structured_output: counts", steps).numbers
    n, harm, benefit = (int(numbers[name]) for name in ("pairs n", "harm b", "benefit c"))
    assert (n, harm, benefit) == (2000, 12, 10)
    assert numbers["unscored: timeout"] == 3
    computed = Differences.of({1.0: harm, -1.0: benefit, 0.0: n - harm - benefit})
    found = step("structured_output: e-values", steps).numbers
    assert found["log E_NI(margin)"] == pytest.approx(log_e_noninferiority(computed, 0.01))
    assert found["log E_HARM(margin)"] == pytest.approx(log_e_harm(computed, 0.01))
    assert found["units (n, b, c)"] == "(1, 0, 0) x 1978, (1, 0, 1) x 10, (1, 1, 0) x 12"
    assert "sum_g w_g" in str(found["formula of E_NI(m)"])


def test_the_thresholds_say_what_they_are_made_of() -> None:
    found = step("thresholds", steps_of())
    assert found.numbers["M: decisive criteria x tiers under test"] == 4
    assert found.numbers["harm: M/alpha_harm"] == "80"
    assert found.numbers["S: strata there can be"] == 32
    assert found.numbers["strata: M S/alpha_strata"] == "12800"
    assert found.numbers["alpha_accept"] == pytest.approx(0.05 * 6 / math.pi**2)
    assert "of which attempt 1 gets 6/(pi^2 1^2)" in found.sentence


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"baseline_after_approval": BaselineAfterApproval.SWITCHED_OFF},
            "halved because the baseline is switched off on approval",
        ),
        ({"ladder_rule": LadderRule.INDEPENDENT}, "shared by 2 tiers"),
        (
            {"alpha_spending": AlphaSpending.FIRST_ATTEMPT},
            "spent on the first attempt",
        ),
    ],
)
def test_what_made_the_error_rate_smaller_is_said(change: dict[str, Any], told: str) -> None:
    assert told in step("thresholds", steps_of(replace(POLICY, **change), attempt=2)).sentence


def test_a_reviewer_reads_numbers_in_words() -> None:
    steps = steps_of()
    assert step("structured_output: counts", steps).sentence == (
        "Of 2,000 counted pairs in 2,000 conversations the candidate alone failed in 12, the baseline alone "
        "in 10, both in 0; 3 more were due and have no score."
    )
    assert step("structured_output: estimate", steps).sentence.startswith(
        "So far the candidate fails in 0.1 pp more of the requests than the baseline; "
    )
    assert "in stratum 32k+: 8 harms and 0 benefits in 100 pairs" in (
        step("structured_output: worst stratum", steps).sentence
    )
    assert step("loops: finding", steps).sentence.endswith(" It is only shown, and weighs nothing.")


def test_conversations_are_counted_once_in_the_estimate_as_in_its_limits() -> None:
    """One conversation of a thousand failures is one conversation, in the middle of the interval."""
    several = Tally(units={Triple(1000, 1000, 0): 1, Triple(1, 0, 0): 999})
    told = step("structured_output: estimate", steps_of(tallies={"structured_output": several}))
    assert told.numbers["estimate: mean of (b - c)/n over conversations"] == 0.001
    assert told.sentence.startswith(
        "So far the candidate fails in 0.1 pp more of the requests than the baseline, each conversation "
        "counted once; in truth the rise lies between "
    )


def test_the_end_of_a_criterion_is_told_with_whose_it_is() -> None:
    planned = step("structured_output: finding", steps_of(max_pairs={"structured_output": 20_724})).numbers
    assert planned["N_max: 6 n90(psi_plan), fixed when min_pairs were counted"] == 20_724
    by_policy = replace(POLICY, criteria=(replace(POLICY.criteria[0], max_pairs=5000), *POLICY.criteria[1:]))
    told = step("structured_output: finding", steps_of(by_policy, max_pairs={"structured_output": 20_724}))
    assert told.numbers["max_pairs, by the policy"] == 5000
    assert not any(name.startswith("N_max") for name in told.numbers)


@pytest.mark.parametrize(
    ("attribution", "told"),
    [
        (
            Attribution(differences=("vLLM 0.9 and 0.10", "a template")),
            "Baseline and candidate differ in more than their precision: vLLM 0.9 and 0.10; a template.",
        ),
        (
            Attribution(unsettled="replicas disagree"),
            "It cannot be told yet in what they differ: replicas disagree.",
        ),
    ],
)
def test_what_the_engines_tell_is_told(attribution: Attribution, told: str) -> None:
    asked = replace(POLICY, gates={**POLICY.gates, Gate.ATTRIBUTION: Asked.REQUIRED})
    assert step("attribution", steps_of(asked, attribution=attribution)).sentence == told


def test_strata_that_are_all_covered_are_told_too() -> None:
    asked = replace(POLICY, gates={**POLICY.gates, Gate.COVERAGE: Asked.REQUIRED})
    covered = Coverage(traffic={"short": 100, "long": 100}, evidence={"short": 20, "long": 30})
    unlike = Coverage(traffic={"rare": 10, "usual": 90}, evidence={"rare": 8, "usual": 42})
    barest = next(iter(step("coverage", steps_of(asked, coverage=unlike)).numbers))
    assert barest.startswith("usual: "), "by its own share of the traffic"
    assert step("coverage", steps_of(asked, coverage=covered)).sentence == (
        "Kinds of requests (strata) with 2% of the traffic or more: 2; of these, with less than half that "
        "share of what counts: 0. Barest is short: 50.00% of the traffic, 40.00% of the evidence, and "
        "25.00% is the least."
    )


def test_without_pairs_nothing_is_estimated() -> None:
    titles = [each.title for each in steps_of(tallies={}, strata={})]
    assert "structured_output: counts" in titles
    assert not any("estimate" in title or "e-values" in title for title in titles)


def test_gates_the_ladder_and_the_end_are_explained() -> None:
    asked = replace(POLICY, gates=dict.fromkeys(Gate, Asked.REQUIRED), longest_seconds=60.0)
    steps = steps_of(
        asked,
        age_seconds=60.0,
        control={},
        coverage=Coverage(),
        attribution=Attribution(),
        slo=Measured(shown=Shown.PASSED, reason="well"),
    )
    assert step("gates", steps).sentence == (
        "The policy asks for quality, control, coverage, attribution, slo, money: "
        "not passed: control, coverage, money."
    )
    assert step("gates", steps).numbers["slo"] == "passed"
    assert step("decision", steps).sentence.endswith("No more evidence is asked for: it counts as a reject.")
    evidence = Evidence(model="m", tier="t", epoch="e")
    waiting = decide_ladder(POLICY, [evidence, evidence])[1]
    assert "tier below is not accepted" in step("ladder", list(explain(POLICY, evidence, waiting))).sentence
    alone = replace(POLICY, ladder_rule=LadderRule.INDEPENDENT)
    assert "judged for itself" in step("ladder", steps_of(alone)).sentence


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    units = {}
    for _ in range(draw(st.integers(0, 3))):
        pairs = draw(st.integers(1, 4))
        harm = draw(st.integers(0, pairs))
        units[Triple(pairs, harm, draw(st.integers(0, pairs - harm)))] = draw(st.integers(1, 10**7))
    return Tally(units=units, unscored={"timeout": draw(st.integers(0, 100))})


@given(
    st.dictionaries(st.sampled_from(["structured_output", "refusal", "loops"]), tallies()),
    st.dictionaries(st.sampled_from(["short", "32k+"]), tallies()),
    st.integers(1, 4),
    st.sampled_from(AlphaSpending),
)
def test_every_verdict_is_explained_in_whole_sentences(
    of: dict[str, Tally], strata: dict[str, Tally], attempt: int, spending: AlphaSpending
) -> None:
    policy = replace(POLICY, alpha_spending=spending)
    steps = steps_of(policy, tallies=of, strata={"refusal": strata}, attempt=attempt)
    for each in steps:
        assert re.match(r"[A-Za-z]", each.sentence)
        assert each.sentence.endswith(".")
        assert "nan" not in each.sentence.split()
        for number in each.numbers.values():
            assert isinstance(number, str) or math.isfinite(number)
    assert len({each.title for each in steps}) == len(steps)
