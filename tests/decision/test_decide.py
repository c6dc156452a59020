"""The verdict: three answers, the worst finding wins, nothing missing is ever a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.decision.decide import decide
from service.decision.evidence import Attribution, Coverage, Evidence, Measured, Shown
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
)
from service.decision.tally import Tally, Triple
from service.decision.verdict import Decision, GateState, Verdict

NAMES = ("structured_output", "long_context_recall", "refusal")
OFF = dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED}
PRODUCTION = Policy(criteria=tuple(Criterion(evaluator=name) for name in NAMES))
DEMO = Policy(
    criteria=(
        Criterion(evaluator="structured_output", margin=0.2, min_pairs=20),
        Criterion(evaluator="long_context_recall", margin=0.2, min_pairs=20),
        Criterion(evaluator="refusal", margin=0.2, min_pairs=20, hypothesis=Hypothesis.EQUIVALENT),
    ),
    gates=OFF | {Gate.CONTROL: Asked.REQUIRED},
    alpha_spending=AlphaSpending.FIRST_ATTEMPT,
)
PASSED = Measured(shown=Shown.PASSED, reason="shown")
ACCEPT_AFTER = 1000
CLEAN = Tally.of_pairs(n=ACCEPT_AFTER, harm=0, benefit=0)
HARM = Tally.of_pairs(n=ACCEPT_AFTER, harm=100, benefit=0)


def evidence_of(tallies: Mapping[str, Tally] | None = None, **changes: Any) -> Evidence:
    """Evidence that production accepts, with changes."""
    given = {
        "model": "qwen",
        "tier": "w8a8",
        "epoch": "e1",
        "tallies": dict.fromkeys(NAMES, CLEAN) | dict(tallies or {}),
        "control": dict.fromkeys(NAMES, CLEAN),
        "coverage": Coverage(traffic={"short": 10}, evidence={"short": 10}),
        "attribution": Attribution(),
        "slo": PASSED,
        "money": PASSED,
    }
    return Evidence(**(given | changes))


def verdict_of(evidence: Evidence, policy: Policy = PRODUCTION, below: Decision | None = None) -> Verdict:
    return decide(policy, evidence, rung_below=below)


def demo_evidence(**tallies: Tally) -> Evidence:
    """Two tiers under test, so that M = 6."""
    clean = dict.fromkeys(NAMES, Tally.of_pairs(n=22, harm=0, benefit=0))
    return Evidence(
        model="smollm2",
        tier="q8",
        epoch="e",
        tiers_under_test=2,
        tallies=clean | tallies,
        control=clean,
    )


def test_everything_shown_is_accepted_with_its_numbers() -> None:
    verdict = verdict_of(evidence_of())
    assert verdict.decision is Decision.ACCEPT
    assert set(verdict.gates.values()) == {GateState.PASSED}
    assert [reason.split(":")[0] for reason in verdict.reasons] == list(NAMES)
    assert "e-value" in verdict.reasons[0]
    assert ">= 32.9" in verdict.reasons[0]
    assert (verdict.model, verdict.tier, verdict.epoch, verdict.attempt) == ("qwen", "w8a8", "e1", 1)


@pytest.mark.parametrize("tally", [CLEAN, HARM])
@pytest.mark.parametrize(
    ("attribution", "reason"),
    [
        (
            Attribution(differences=("engine version: 0.11.0 and 0.11.1",)),
            "engine version: 0.11.0 and 0.11.1",
        ),
        (Attribution(unsettled="replicas of w8a8 disagree"), "replicas of w8a8 disagree"),
    ],
)
def test_a_stack_that_differs_in_more_than_the_precision_withholds_accept_and_reject(
    tally: Tally, attribution: Attribution, reason: str
) -> None:
    verdict = verdict_of(evidence_of({"refusal": tally}, attribution=attribution))
    assert verdict.decision is Decision.UNDECIDED
    assert verdict.gates[Gate.ATTRIBUTION] is GateState.UNDECIDED
    assert verdict.reasons[0] == f"attribution: {reason}"
    assert any("harm beyond" in reason for reason in verdict.reasons) == (tally is HARM)


def test_the_demo_accepts_22_clean_pairs() -> None:
    assert verdict_of(demo_evidence(), DEMO).decision is Decision.ACCEPT
    short = Tally.of_pairs(n=21, harm=0, benefit=0)
    verdict = verdict_of(demo_evidence(structured_output=short), DEMO)
    assert verdict.decision is Decision.UNDECIDED
    assert verdict.findings[0].more_pairs == 1


@pytest.mark.parametrize("criterion", NAMES)
def test_the_demo_rejects_15_harms(criterion: str) -> None:
    verdict = verdict_of(demo_evidence(**{criterion: Tally.of_pairs(n=15, harm=15, benefit=0)}), DEMO)
    assert verdict.decision is Decision.REJECT
    assert len(verdict.reasons) == 1
    assert verdict.reasons[0].startswith(f"{criterion}: harm beyond the margin of 0.2 shown")
    assert verdict.reasons[0].endswith(">= 120")
    fewer = verdict_of(demo_evidence(**{criterion: Tally.of_pairs(n=13, harm=13, benefit=0)}), DEMO)
    assert fewer.decision is Decision.UNDECIDED


def test_the_demo_would_need_three_more_pairs_if_alpha_were_spent_over_attempts() -> None:
    spending = Policy(criteria=DEMO.criteria, gates=DEMO.gates)
    assert verdict_of(demo_evidence(), spending).findings[0].more_pairs == 3


def test_no_evidence_at_all_is_undecided_with_everything_that_is_missing() -> None:
    verdict = verdict_of(Evidence(model="m", tier="t", epoch="e"))
    assert verdict.decision is Decision.UNDECIDED
    assert verdict.reasons == (
        "structured_output: counted pairs (0) < min_pairs (300)",
        "long_context_recall: counted pairs (0) < min_pairs (300)",
        "refusal: counted pairs (0) < min_pairs (300)",
        "no_control_capacity",
        "missing_coverage",
        "missing_attribution",
        "missing_slo",
        "missing_money",
    )
    assert verdict.gates == {
        Gate.QUALITY: GateState.UNDECIDED,
        Gate.CONTROL: GateState.MISSING,
        Gate.COVERAGE: GateState.MISSING,
        Gate.ATTRIBUTION: GateState.MISSING,
        Gate.SLO: GateState.MISSING,
        Gate.MONEY: GateState.MISSING,
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"control": None}, "no_control_capacity"),
        ({"control": {}}, "missing_control"),
        ({"coverage": None}, "missing_coverage"),
        ({"attribution": None}, "missing_attribution"),
        ({"slo": None}, "missing_slo"),
        ({"money": None}, "missing_money"),
        ({"money": Measured(shown=Shown.UNDECIDED, reason="wide")}, "money: wide"),
    ],
)
def test_one_gate_without_a_pass_withholds_acceptance(change: dict[str, Any], reason: str) -> None:
    verdict = verdict_of(evidence_of(**change))
    assert verdict.decision is Decision.UNDECIDED
    assert verdict.reasons == (reason,)


def test_gates_switched_off_are_not_asked() -> None:
    verdict = verdict_of(
        evidence_of(control=None, coverage=None, attribution=None, slo=None, money=None),
        Policy(criteria=PRODUCTION.criteria, gates=OFF),
    )
    assert verdict.decision is Decision.ACCEPT
    assert verdict.gates == dict.fromkeys(Gate, GateState.NOT_ASKED) | {Gate.QUALITY: GateState.PASSED}


def test_the_worst_finding_wins() -> None:
    verdict = verdict_of(evidence_of({"refusal": HARM, "long_context_recall": Tally()}))
    assert verdict.decision is Decision.REJECT
    assert verdict.gates[Gate.QUALITY] is GateState.FAILED
    assert [reason.split(":")[0] for reason in verdict.reasons] == ["refusal"]


def test_harm_rejects_whatever_gates_are_missing() -> None:
    verdict = verdict_of(evidence_of({"refusal": HARM}, control=None, coverage=None, slo=None, money=None))
    assert verdict.decision is Decision.REJECT


@pytest.mark.parametrize("gate", ["slo", "money"])
def test_a_gate_shown_to_fail_rejects(gate: str) -> None:
    verdict = verdict_of(evidence_of(**{gate: Measured(shown=Shown.FAILED, reason="upper limit < 0")}))
    assert verdict.decision is Decision.REJECT
    assert verdict.reasons == (f"{gate}: upper limit < 0",)
    assert verdict.gates[Gate(gate)] is GateState.FAILED


@pytest.mark.parametrize("tally", [CLEAN, HARM])
def test_a_control_alarm_withholds_accept_and_reject(tally: Tally) -> None:
    verdict = verdict_of(
        evidence_of({"refusal": tally}, control=dict.fromkeys(NAMES, CLEAN) | {"refusal": HARM}, slo=None)
    )
    assert verdict.decision is Decision.UNDECIDED
    assert verdict.reasons[0].startswith("control_alarm: refusal")
    assert verdict.reasons[-1] == "missing_slo"
    assert any("harm beyond" in reason for reason in verdict.reasons) == (tally is HARM)


@pytest.mark.parametrize(
    ("below", "decision"),
    [
        (None, Decision.ACCEPT),
        (Decision.ACCEPT, Decision.ACCEPT),
        (Decision.UNDECIDED, Decision.UNDECIDED),
        (Decision.REJECT, Decision.UNDECIDED),
    ],
)
def test_a_tier_waits_for_the_rung_below(below: Decision | None, decision: Decision) -> None:
    verdict = verdict_of(evidence_of(), below=below)
    assert verdict.decision is decision
    assert ("rung_below_not_accepted" in verdict.reasons) == (decision is Decision.UNDECIDED)


def test_a_tier_can_be_rejected_before_the_rung_below_is_accepted() -> None:
    verdict = verdict_of(evidence_of({"refusal": HARM}), below=Decision.UNDECIDED)
    assert verdict.decision is Decision.REJECT


def test_independent_tiers_do_not_wait_but_share_alpha() -> None:
    policy = Policy(
        criteria=PRODUCTION.criteria,
        ladder_rule=LadderRule.INDEPENDENT,
        alpha_spending=AlphaSpending.FIRST_ATTEMPT,
    )
    verdict = verdict_of(evidence_of(tiers_under_test=2), policy, Decision.REJECT)
    assert verdict.decision is Decision.ACCEPT
    assert verdict.alpha_accept == pytest.approx(0.025)


def test_a_later_attempt_is_held_to_a_smaller_error_rate() -> None:
    first, third = (verdict_of(evidence_of(attempt=attempt)) for attempt in (1, 3))
    assert first.alpha_accept == pytest.approx(9 * third.alpha_accept)
    tally = Tally.of_pairs(n=600, harm=0, benefit=0)
    evidence = dict.fromkeys(NAMES, tally)
    assert verdict_of(evidence_of(evidence)).decision is Decision.ACCEPT
    assert verdict_of(evidence_of(evidence, attempt=3)).decision is Decision.UNDECIDED


def test_evaluators_that_the_policy_does_not_name_are_not_decisive() -> None:
    assert verdict_of(evidence_of({"loops": HARM})).decision is Decision.ACCEPT


def test_past_its_last_pair_a_tier_is_not_shown() -> None:
    noisy = Tally.of_pairs(n=ACCEPT_AFTER, harm=12, benefit=10)
    verdict = verdict_of(evidence_of({"refusal": noisy}, max_pairs={"refusal": ACCEPT_AFTER}))
    assert (verdict.decision, verdict.not_shown) == (Decision.UNDECIDED, True)
    assert verdict.reasons[0].startswith("refusal: not_shown: counted pairs (1000) >= max_pairs (1000)")
    before = verdict_of(evidence_of({"refusal": noisy}, max_pairs={"refusal": ACCEPT_AFTER + 1}))
    assert not before.not_shown
    shown = verdict_of(evidence_of(max_pairs=dict.fromkeys(NAMES, ACCEPT_AFTER)))
    assert (shown.decision, shown.not_shown) == (Decision.ACCEPT, False)


def with_role(role: Role, evaluator: str = "refusal", **changes: Any) -> Policy:
    """Production's policy, with one criterion in another role."""
    criteria = (
        replace(criterion, role=role) if criterion.evaluator == evaluator else criterion
        for criterion in PRODUCTION.criteria
    )
    return replace(PRODUCTION, criteria=tuple(criteria), **changes)


