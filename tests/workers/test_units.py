from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Outcome, Request
from evaluators.score import (
    Detail,
    NotApplicable,
    PairScore,
    Score,
    Unscored,
    UnscoredReason,
)
from service import strata
from service.fleet import Backend, Ladder
from service.store.scored.units import Unit
from tests.workers.walk import exchange, question, tier
from workers.opening import open_capture
from workers.plan import Slot
from workers.probes import RECALL, Probing
from workers.units import MOST_REASON, Placed, Scoring, claims_of, row_of, units_of

LADDER = Ladder(model="m", tiers=(tier("bf16", None), tier("w4a16", None)))


@dataclass(frozen=True)
class Exact:
    """Passes what says `ok`; applies to everything, or to nothing, or raises."""

    name: str = "exact"
    version: str = "7"
    applying: str = "yes"

    def applies(self, request: Request) -> bool:
        if self.applying == "raises":
            raise ValueError("a bug")
        return self.applying == "yes"

    def score(self, request: Request, answer: Answer) -> Score:
        return Score(passed=answer.text == "ok", label=answer.text)

    def score_fault(self, request: Request, fault: Fault) -> Score:
        return Score(passed=False, label="fault")


def scoring(*evaluators: Exact) -> Scoring:
    return Scoring(
        evaluators=evaluators, epoch_of=lambda model, tier: f"{model} {tier}", seconds_per_answer=1.0
    )


def placed(
    live: str = "ok", *, hold: bool = True, over_budget: bool = False, by: Scoring | None = None
) -> Placed:
    found = open_capture(
        exchange(question("x"), live),
        LADDER,
        {"bf16": (Backend(url="http://a"),), "w4a16": (Backend(url="http://b"),)},
        Probing(per_capture=0),
    )
    held = frozenset(claims_of(found, "c", by or scoring(Exact()))) if hold else frozenset()
    return Placed(opened=found, conversation="c", held=held, over_budget=over_budget)


def outcomes(candidate: Outcome, control: Outcome | None = None) -> dict[Slot, Outcome]:
    return {
        Slot("bf16", 0): Answer(text="ok"),
        Slot("w4a16", 0): candidate,
        Slot("bf16", 0, again=True): control or Answer(text="ok"),
    }


def by_arm(units: tuple[Unit, ...]) -> dict[str, Unit]:
    return {unit.arm: unit for unit in units}


def test_a_pair_and_its_control_become_two_units_in_their_own_epochs() -> None:
    units = by_arm(units_of(placed(), outcomes(Answer(text="no")), scoring(Exact()), at=5.0))
    candidate, control = units["candidate"], units["control"]
    assert (candidate.tier, candidate.epoch, candidate.version) == ("w4a16", "m w4a16", "7")
    assert (control.tier, control.epoch) == ("bf16", "m bf16")
    assert candidate.rows[0].harm
    assert not control.rows[0].harm
    assert candidate.counted
    assert control.counted
    assert candidate.at == 5.0


def test_units_count_only_where_the_capture_holds_the_claim() -> None:
    units = units_of(placed(hold=False), outcomes(Answer(text="no")), scoring(Exact()), at=5.0)
    assert not any(unit.counted for unit in units)


def test_an_evaluator_that_does_not_apply_claims_nothing_and_leaves_a_row() -> None:
    by = scoring(Exact(applying="no"))
    found = placed(by=by)
    assert found.held == frozenset()
    units = units_of(found, outcomes(Answer(text="no")), by, at=5.0)
    assert [row.outcome for unit in units for row in unit.rows] == ["not_applicable"] * 2


def test_an_onlooker_that_does_not_apply_leaves_nothing_and_one_that_does_is_scored() -> None:
    silent, judging = scoring(Exact(applying="no")), scoring(Exact())
    onlookers = frozenset({Exact().name})
    assert units_of(placed(by=silent), {}, replace(silent, onlookers=onlookers), at=5.0) == ()
    units = units_of(placed(), outcomes(Answer(text="no")), replace(judging, onlookers=onlookers), at=5.0)
    assert len(units) == 2


def test_an_evaluator_that_cannot_tell_whether_it_applies_is_counted_as_a_bug() -> None:
    by = scoring(Exact(applying="raises"))
    units = units_of(placed(by=by), outcomes(Answer(text="no")), by, at=5.0)
    assert [row.unscored_reason for unit in units for row in unit.rows] == ["bug"] * 2


