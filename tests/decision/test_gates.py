"""Gates: absence is missing, alarms withhold, strata are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.decision.evidence import Attribution, Coverage, Evidence, Measured, Shown
from service.decision.failure_chain import FailureChain
from service.decision.gates import (
    Gated,
    attribution_gate,
    control_gate,
    coverage_gate,
    measured_gate,
)
from service.decision.money import Arm, money_gate
from service.decision.policy import Asked, Criterion, Gate, Policy, Role, Units
from service.decision.tally import Tally
from service.decision.terms import Terms
from service.decision.thresholds import thresholds
from service.decision.verdict import GateState

CRITERIA = (Criterion(evaluator="refusal", min_pairs=20), Criterion(evaluator="recall", min_pairs=20))
POLICY = Policy(criteria=CRITERIA)
SILENT = Policy(criteria=CRITERIA, gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED})
QUIET = Tally.of_pairs(n=100, harm=1, benefit=1)


def control(policy: Policy = POLICY, **tallies: Tally) -> Gated:
    evidence = Evidence(model="m", tier="t", epoch="e", control=tallies)
    return control_gate(policy, evidence, thresholds(policy, tiers=1, attempt=1))


def test_a_quiet_control_passes() -> None:
    assert control(refusal=QUIET, recall=QUIET) == Gated(state=GateState.PASSED)


@pytest.mark.parametrize(("harm", "benefit"), [(9, 0), (0, 9)])
def test_a_control_that_differs_from_itself_in_either_direction_alarms(harm: int, benefit: int) -> None:
    gated = control(refusal=Tally.of_pairs(n=100, harm=harm, benefit=benefit), recall=QUIET)
    assert gated.state is GateState.UNDECIDED
    assert len(gated.reasons) == 1
    assert gated.reasons[0].startswith("control_alarm: refusal: the baseline differs from itself: e-value ")
    assert gated.reasons[0].endswith(" >= 20")


def test_a_control_alarms_before_it_has_enough_pairs() -> None:
    assert control(refusal=Tally.of_pairs(n=9, harm=9, benefit=0)).state is GateState.UNDECIDED


@pytest.mark.parametrize("role", [Role.SHOWN, Role.MUTED])
def test_a_criterion_that_does_not_decide_neither_alarms_nor_asks_for_a_control(role: Role) -> None:
    policy = Policy(criteria=(*CRITERIA, Criterion(evaluator="loops", role=role)))
    quiet = {"refusal": QUIET, "recall": QUIET}
    assert control(policy, **quiet).state is GateState.PASSED
    assert control(policy, **quiet, loops=Tally.of_pairs(n=100, harm=90, benefit=0)).state is GateState.PASSED


def test_a_control_of_another_evaluator_is_nobodys() -> None:
    assert control(loops=Tally.of_pairs(n=100, harm=50, benefit=0)) == Gated(
        state=GateState.MISSING, reasons=("missing_control",)
    )


def test_a_control_without_pairs_is_missing() -> None:
    assert control(refusal=Tally(unscored={"shadow": 5})) == Gated(
        state=GateState.MISSING, reasons=("missing_control",)
    )


def test_a_control_needs_as_many_pairs_as_the_criterion() -> None:
    gated = control(refusal=QUIET, recall=Tally.of_pairs(n=19, harm=0, benefit=0))
    assert gated == Gated(
        state=GateState.MISSING,
        reasons=("missing_control: recall: control pairs (19) < min_pairs (20)",),
    )


def test_without_capacity_for_a_control_the_gate_says_so() -> None:
    evidence = Evidence(model="m", tier="t", epoch="e", control=None)
    gated = control_gate(POLICY, evidence, thresholds(POLICY, tiers=1, attempt=1))
    assert gated == Gated(state=GateState.MISSING, reasons=("no_control_capacity",))


def measured(
    gate: Gate, found: Measured | None, policy: Policy = POLICY, within: float | None = None
) -> Gated:
    """What one of the two gates of a load run says."""
    evidence = Evidence(model="m", tier="t", epoch="e", measured_within=within)
    told = replace(evidence, slo=found) if gate is Gate.SLO else replace(evidence, money=found)
    return measured_gate(policy, told, gate)


def test_gates_that_nobody_asks_for_say_nothing() -> None:
    not_asked = Gated(state=GateState.NOT_ASKED)
    assert control(SILENT, refusal=Tally.of_pairs(n=100, harm=90, benefit=0)) == not_asked
    assert coverage_gate(SILENT, None) == not_asked
    for gate in (Gate.SLO, Gate.MONEY):
        assert measured(gate, Measured(shown=Shown.FAILED, reason="worse"), SILENT) == not_asked


def test_evidence_in_the_proportions_of_traffic_covers_it() -> None:
    coverage = Coverage(traffic={"short": 900, "32k": 100}, evidence={"short": 450, "32k": 50})
    assert coverage_gate(POLICY, coverage) == Gated(state=GateState.PASSED)


def test_a_stratum_with_less_than_half_its_share_is_named() -> None:
    coverage = Coverage(traffic={"short": 900, "32k": 100}, evidence={"short": 970, "32k": 30})
    assert coverage_gate(POLICY, coverage) == Gated(
        state=GateState.UNDECIDED,
        reasons=("coverage: stratum 32k: evidence share 0.03 < 0.05, half its traffic share",),
    )


def test_every_dimension_is_covered_by_itself() -> None:
    # Each request has one stratum in each dimension: its share is of that dimension, and names its bucket.
    traffic = {
        "short": 900,
        "32k": 100,
        "language=en": 450,
        "language=zh": 50,
        "tenant=a": 480,
        "tenant=b": 20,
    }
    evidence = {"short": 90, "32k": 10, "language=en": 99, "language=zh": 1, "tenant=a": 100}
    gated = coverage_gate(POLICY, Coverage(traffic=traffic, evidence=evidence))
    assert gated.state is GateState.UNDECIDED
    assert gated.reasons == (
        "coverage: stratum language=zh: evidence share 0.01 < 0.05, half its traffic share",
        "coverage: stratum tenant=b: evidence share 0 < 0.02, half its traffic share",
    )


def test_conversations_of_which_only_the_beginning_counts_are_told_how_all_of_them_would() -> None:
    coverage = Coverage(traffic={"turns=1": 50, "turns=2-5": 50}, evidence={"turns=1": 100})
    (first,) = coverage_gate(POLICY, coverage).reasons
    assert first.endswith("; later turns of a conversation count with units: closed_conversations")
    closed = replace(POLICY, units=Units.CLOSED_CONVERSATIONS)
    assert coverage_gate(closed, coverage).reasons == (
        "coverage: stratum turns=2-5: evidence share 0 < 0.25, half its traffic share",
    )


def test_every_stratum_without_evidence_is_named() -> None:
    gated = coverage_gate(POLICY, Coverage(traffic={"a": 50, "b": 50}))
    assert gated.state is GateState.UNDECIDED
    assert [reason.split(":")[1] for reason in gated.reasons] == [" stratum a", " stratum b"]


def test_a_stratum_below_two_per_cent_of_traffic_may_be_absent() -> None:
    traffic = {"common": 981, "rare": 19}
    assert coverage_gate(POLICY, Coverage(traffic=traffic, evidence={"common": 10})).state is GateState.PASSED
    traffic = {"common": 980, "rare": 20}
    assert (
        coverage_gate(POLICY, Coverage(traffic=traffic, evidence={"common": 10})).state is GateState.UNDECIDED
    )


@pytest.mark.parametrize(
    "coverage", [None, Coverage(), Coverage(evidence={"short": 10}), Coverage(traffic={"a": 0})]
)
def test_coverage_of_unknown_traffic_is_missing(coverage: Coverage | None) -> None:
    assert coverage_gate(POLICY, coverage) == Gated(state=GateState.MISSING, reasons=("missing_coverage",))


@pytest.mark.parametrize(
    ("attribution", "state", "reasons"),
    [
        (None, GateState.MISSING, ("missing_attribution",)),
        (Attribution(), GateState.PASSED, ()),
        (
            Attribution(differences=("seed: 1 and 2", "template: a and b"), unsettled="replicas disagree"),
            GateState.UNDECIDED,
            (
                "attribution: seed: 1 and 2",
                "attribution: template: a and b",
                "attribution: replicas disagree",
            ),
        ),
    ],
)
def test_every_difference_besides_the_precision_is_named(
    attribution: Attribution | None, state: GateState, reasons: tuple[str, ...]
) -> None:
    assert attribution_gate(POLICY, attribution) == Gated(state=state, reasons=reasons)
    assert attribution_gate(SILENT, attribution) == Gated(state=GateState.NOT_ASKED)


@pytest.mark.parametrize("gate", [Gate.SLO, Gate.MONEY])
@pytest.mark.parametrize(
    ("found", "state", "reasons"),
    [
        (None, GateState.MISSING, ("missing_{}",)),
        (Measured(shown=Shown.PASSED, reason="well"), GateState.PASSED, ()),
        (Measured(shown=Shown.FAILED, reason="U < 0"), GateState.FAILED, ("{}: U < 0",)),
        (Measured(shown=Shown.UNDECIDED, reason="wide"), GateState.UNDECIDED, ("{}: wide",)),
    ],
)
def test_a_load_run_passes_fails_or_leaves_open(
    gate: Gate, found: Measured | None, state: GateState, reasons: tuple[str, ...]
) -> None:
    expected: Any = tuple(reason.format(gate) for reason in reasons)
    assert measured(gate, found) == Gated(state=state, reasons=expected)


@pytest.mark.parametrize("gate", [Gate.SLO, Gate.MONEY])
def test_a_reason_says_how_old_its_load_run_is(gate: Gate) -> None:
    found = Measured(shown=Shown.FAILED, reason="lost", age_seconds=3 * 86_400.0)
    assert measured(gate, found, within=14 * 86_400.0).reasons == (f"{gate}: lost (load run 3 d ago)",)


@pytest.mark.parametrize("gate", [Gate.SLO, Gate.MONEY])
@pytest.mark.parametrize("shown", [Shown.PASSED, Shown.FAILED])
def test_a_load_run_that_is_too_old_counts_as_none(gate: Gate, shown: Shown) -> None:
    found = Measured(shown=shown, reason="then", age_seconds=15 * 86_400.0)
    gated = measured(gate, found, within=14 * 86_400.0)
    assert gated == Gated(
        state=GateState.MISSING,
        reasons=(f"missing_{gate}: the last load run ended 15 d ago, and after 14 d it counts as none",),
    )
    assert measured(gate, found, within=None).state is not GateState.MISSING


@pytest.mark.parametrize(
    ("shown", "held_to", "state"),
    [
        (Shown.PASSED, 0.01, GateState.PASSED),
        (Shown.PASSED, 0.005, GateState.PASSED),
        (Shown.PASSED, 0.02, GateState.UNDECIDED),
        (Shown.FAILED, 0.01, GateState.FAILED),
        (Shown.FAILED, 0.02, GateState.FAILED),
        (Shown.FAILED, 0.005, GateState.UNDECIDED),
    ],
)
def test_a_run_says_nothing_of_a_margin_that_it_was_not_held_to(
    shown: Shown, held_to: float, state: GateState
) -> None:
    found = Measured(shown=shown, reason="then", numbers={"margin": held_to})
    assert measured(Gate.SLO, found).state is state


def test_money_is_weighed_at_what_the_policy_says_a_failure_costs() -> None:
    rates = (980.0, 1010.0, 995.0, 1005.0, 1000.0, 990.0, 1015.0, 1005.0)
    slow, fast = (
        Arm(
            price_per_hour=60,
            tokens_per_second=tuple(ratio * rate for rate in rates),
            mean_output_tokens=300,
        )
        for ratio in (1.0, 1.2)
    )
    found = money_gate(slow, fast, Tally.of_pairs(n=3000, harm=126, benefit=3), alpha=0.05)
    for weight, state in ((1.0, GateState.PASSED), (10.0, GateState.FAILED)):
        policy = replace(POLICY, load_runs=Terms(failure=FailureChain.of_weight(weight)))
        assert measured(Gate.MONEY, found, policy).state is state