def test_a_criterion_that_is_only_shown_is_found_and_weighs_nothing() -> None:
    policy = with_role(Role.SHOWN)
    for tally, found in ((HARM, Decision.REJECT), (Tally(), Decision.UNDECIDED), (CLEAN, Decision.ACCEPT)):
        verdict = verdict_of(evidence_of({"refusal": tally}), policy)
        assert verdict.decision is Decision.ACCEPT
        assert [reason.split(":")[0] for reason in verdict.reasons] == list(NAMES[:2])
        shown = verdict.findings[2]
        assert (shown.criterion, shown.role, shown.decision) == ("refusal", Role.SHOWN, found)
        assert verdict.decisive == verdict.findings[:2]
    rejected = verdict_of(evidence_of({"structured_output": HARM}), policy)
    assert rejected.reasons[0].endswith(">= 40"), "M counts the two criteria that decide"


def test_a_criterion_that_is_only_shown_does_not_raise_the_control_gate() -> None:
    policy = with_role(Role.SHOWN)
    for control in (HARM, Tally()):
        verdict = verdict_of(evidence_of(control=dict.fromkeys(NAMES, CLEAN) | {"refusal": control}), policy)
        assert verdict.decision is Decision.ACCEPT
        assert verdict.gates[Gate.CONTROL] is GateState.PASSED


