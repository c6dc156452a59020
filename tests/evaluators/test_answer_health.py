"""Sound answers and the classes of those that are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from evaluators.answer_health import AnswerHealth
from evaluators.exchange import Answer, Fault, FaultKind, Format, Needle, Request, ToolCall
from evaluators.score import PairScore, score_pair

HEALTH = AnswerHealth()
LOOP = "I will now look at this once more. " * 12
CHINESE = "大海非常宽广，风很大，天空很蓝，我们在海边散步。"


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (Answer(text="The sea is wide.", finish_reason="stop"), "ok"),
        (Answer(text="The sea is wide."), "ok"),
        (Answer(tool_calls=(ToolCall(name="f", arguments="{}"),), finish_reason="tool_calls"), "ok"),
        (Answer(refusal="I can't.", finish_reason="stop"), "ok"),
        (Answer(text="Wow!!!!!!!!", finish_reason="stop"), "ok"),
        (Answer(text="banana, nan bread", finish_reason="stop"), "ok"),
        (Answer(text="!" * 64, finish_reason="length"), "engine_error"),
        (Answer(text="The sea is nan nan nan nan nan nan", finish_reason="length"), "engine_error"),
        (
            Answer(text="The sea \ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd", finish_reason="stop"),
            "engine_error",
        ),
        (Answer(text="sea<unk><unk> <unk><unk>", finish_reason="stop"), "engine_error"),
        (Answer(text="fine", reasoning="!" * 64, finish_reason="stop"), "engine_error"),
        (Answer(text=LOOP, finish_reason="length"), "runaway"),
        (Answer(text='{"a":' + "\n" * 600, finish_reason="length"), "runaway"),
        (Answer(reasoning="Wait, " * 100, finish_reason="length"), "runaway"),
        (Answer(text=LOOP, finish_reason="stop"), "repetition"),
        (Answer(text=f"{LOOP} The sea is wide.", finish_reason="length"), "repetition"),
        (Answer(text="a" + " " * 600 + "b", finish_reason="stop"), "white_space_flood"),
        (Answer(text=" \n", finish_reason="stop"), "empty"),
        (Answer(reasoning="The sea ...", finish_reason="length"), "empty"),
        (Answer(text="The sea is", finish_reason="length"), "cut_short"),
        (Answer(text="The sea is", finish_reason="content_filter"), "filtered"),
        (Answer(text=CHINESE, finish_reason="stop"), "language_switch"),
    ],
)
def test_each_answer_has_one_class(make_request: Callable[..., Request], answer: Answer, label: str) -> None:
    score = HEALTH.score(make_request("What is the sea like?"), answer)
    assert (score.label, score.passed) == (label, label == "ok")
    assert bool(score.reason) == (label != "ok")


def test_the_reason_says_what_was_said_again_and_how_often(make_request: Callable[..., Request]) -> None:
    score = HEALTH.score(make_request(), Answer(text=LOOP, finish_reason="length"))
    assert score.reason == "said 12 times in a row, to the token limit"
    assert "look at this once more." in score.evidence


def test_json_is_in_no_language(make_request: Callable[..., Request]) -> None:
    answer = Answer(text=f'{{"text": "{CHINESE}"}}', finish_reason="stop")
    assert HEALTH.score(make_request("What is the sea like?"), answer).passed
    asked = make_request("What is the sea like?", format=Format.JSON_OBJECT)
    assert HEALTH.score(asked, Answer(text=CHINESE, finish_reason="stop")).passed


@pytest.mark.parametrize(
    ("detail", "label"),
    [
        ("probability tensor contains either `inf`, `nan` or element < 0", "engine_error"),
        ("Out of range float values are not JSON compliant: nan", "engine_error"),
        ("CUDA error: an illegal memory access was encountered", "engine_error"),
        ("EngineCore encountered an issue: EngineDeadError", "engine_error"),
        ("information is inferred by a financier", "fault"),
        ("", "fault"),
    ],
)
def test_a_generation_that_broke_fails_and_smells_of_its_cause(
    make_request: Callable[..., Request], detail: str, label: str
) -> None:
    score = HEALTH.score_fault(make_request(), Fault(kind=FaultKind.SERVER_ERROR, status=500, detail=detail))
    assert (score.label, score.passed) == (label, False)
    assert score.reason.startswith("server_error")


def test_it_applies_by_the_request_alone(make_request: Callable[..., Request]) -> None:
    assert HEALTH.applies(make_request())
    assert not HEALTH.applies(make_request(needle=Needle(key="a", value="b", question="?", depth=0.5)))
    assert not HEALTH.applies(make_request(body={"echo": True}))
    assert not HEALTH.applies(make_request(max_tokens=0))


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (Answer(text="The sea is wide.", finish_reason="stop", broken_logprobs=1), "engine_error"),
        (Answer(finish_reason="length", completion_tokens=64), "engine_error"),
        (Answer(finish_reason="length", completion_tokens=64, reasoning_tokens=62), "empty"),
        (Answer(finish_reason="length", completion_tokens=64, reasoning="Let me"), "empty"),
        (Answer(finish_reason="length", completion_tokens=1), "empty"),
        (Answer(finish_reason="length"), "empty"),
        (Answer(finish_reason="stop", completion_tokens=64), "empty"),
        (Answer(text=" ", finish_reason="length", completion_tokens=64), "empty"),
    ],
)
def test_numbers_that_are_none_show_in_answers_that_came(
    make_request: Callable[..., Request], answer: Answer, label: str
) -> None:
    assert HEALTH.score(make_request(), answer).label == label


def test_thinking_that_is_hidden_is_no_sign(make_request: Callable[..., Request]) -> None:
    silent = Answer(finish_reason="length", completion_tokens=64)
    assert HEALTH.score(make_request(body={"include_reasoning": False}), silent).label == "empty"
    assert HEALTH.score(make_request(), replace(silent, reasoning_hidden=True)).label == "empty"


@pytest.mark.parametrize(
    ("candidate", "details"),
    [
        (Answer(text="a" * 180, finish_reason="stop"), {("length", "4/5 to 5/4", 1)}),
        (Answer(text="a" * 120, finish_reason="stop"), {("length", "1/2 to 4/5", 1)}),
        (
            Answer(text="a" * 900, finish_reason="length"),
            {("length", "over 4", 1), ("finish reason", "differs", 1)},
        ),
        (
            Answer(tool_calls=(ToolCall(name="f", arguments="{}"),), finish_reason="stop"),
            {("tool choice", "differs", 1)},
        ),
    ],
)
def test_lengths_are_counted_by_their_ratio_and_ends_and_tools_where_they_differ(
    make_request: Callable[..., Request], candidate: Answer, details: set[tuple[str, str, int]]
) -> None:
    judged = score_pair(HEALTH, make_request(), Answer(text="a" * 200, finish_reason="stop"), candidate)
    assert isinstance(judged, PairScore)
    assert set(judged.candidate.details) == details
    assert judged.baseline.details == ()
    broke = score_pair(HEALTH, make_request(), Answer(text="a"), Fault(kind=FaultKind.CUT_OFF))
    assert isinstance(broke, PairScore)
    assert broke.candidate.details == ()
