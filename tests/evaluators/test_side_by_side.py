"""How the answers of a pair differ from outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Needle, Request, ToolCall
from evaluators.score import NotApplicable, PairScore, score_pair
from evaluators.side_by_side import SideBySide

JUDGE = SideBySide()
CALL = ToolCall(name="f", arguments="{}")


def text(size: int, finish: str = "stop", tokens: int | None = None) -> Answer:
    return Answer(text="a" * size, finish_reason=finish, completion_tokens=tokens)


@pytest.mark.parametrize(
    ("candidate", "label"),
    [
        (text(200), "alike"),
        (text(399), "alike"),
        (text(101), "alike"),
        (text(400), "much_longer"),
        (text(100), "much_shorter"),
        (text(0), "much_shorter"),
        (text(400, finish="length"), "end_differs"),
        (Answer(text="a" * 200, finish_reason="tool_calls", tool_calls=(CALL,)), "tools_differ"),
    ],
)
def test_each_pair_has_one_class(make_request: Callable[..., Request], candidate: Answer, label: str) -> None:
    reference, found = JUDGE.compare(make_request(), text(200), candidate)
    assert reference.passed
    assert (found.label, found.passed) == (label, label == "alike")
    assert bool(found.reason) == (label != "alike")


def test_a_word_more_is_not_much_longer(make_request: Callable[..., Request]) -> None:
    assert JUDGE.compare(make_request(), text(3), text(60))[1].label == "alike"


def test_it_needs_two_answers(make_request: Callable[..., Request]) -> None:
    request = make_request()
    assert isinstance(score_pair(JUDGE, request, text(9), text(9)), PairScore)
    broke = Fault(kind=FaultKind.CUT_OFF)
    assert isinstance(score_pair(JUDGE, request, text(9), broke), NotApplicable)
    assert not JUDGE.applies(make_request(needle=Needle(key="a", value="b", question="?", depth=0.5)))