def test_no_finding_is_made_of_a_muted_criterion() -> None:
    verdict = verdict_of(evidence_of({"refusal": HARM}), with_role(Role.MUTED))
    assert verdict.decision is Decision.ACCEPT
    assert [finding.criterion for finding in verdict.findings] == list(NAMES[:2])


def test_a_criterion_that_is_only_shown_never_runs_out_for_the_tier() -> None:
    noisy = Tally.of_pairs(n=ACCEPT_AFTER, harm=12, benefit=10)
    evidence = evidence_of({"refusal": noisy}, slo=None, max_pairs={"refusal": ACCEPT_AFTER})
    verdict = verdict_of(evidence, with_role(Role.SHOWN))
    assert verdict.findings[2].not_shown
    assert (verdict.decision, verdict.not_shown) == (Decision.UNDECIDED, False)


def test_a_criterion_of_which_there_is_no_request_says_so_and_what_to_do() -> None:
    verdict = verdict_of(evidence_of({"long_context_recall": Tally()}))
    assert verdict.reasons == (
        "long_context_recall: counted pairs (0) < min_pairs (300): no request so far is of this kind; "
        "if none will be, name the criteria that apply in policy.criteria",
    )
    lost = verdict_of(evidence_of({"long_context_recall": Tally(unscored={"timeout": 3})}))
    assert lost.reasons == ("long_context_recall: counted pairs (0) < min_pairs (300)",)


