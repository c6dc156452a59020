"""The same evidence under another policy: what changes has the other policy's reason, the rest has none."""

from __future__ import annotations

from dataclasses import replace

from service.decision.decide import decide
from service.decision.evidence import Evidence
from service.decision.policy import Asked, Criterion, Gate, Policy, Role
from service.decision.rejudge import NOT_A_CRITERION, Beside, evidence_under, side_by_side
from service.decision.tally import Tally

OFF = dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED}
WIDE = Policy(
    criteria=(Criterion(evaluator="a", margin=0.05), Criterion(evaluator="b", margin=0.05)), gates=OFF
)
TALLIES = {
    "a": Tally.of_pairs(n=400, harm=2, benefit=1),
    "b": Tally.of_pairs(n=400, harm=0, benefit=0),
}
EVIDENCE = Evidence(model="m", tier="t", epoch="e", tallies=TALLIES)


def beside(other: Policy, evidence: Evidence = EVIDENCE) -> dict[str, Beside]:
    before = decide(WIDE, evidence, rung_below=None)
    after = decide(other, evidence_under(other, evidence, strata={}), rung_below=None)
    return {each.subject: each for each in side_by_side(before, after)}


def test_the_same_policy_changes_nothing_and_gives_no_reasons() -> None:
    found = beside(WIDE)
    assert not any(each.changed or each.why for each in found.values())
    assert found["decision"].before == "accept"


def test_a_stricter_margin_says_which_criterion_it_stops_and_with_which_numbers() -> None:
    found = beside(replace(WIDE, criteria=(replace(WIDE.criteria[0], margin=0.01), WIDE.criteria[1])))
    assert (found["decision"].before, found["decision"].after) == ("accept", "undecided")
    assert "not yet shown within the margin of 0.01" in found["a"].why[0]
    assert (found["a"].before, found["b"].changed) == ("accept, decisive, margin 5 pp", False)
    assert found["a"].after.startswith("undecided at e-value ")


def test_a_gate_and_a_criterion_that_only_one_policy_has_are_named() -> None:
    other = Policy(
        criteria=(replace(WIDE.criteria[0], role=Role.SHOWN), Criterion(evaluator="c", margin=0.05)),
        gates={**OFF, Gate.CONTROL: Asked.REQUIRED},
    )
    found = beside(other)
    assert (found["gate control"].before, found["gate control"].after) == ("not asked", "missing")
    assert found["b"].after == NOT_A_CRITERION
    assert found["c"].before == NOT_A_CRITERION
    assert found["a"].after == "accept, shown, margin 5 pp"
    assert not found["gate slo"].changed


def test_an_end_is_planned_anew_for_the_other_policy() -> None:
    fixed = replace(EVIDENCE, max_pairs={"a": 400, "b": 10_000})
    far = replace(WIDE, criteria=tuple(replace(each, margin=0.01) for each in WIDE.criteria))
    planned = evidence_under(far, fixed, strata={}).max_pairs
    assert planned["a"] > 400
    noisy = replace(fixed, control={"a": Tally.of_pairs(n=400, harm=20, benefit=20)})
    assert evidence_under(far, noisy, strata={}).max_pairs["a"] > planned["a"]
    by_hand = replace(far, criteria=(replace(far.criteria[0], max_pairs=400), far.criteria[1]))
    assert evidence_under(by_hand, fixed, strata={}).max_pairs["a"] == 400
    assert beside(by_hand, fixed)["a"].after.startswith("undecided for good")
