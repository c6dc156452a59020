"""Judging a pair: both arms alike, and every reason why there is no score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Outcome, Request
from evaluators.score import (
    NotApplicable,
    PairScore,
    Score,
    TimeLimit,
    Unscored,
    UnscoredReason,
    excerpt,
    score_pair,
)

Make = Callable[..., Request]


@dataclass(frozen=True)
class Says:
    """Passes an answer whose text is `yes`; stumbles over `bug`; cannot judge `odd`."""

    name: str = "says"
    version: str = "7"
    eligible: bool = True

    def applies(self, request: Request) -> bool:
        return self.eligible

    def score(self, request: Request, answer: Answer) -> Score | Unscored:
        if answer.text == "bug":
            raise KeyError("bug")
        if answer.text == "odd":
            return Unscored(reason=UnscoredReason.UNSUPPORTED_SCHEMA)
        if answer.text == "slow":
            raise TimeLimit
        return Score(passed=answer.text == "yes", label=answer.text)

    def score_fault(self, request: Request, fault: Fault) -> Score | NotApplicable:
        return Score(passed=False, label="fault")


YES, NO, SLOW = Answer(text="yes"), Answer(text="no"), Answer(text="slow")


@pytest.mark.parametrize(
    ("baseline", "candidate", "harm", "benefit"),
    [(YES, NO, True, False), (NO, YES, False, True), (YES, YES, False, False), (NO, NO, False, False)],
)
def test_a_pair_is_harm_or_benefit_where_the_arms_differ(
    baseline: Outcome, candidate: Outcome, harm: bool, benefit: bool, make_request: Make
) -> None:
    found = score_pair(Says(), make_request(), baseline, candidate)
    assert isinstance(found, PairScore)
    assert (found.harm, found.benefit) == (harm, benefit)
    assert (found.evaluator, found.version) == ("says", "7")


def test_what_does_not_apply_is_not_judged(make_request: Make) -> None:
    assert score_pair(Says(eligible=False), make_request(), YES, NO) == NotApplicable(why="request")


@pytest.mark.parametrize(
    "kind", [FaultKind.UNREACHABLE, FaultKind.OVERLOADED, FaultKind.TIMEOUT, FaultKind.CENSORED]
)
def test_a_fault_of_the_infrastructure_is_held_against_neither_arm(
    kind: FaultKind, make_request: Make
) -> None:
    fault = Fault(kind=kind, detail="x")
    for pair in ((fault, YES), (YES, fault)):
        found = score_pair(Says(), make_request(), *pair)
        assert isinstance(found, Unscored)
        assert found.reason is UnscoredReason.SHADOW
        assert kind in found.detail


@pytest.mark.parametrize(
    "kind", [FaultKind.SERVER_ERROR, FaultKind.CUT_OFF, FaultKind.STREAM_ERROR, FaultKind.UNREADABLE]
)
def test_a_fault_of_generation_is_a_failure_of_its_arm(kind: FaultKind, make_request: Make) -> None:
    fault = Fault(kind=kind)
    harmed = score_pair(Says(), make_request(), YES, fault)
    helped = score_pair(Says(), make_request(), fault, YES)
    assert isinstance(harmed, PairScore)
    assert isinstance(helped, PairScore)
    assert (harmed.harm, helped.benefit) == (True, True)


def test_a_request_that_the_baseline_rejects_is_not_judged_and_one_that_only_the_candidate_rejects_is_harm(
    make_request: Make,
) -> None:
    rejected = Fault(kind=FaultKind.REJECTED, status=400)
    assert score_pair(Says(), make_request(), rejected, YES) == NotApplicable(why="rejected")
    found = score_pair(Says(), make_request(), YES, rejected)
    assert isinstance(found, PairScore)
    assert found.harm


def test_what_cannot_be_judged_is_unscored_in_either_arm(make_request: Make) -> None:
    for pair in ((Answer(text="odd"), YES), (YES, Answer(text="odd"))):
        found = score_pair(Says(), make_request(), *pair)
        assert isinstance(found, Unscored)
        assert found.reason is UnscoredReason.UNSUPPORTED_SCHEMA


def test_an_evaluator_that_raises_is_a_bug_that_is_counted(make_request: Make) -> None:
    found = score_pair(Says(), make_request(), YES, Answer(text="bug"))
    assert found == Unscored(reason=UnscoredReason.BUG, detail="KeyError: 'bug'")


def test_one_slow_answer_fails_and_two_blame_the_request(make_request: Make) -> None:
    one = score_pair(Says(), make_request(), YES, SLOW)
    assert isinstance(one, PairScore)
    assert (one.candidate.label, one.harm) == ("unjudgeable", True)
    both = score_pair(Says(), make_request(), SLOW, SLOW)
    assert isinstance(both, Unscored)
    assert both.reason is UnscoredReason.TIME_LIMIT


def test_the_caller_s_limit_is_armed_around_each_answer(make_request: Make) -> None:
    armed: list[str] = []

    @contextmanager
    def limit() -> Iterator[None]:
        armed.append("on")
        yield
        armed.append("off")

    score_pair(Says(), make_request(), YES, NO, limit)
    assert armed == ["on", "off", "on", "off"]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("a  b\n c", "a b c"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("\ud83d", "?"),
        ("", ""),
    ],
)
def test_evidence_fits_in_a_line_and_in_utf8(text: str, cut: str) -> None:
    assert excerpt(text) == cut
    excerpt(text).encode()