WEEK = 604_800.0


@pytest.mark.parametrize(
    ("change", "not_shown", "first"),
    [
        ({}, False, "structured_output: shown"),
        (
            {"tallies": {"refusal": Tally()}},
            True,
            "refusal: not_shown: age of the epoch (604800 s) >= longest (604800 s): counted pairs (0) <",
        ),
        ({"slo": None}, True, "not_shown: age of the epoch (604800 s) >= longest (604800 s)"),
        ({"attribution": Attribution(unsettled="replicas disagree")}, False, "attribution: replicas"),
        ({"control": dict.fromkeys(NAMES, HARM)}, False, "control_alarm"),
        ({"tallies": {"refusal": HARM}}, False, "refusal: harm beyond"),
    ],
)
def test_after_its_longest_time_a_tier_without_a_decision_is_not_shown(
    change: dict[str, Any], not_shown: bool, first: str
) -> None:
    policy = replace(PRODUCTION, longest_seconds=WEEK)
    verdict = verdict_of(evidence_of(age_seconds=WEEK, **change), policy)
    assert verdict.not_shown is not_shown
    assert verdict.reasons[0].startswith(first)
    assert not verdict_of(evidence_of(age_seconds=WEEK - 1, **change), policy).not_shown


def test_time_that_a_tier_waited_for_the_rung_below_is_not_held_against_it() -> None:
    policy = replace(PRODUCTION, longest_seconds=WEEK)
    verdict = verdict_of(evidence_of(age_seconds=2 * WEEK), policy, Decision.UNDECIDED)
    assert (verdict.reasons, verdict.not_shown) == (("rung_below_not_accepted",), False)


