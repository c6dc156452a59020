"""What labels do to a finding: they replace its difference, may withhold, and never accept."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.correction import BENEFIT, BOTH_FAILED, BOTH_PASSED, HARM, Cell, Labels
from service.decision.decide import decide, limits_of
from service.decision.evidence import Evidence
from service.decision.labelled import level_of
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, Policy
from service.decision.tally import Tally
from service.decision.verdict import Decision, Finding

CELLS = (BOTH_PASSED, HARM, BENEFIT, BOTH_FAILED)
QUALITY = dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED}


def policy(hypothesis: Hypothesis = Hypothesis.NON_INFERIOR, margin: float = 0.02) -> Policy:
    return Policy(
        criteria=(Criterion(evaluator="refusal", hypothesis=hypothesis, margin=margin),), gates=QUALITY
    )


def evidence(tally: Tally, labels: Labels | None, **changes: Any) -> Evidence:
    told = {} if labels is None else {"refusal": labels}
    return Evidence(model="m", tier="w8a8", epoch="e", tallies={"refusal": tally}, labels=told, **changes)


def finding(tally: Tally, labels: Labels | None, asked: Policy | None = None, **changes: Any) -> Finding:
    return decide(asked or policy(), evidence(tally, labels, **changes), rung_below=None).findings[0]


def labels(
    *,
    right: int = 600,
    harm: dict[Cell, int] | None = None,
    passed: dict[Cell, int] | None = None,
    **more: Any,
) -> Labels:
    table = {(BOTH_PASSED, BOTH_PASSED): right}
    table |= {(HARM, truth): count for truth, count in (harm or {}).items()}
    table |= {(BOTH_PASSED, truth): count for truth, count in (passed or {}).items()}
    return Labels(table=table, **more)


CLEAN = Tally.of_pairs(n=3000, harm=10, benefit=0)
HARMFUL = Tally.of_pairs(n=3000, harm=200, benefit=0)
AGREED: dict[str, Any] = {"by_two": 40, "kappa": 0.9}


def test_sufficient_labels_take_the_place_of_the_raw_difference_and_the_finding_says_so() -> None:
    found = finding(CLEAN, labels(harm={HARM: 4, BOTH_PASSED: 6}))
    assert found.decision is Decision.ACCEPT
    assert found.correction is not None
    assert found.correction.suffices
    assert found.estimate == found.correction.estimate == pytest.approx(10 / 3000 * 0.4)
    assert found.interval == found.correction.interval
    assert found.raw[0] == found.correction.raw_estimate == pytest.approx(10 / 3000)
    assert "corrected by 610 labels: raw +0.3 pp, corrected +0.1 pp [" in found.reason
    assert found.reason.startswith("shown within the margin of 0.02: e-value ")


@pytest.mark.parametrize(
    ("told", "lacking"),
    [
        (labels(right=80, harm={HARM: 10}), "labels (90) < 100"),
        (labels(right=110, harm={HARM: 10}), "interval width "),
        (labels(right=600, open={BOTH_PASSED: 40}), "pairs left open (40 of 640) > 5%"),
    ],
)
def test_labels_that_do_not_suffice_are_shown_and_change_nothing(told: Labels, lacking: str) -> None:
    before, found = finding(CLEAN, None), finding(CLEAN, told)
    assert (found.decision, found.reason, found.estimate) == (before.decision, before.reason, before.estimate)
    assert found.correction is not None
    assert not found.correction.suffices
    assert lacking in found.correction.missing


def test_acceptance_is_withheld_where_labels_are_not_within_the_margin() -> None:
    # People find harm in pairs that the evaluator takes for equal: it is blind to it.
    found = finding(CLEAN, labels(right=580, harm={HARM: 10}, passed={HARM: 20}))
    assert finding(CLEAN, None).decision is Decision.ACCEPT
    assert found.decision is Decision.UNDECIDED
    assert found.reason.startswith(
        "withheld: within the margin of 0.02 by the evaluator, not by people's labels"
    )
    assert found.estimate is not None
    assert found.estimate > 0.03


def test_under_equivalence_fewer_failures_withhold_as_well() -> None:
    told = labels(right=580, harm={HARM: 10}, passed={BENEFIT: 20})
    assert finding(CLEAN, told).decision is Decision.ACCEPT
    both_ways = policy(Hypothesis.EQUIVALENT)
    assert finding(CLEAN, None, both_ways).decision is Decision.ACCEPT
    assert finding(CLEAN, told, both_ways).decision is Decision.UNDECIDED


def test_a_rejection_is_lifted_to_undecided_only_when_every_discordant_pair_is_labelled_and_two_agree() -> (
    None
):
    wrong = {BOTH_PASSED: 200}
    assert finding(HARMFUL, None).decision is Decision.REJECT
    lifted = finding(HARMFUL, labels(harm=wrong, **AGREED))
    assert lifted.decision is Decision.UNDECIDED
    assert lifted.reason.startswith(
        "lifted: harm by the evaluator is within the margin of 0.02 by people's labels"
    )
    for kept in (
        labels(harm=wrong),
        labels(harm=wrong, by_two=40, kappa=0.5),
        labels(harm=wrong, by_two=19, kappa=1.0),
        labels(harm={BOTH_PASSED: 199}, **AGREED),
        labels(right=50, harm=wrong, **AGREED),
        labels(harm={HARM: 200}, **AGREED),
    ):
        assert finding(HARMFUL, kept).decision is Decision.REJECT


def test_harm_in_one_stratum_is_never_lifted() -> None:
    stratum = {"32k+": Tally.of_pairs(n=300, harm=100, benefit=0)}
    changes: dict[str, Any] = {"strata": {"refusal": stratum}, "strata_under_test": 38}
    found = finding(HARMFUL, labels(harm={BOTH_PASSED: 200}, **AGREED), **changes)
    assert found.decision is Decision.REJECT


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        (CLEAN, labels(passed={HARM: 30})),
        (HARMFUL, labels(harm={BOTH_PASSED: 200}, **AGREED)),
    ],
)
def test_what_labels_leave_undecided_when_the_epoch_has_ended_is_not_shown(
    counted: Tally, told: Labels
) -> None:
    before = finding(counted, told, max_pairs={"refusal": 3001})
    assert (before.decision, before.not_shown) == (Decision.UNDECIDED, False)
    full = evidence(counted, told, max_pairs={"refusal": 3000})
    verdict = decide(policy(), full, rung_below=None)
    assert (verdict.decision, verdict.not_shown) == (Decision.UNDECIDED, True)
    assert verdict.findings[0].not_shown
    assert verdict.findings[0].reason.startswith("not_shown: counted pairs (3000) >= max_pairs (3000): ")
    accepted = finding(CLEAN, labels(harm={HARM: 4, BOTH_PASSED: 6}), max_pairs={"refusal": 3000})
    assert (accepted.decision, accepted.not_shown) == (Decision.ACCEPT, False)


def test_the_e_values_stay_those_of_the_evaluator() -> None:
    for counted in (CLEAN, HARMFUL):
        before, after = finding(counted, None), finding(counted, labels(harm={BOTH_PASSED: 10}))
        assert (before.log_e, before.warn, before.worst_strata) == (
            after.log_e,
            after.warn,
            after.worst_strata,
        )


COUNTS = st.integers(0, 400)


@given(
    pairs=st.tuples(st.integers(0, 4000), st.integers(0, 300), st.integers(0, 300)),
    told=st.dictionaries(st.tuples(st.sampled_from(CELLS), st.sampled_from(CELLS)), COUNTS, max_size=8),
    open_=st.dictionaries(st.sampled_from(CELLS), st.integers(0, 30), max_size=4),
    by_two=st.integers(0, 60),
    kappa=st.none() | st.floats(-1, 1),
    hypothesis=st.sampled_from(Hypothesis),
    attempt=st.integers(1, 3),
)
def test_labels_never_make_an_acceptance_and_never_a_rejection(
    pairs: tuple[int, int, int],
    told: dict[tuple[Cell, Cell], int],
    open_: dict[Cell, int],
    by_two: int,
    kappa: float | None,
    hypothesis: Hypothesis,
    attempt: int,
) -> None:
    """Acceptance with labels is a part of acceptance without: no easier than alpha allows, at any look."""
    clean, harm, benefit = pairs
    counted = Tally.of_pairs(n=clean + harm + benefit, harm=harm, benefit=benefit)
    asked = policy(hypothesis)
    given_ = Labels(table=told, open=open_, by_two=by_two, kappa=kappa)
    before = finding(counted, None, asked, attempt=attempt)
    after = finding(counted, given_, asked, attempt=attempt)
    if after.decision is Decision.ACCEPT:
        assert before.decision is Decision.ACCEPT
        assert after.interval.upper <= asked.criteria[0].margin + 1e-9
    if after.decision is Decision.REJECT:
        assert before.decision is Decision.REJECT
    if before.decision is Decision.REJECT:
        assert after.decision is not Decision.ACCEPT
    if after.estimate is not None:
        assert -1 <= after.interval.lower <= after.interval.upper <= 1
        assert math.isfinite(after.estimate)
    assert limits_of(asked, evidence(counted, given_, attempt=attempt)).attempt == attempt


def test_an_error_rate_that_is_next_to_nothing_still_has_an_interval() -> None:
    asked = Policy(
        criteria=(Criterion(evaluator="refusal", margin=0.02),), gates=QUALITY, alpha_accept=1e-300
    )
    found = finding(CLEAN, labels(harm={HARM: 4, BOTH_PASSED: 6}), asked)
    assert found.correction is not None
    assert found.correction.interval.level < 1


def test_the_level_is_acceptances_and_always_one() -> None:
    assert level_of(policy(), 0.02) == 0.96
    assert level_of(policy(), 0.0) == 1 - 2 * policy().alpha_approval
    assert level_of(policy(), 0.4) == 0.5
    assert level_of(policy(), 1e-300) < 1
