"""Whether tools are called at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Format, Needle, Request, Tool, ToolCall
from evaluators.score import NotApplicable, PairScore, Score, score_pair
from evaluators.tool_use import ToolUse

Make = Callable[..., Request]
JUDGE = ToolUse()
WEATHER = Tool(name="weather", parameters={"type": "object"})
CALL = ToolCall(name="weather", arguments="{broken")


def test_it_applies_where_calling_is_left_to_the_model(make_request: Make) -> None:
    needle = Needle(key="a", value="b", question="?", depth=0.5)
    assert JUDGE.applies(make_request(tools=(WEATHER,)))
    assert JUDGE.applies(make_request(tools=(WEATHER,), format=Format.JSON_OBJECT))
    assert not JUDGE.applies(make_request())
    for choice in ("none", "required", "weather"):
        assert not JUDGE.applies(make_request(tools=(WEATHER,), tool_choice=choice))
    assert not JUDGE.applies(make_request(tools=(WEATHER,), needle=needle))


@pytest.mark.parametrize(
    ("answer", "label", "passed"),
    [
        (Answer(tool_calls=(CALL,)), "called", True),
        (Answer(tool_calls=(ToolCall(name="unknown", arguments=""), CALL)), "called", True),
        (Answer(text="It is sunny."), "no_call", False),
        (Answer(), "no_call", False),
        (Answer(refusal="no"), "no_call", False),
        (Answer(text='I will. <tool_call>{"name":'), "call_in_text", False),
    ],
)
def test_an_answer_passes_by_calling_whatever_it_calls(
    answer: Answer, label: str, passed: bool, make_request: Make
) -> None:
    found = JUDGE.score(make_request(tools=(WEATHER,)), answer)
    assert (found.label, found.passed) == (label, passed)


def test_it_tells_what_was_called_and_where_a_call_was_meant(make_request: Make) -> None:
    request = make_request(tools=(WEATHER,))
    assert JUDGE.score(request, Answer(tool_calls=(CALL, CALL))).reason == "called weather"
    meant = JUDGE.score(request, Answer(text='I will. <tool_call>{"name":'))
    assert meant.evidence == '<tool_call>{"name":'


def test_a_pair_is_discordant_when_one_arm_calls_and_a_fault_says_nothing(make_request: Make) -> None:
    request = make_request(tools=(WEATHER,))
    called, talked = Answer(tool_calls=(CALL,)), Answer(text="sunny")
    pair = score_pair(JUDGE, request, called, talked)
    assert isinstance(pair, PairScore)
    assert isinstance(pair.baseline, Score)
    assert pair.harm
    broke = score_pair(JUDGE, request, called, Fault(kind=FaultKind.CUT_OFF))
    assert isinstance(broke, NotApplicable)


def test_more_calls_than_the_one_allowed_fail_with_any_choice(make_request: Make) -> None:
    for choice in ("auto", "required", "weather"):
        once = make_request(tools=(WEATHER,), tool_choice=choice, parallel_calls=False)
        assert JUDGE.applies(once)
        found = JUDGE.score(once, Answer(tool_calls=(CALL, CALL)))
        assert (found.passed, found.label) == (False, "too_many_calls")
        assert found.reason == "expected at most one call, found 2: weather"
        assert JUDGE.score(once, Answer(tool_calls=(CALL,))).passed
    assert not JUDGE.applies(make_request(tools=(WEATHER,), tool_choice="none", parallel_calls=False))


def test_calling_or_not_is_only_observed_where_it_is_left_to_the_model(make_request: Make) -> None:
    free = make_request(tools=(WEATHER,))
    assert JUDGE.score(free, Answer(text="sunny")).neutral
    assert JUDGE.score(free, Answer(tool_calls=(CALL,))).neutral
    assert not JUDGE.score(free, Answer(text="<tool_call>")).neutral
    demanded = make_request(tools=(WEATHER,), tool_choice="required", parallel_calls=False)
    assert not JUDGE.score(demanded, Answer(text="sunny")).neutral