def test_what_withholds_both_ways_withholds_the_end_of_the_pairs_too() -> None:
    noisy = Tally.of_pairs(n=ACCEPT_AFTER, harm=12, benefit=10)
    evidence = evidence_of(
        {"refusal": noisy},
        max_pairs={"refusal": ACCEPT_AFTER},
        attribution=Attribution(differences=("engine: a and b",)),
    )
    assert not verdict_of(evidence).not_shown


def test_a_person_may_say_where_the_pairs_end() -> None:
    noisy = Tally.of_pairs(n=ACCEPT_AFTER, harm=12, benefit=10)
    criteria = (*PRODUCTION.criteria[:2], Criterion(evaluator="refusal", max_pairs=400))
    verdict = verdict_of(
        evidence_of({"refusal": noisy}, max_pairs={"refusal": 10**6}), replace(PRODUCTION, criteria=criteria)
    )
    assert verdict.not_shown
    assert verdict.reasons[0].startswith("refusal: not_shown: counted pairs (1000) >= max_pairs (400)")


def test_switching_the_baseline_off_asks_for_twice_the_evidence() -> None:
    policy = replace(PRODUCTION, baseline_after_approval=BaselineAfterApproval.SWITCHED_OFF)
    kept, off = verdict_of(evidence_of()), verdict_of(evidence_of(), policy)
    assert off.alpha_accept == pytest.approx(kept.alpha_accept / 2)
    assert off.baseline_after_approval is BaselineAfterApproval.SWITCHED_OFF
    tally = Tally.of_pairs(n=580, harm=0, benefit=0)
    evidence = evidence_of(dict.fromkeys(NAMES, tally))
    assert verdict_of(evidence).decision is Decision.ACCEPT
    assert verdict_of(evidence, policy).decision is Decision.UNDECIDED


@st.composite
def tables(draw: st.DrawFn, most: int = 400) -> Tally:
    """Conversations of up to three pairs, with some missing scores."""
    units = {}
    for pairs in (1, 2, 3):
        for harm in range(pairs + 1):
            for benefit in range(pairs + 1 - harm):
                scale = most if harm == benefit == 0 else 30
                if count := draw(st.integers(0, scale)):
                    units[Triple(pairs, harm, benefit)] = count
    concordant = sum((t.pairs - t.harm - t.benefit) * count for t, count in units.items())
    return Tally(
        units=units,
        both_failed=draw(st.integers(0, concordant)),
        unscored={"shadow": draw(st.integers(0, 4))},
    )


measurements = st.one_of(st.none(), st.builds(Measured, shown=st.sampled_from(Shown), reason=st.just("x")))
ORDER = {Decision.REJECT: 0, Decision.UNDECIDED: 1, Decision.ACCEPT: 2}


def regress(tally: Tally, triple: Triple) -> Tally:
    """The same pairs, one of which the candidate now fails where it passed."""
    units = dict(tally.units)
    units[triple] -= 1
    if triple.benefit:
        worse, both_failed = Triple(triple.pairs, triple.harm, triple.benefit - 1), tally.both_failed + 1
    else:
        worse, both_failed = Triple(triple.pairs, triple.harm + 1, triple.benefit), tally.both_failed
    units[worse] = units.get(worse, 0) + 1
    return Tally(units=units, both_failed=both_failed, unscored=tally.unscored, not_counted=tally.not_counted)