def test_over_budget_leaves_rows_that_say_so_and_asks_no_outcome() -> None:
    units = units_of(placed(hold=False, over_budget=True), {}, scoring(Exact()), at=5.0)
    assert [row.outcome for unit in units for row in unit.rows] == ["over_budget"] * 2


@pytest.mark.parametrize("kind", [FaultKind.TIMEOUT, FaultKind.UNREACHABLE, FaultKind.OVERLOADED])
@pytest.mark.parametrize("arm", ["candidate", "control"])
def test_a_fault_of_the_infrastructure_is_unscored_in_either_arm(kind: FaultKind, arm: str) -> None:
    fault = Fault(kind=kind)
    found = outcomes(fault) if arm == "candidate" else outcomes(Answer(text="ok"), fault)
    unit = by_arm(units_of(placed(), found, scoring(Exact()), at=5.0))[arm]
    assert unit.rows[0].unscored_reason == "shadow"


def test_rows_say_where_the_baselines_outcome_comes_from() -> None:
    units = by_arm(units_of(placed(), outcomes(Answer(text="no")), scoring(Exact()), at=5.0))
    assert {unit.rows[0].origin for unit in units.values()} == {"live"}


def test_reasons_are_cut_to_size() -> None:
    score = Score(passed=False, label="x", reason="r" * 10_000)
    row = row_of(
        PairScore(evaluator="e", version="1", baseline=score, candidate=score), item=0, origin="live"
    )
    assert len(row.baseline_reason) == len(row.candidate_reason) == MOST_REASON


def test_what_could_not_be_scored_keeps_its_reason_and_detail() -> None:
    unscored = row_of(Unscored(reason=UnscoredReason.UNSUPPORTED_SCHEMA, detail="why"), item=2, origin="live")
    assert (unscored.item, unscored.outcome, unscored.unscored_reason) == (
        2,
        "unscored",
        "unsupported_schema",
    )
    assert unscored.candidate_reason == "why"
    assert row_of(NotApplicable(why="request"), item=0, origin="live").outcome == "not_applicable"


def test_each_recall_question_is_in_the_stratum_of_its_depth_whatever_becomes_of_it() -> None:
    facts = " ".join(f"The door code of building {name} is {4000 + ord(name)}." for name in "ABCDEFGHIJ")
    found = open_capture(
        exchange(question(f"{facts}\n\nSum it up."), "ok"),
        LADDER,
        {"bf16": (Backend(url="http://a"),), "w4a16": (Backend(url="http://b"),)},
        Probing(per_capture=4, min_context_chars=10),
    )
    judging = scoring(Exact(name=RECALL), Exact())
    depths = [strata.of_depth(each.needle.depth) for each in found.questions if each.needle is not None]
    assert len(set(depths)) > 1
    for placed_as in (
        Placed(opened=found, conversation="c", late=True),
        Placed(opened=found, conversation="c", over_budget=True),
        Placed(opened=found, conversation="c"),
    ):
        answers = {
            slot: Answer(text="ok")
            for comparison in found.plan.comparisons
            for item in range(len(found.questions) + 1)
            for slot in comparison.slots("bf16", item)
        }
        for unit in units_of(placed_as, answers, judging, at=1.0):
            own = [row.own_stratum for row in unit.rows]
            assert own == (depths if unit.evaluator == RECALL else [""])


def test_what_a_comparison_counts_comes_with_its_pair() -> None:
    passed = Score(passed=True, label="reference")
    failed = Score(passed=False, label="values_differ", details=(Detail("/a", "value"),))
    judged = PairScore(evaluator="f", version="1", baseline=passed, candidate=failed)
    found = row_of(judged, item=0, origin="live").details
    assert found == (("/a", "value", 1), ("values_differ", "candidate", 1))


def test_of_what_judges_one_answer_the_failed_classes_are_counted_by_arm() -> None:
    ok, bad = Score(passed=True, label="ok"), Score(passed=False, label="not_json")
    for baseline, candidate, found in (
        (ok, ok, ()),
        (ok, bad, (("not_json", "candidate", 1),)),
        (bad, bad, (("not_json", "baseline", 1), ("not_json", "candidate", 1))),
    ):
        judged = PairScore(evaluator="s", version="1", baseline=baseline, candidate=candidate)
        assert row_of(judged, item=0, origin="live").details == found