@settings(max_examples=200)
@given(st.data(), st.floats(0.02, 0.5), measurements)
def test_a_regression_never_turns_a_verdict_toward_accept(
    data: st.DataObject, margin: float, slo: Measured | None
) -> None:
    before = data.draw(tables())
    passed = before.n - before.candidate_failures
    room = [
        triple
        for triple, count in before.units.items()
        if count and (triple.benefit or triple.harm < triple.pairs)
    ]
    if not room or not passed:
        return
    after = regress(before, data.draw(st.sampled_from(room))) if before.both_failed == 0 else None
    if after is None:
        # A concordant pair may have failed already: only a benefit surely passed.
        benefits = [triple for triple in room if triple.benefit]
        if not benefits:
            return
        after = regress(before, data.draw(st.sampled_from(benefits)))
    policy = Policy(
        criteria=(Criterion(evaluator="x", margin=margin, min_pairs=20),),
        gates=OFF | {Gate.SLO: data.draw(st.sampled_from(Asked))},
    )
    decisions = [
        decide(
            policy, Evidence(model="m", tier="t", epoch="e", tallies={"x": tally}, slo=slo), rung_below=None
        )
        for tally in (before, after)
    ]
    assert ORDER[decisions[1].decision] <= ORDER[decisions[0].decision]


@given(st.integers(20, 2000), st.integers(0, 40), st.integers(0, 40), st.floats(0.01, 0.5))
def test_one_more_harmful_pair_is_never_evidence_for_the_candidate(
    concordant: int, harm: int, benefit: int, margin: float
) -> None:
    # Any further pair dilutes the baseline's failures, so the cap on them is no part of this.
    policy = Policy(
        criteria=(Criterion(evaluator="x", margin=margin, min_pairs=20, baseline_failure_cap=1.0),), gates=OFF
    )
    before = Tally.of_pairs(n=concordant + harm + benefit, harm=harm, benefit=benefit)
    first, second = (
        decide(policy, Evidence(model="m", tier="t", epoch="e", tallies={"x": tally}), rung_below=None)
        for tally in (before, before.add(harm=1))
    )
    assert ORDER[second.decision] <= ORDER[first.decision]
    assert second.findings[0].log_e.noninferiority < first.findings[0].log_e.noninferiority
    assert second.findings[0].log_e.harm > first.findings[0].log_e.harm


@given(
    st.dictionaries(st.sampled_from(NAMES), tables(), max_size=3),
    st.one_of(st.none(), st.dictionaries(st.sampled_from(NAMES), tables(), max_size=3)),
    measurements,
    measurements,
    st.one_of(
        st.none(),
        st.builds(
            Coverage,
            traffic=st.dictionaries(st.sampled_from("abc"), st.integers(0, 100)),
            evidence=st.dictionaries(st.sampled_from("abc"), st.integers(0, 100)),
        ),
    ),
    st.fixed_dictionaries({gate: st.sampled_from(Asked) for gate in Gate if gate is not Gate.QUALITY}),
    st.sampled_from([None, *Decision]),
    st.integers(1, 5),
)
def test_every_valid_evidence_has_a_verdict_that_says_why(
    tallies: dict[str, Tally],
    control: dict[str, Tally] | None,
    slo: Measured | None,
    money: Measured | None,
    coverage: Coverage | None,
    asked: dict[Gate, Asked],
    below: Decision | None,
    attempt: int,
) -> None:
    policy = Policy(criteria=DEMO.criteria, gates={Gate.QUALITY: Asked.REQUIRED, **asked})
    verdict = decide(
        policy,
        Evidence(
            model="m",
            tier="t",
            epoch="e",
            tallies=tallies,
            control=control,
            slo=slo,
            money=money,
            coverage=coverage,
            attempt=attempt,
        ),
        rung_below=below,
    )
    assert verdict.reasons
    assert set(verdict.gates) == set(Gate)
    assert all(
        (verdict.gates[gate] is GateState.NOT_ASKED) == (state is Asked.OFF) for gate, state in asked.items()
    )
    if verdict.decision is Decision.ACCEPT:
        assert set(verdict.gates.values()) <= {GateState.PASSED, GateState.NOT_ASKED}
        assert below in (None, Decision.ACCEPT)
        assert {finding.decision for finding in verdict.findings} == {Decision.ACCEPT}
    if verdict.decision is Decision.REJECT:
        assert GateState.FAILED in verdict.gates.values()
