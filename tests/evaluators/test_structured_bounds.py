"""Nothing that a request or an answer holds keeps an evaluator busy for long, and who is to blame is told.

The request's fault leaves the pair unscored, the answer's fails it as unjudgeable. The caller's limit is far
away here: what is tested is that our own bounds end the work, in processor time that is told generously.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from evaluators.exchange import Answer, AnswerRule, Format, Guide, GuideKind, Request, Tool, ToolCall
from evaluators.score import PairScore, TimeLimit, Unscored, UnscoredReason, score_pair
from evaluators.structured_output import StructuredOutput
from tests.patience import PATIENCE, here
from workers.judge import judge

Make = Callable[..., Request]
SMALL = Answer(text='{"a": 1}')
CALLED = Answer(tool_calls=(ToolCall(name="f", arguments="{}"),))


def doubling(levels: int) -> dict[str, Any]:
    """2**levels evaluations of one value."""
    parts: dict[str, Any] = {f"a{levels}": {"type": "string"}}
    for level in range(levels):
        following = {"$ref": f"#/$defs/a{level + 1}"}
        parts[f"a{level}"] = {"anyOf": [{"allOf": [following, {"type": "null"}]}, following]}
    return {"$defs": parts, "$ref": "#/$defs/a0"}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        doubling(60),
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        nested(60),
        {"enum": ["x" * 1000] * 1000},
        {"properties": {f"p{number}": {"type": "string"} for number in range(20_000)}},
        {"pattern": "(?=a)"},
        {"pattern": "((a{100}){100}){100}"},
        {"pattern": r"(\w+\s?)*\1"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
    ],
    ids=["doubling", "endless", "deep", "large", "wide", "look-around", "repeated", "backward", "elsewhere"],
)
@pytest.mark.parametrize("by_tool", [False, True])
def test_a_hostile_schema_leaves_the_pair_unscored_whatever_the_arms_say(
    schema: Any, by_tool: bool, make_request: Make
) -> None:
    request = (
        make_request(tools=(Tool(name="f", parameters=schema),), tool_choice="required")
        if by_tool
        else make_request(format=Format.JSON_SCHEMA, schema=schema)
    )
    answer = CALLED if by_tool else SMALL
    began = time.process_time()
    found = judge(StructuredOutput(), request, answer, answer, seconds=PATIENCE)
    took = time.process_time() - began
    assert isinstance(found, Unscored), found
    assert found.reason is UnscoredReason.UNSUPPORTED_SCHEMA
    assert took < here(2)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(text='{"a": "' + "x" * 10_000_000 + '"}'),
        Answer(text="x" * 10_000_000),
        Answer(text="[" * 10_000_000),
        Answer(text='{"a":' * 1_000_000),
        Answer(text="[" * 200 + "]" * 200),
        Answer(text='{"a": ' + "9" * 5000 + "}"),
        Answer(text='{"a": 1e99999999}'),
    ],
    ids=["long", "prose", "brackets", "objects", "deep", "digits", "exponent"],
)
@pytest.mark.parametrize("lines", [False, True])
def test_a_hostile_answer_fails_and_the_other_arm_does_not_pay(
    answer: Answer, lines: bool, make_request: Make
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    request = (
        AnswerRule(json_lines=True).applied_to(make_request())
        if lines
        else make_request(format=Format.JSON_SCHEMA, schema=schema)
    )
    for arms in ((SMALL, answer), (answer, SMALL)):
        began = time.process_time()
        found = judge(StructuredOutput(), request, *arms, seconds=PATIENCE)
        took = time.process_time() - began
        assert isinstance(found, PairScore), found
        labels = {found.baseline.label, found.candidate.label}
        assert labels == {"ok", "unjudgeable"}
        assert took < here(2)


@pytest.mark.parametrize("arguments", ["[" * 1000, '{"a": "' + "x" * 10_000_000 + '"}'])
def test_hostile_arguments_fail_alone(arguments: str, make_request: Make) -> None:
    request = make_request(tools=(Tool(name="f", parameters={"type": "object"}),))
    hostile = Answer(tool_calls=(ToolCall(name="f", arguments=arguments),))
    found = judge(StructuredOutput(), request, CALLED, hostile, seconds=PATIENCE)
    assert isinstance(found, PairScore)
    assert (found.baseline.label, found.candidate.label) == ("ok", "unjudgeable")


def test_a_catastrophic_pattern_is_judged_like_any_other(make_request: Make) -> None:
    schema = {"properties": {"a": {"pattern": "^(a+)+$"}}}
    request = make_request(format=Format.JSON_SCHEMA, schema=schema)
    found = judge(
        StructuredOutput(),
        request,
        Answer(text='{"a": "' + "a" * 50_000 + '"}'),
        Answer(text='{"a": "' + "a" * 50_000 + '!"}'),
        seconds=PATIENCE,
    )
    assert isinstance(found, PairScore)
    assert (found.baseline.label, found.candidate.label) == ("ok", "schema_violation")
    guided = make_request(guide=Guide(kind=GuideKind.REGEX, written="(a+)+"))
    found = judge(
        StructuredOutput(),
        guided,
        Answer(text="a" * 50_000),
        Answer(text="a" * 50_000 + "!"),
        seconds=PATIENCE,
    )
    assert isinstance(found, PairScore)
    assert (found.baseline.label, found.candidate.label) == ("ok", "schema_violation")


class Limits:
    """A caller's limit that the first judgement under it runs into, and no other."""

    def __init__(self) -> None:
        self.armed = 0

    def __call__(self) -> Limits:
        return self

    def __enter__(self) -> None:
        self.armed += 1
        if self.armed == 1:
            raise TimeLimit

    def __exit__(self, *_: object) -> None:
        pass


def test_a_schema_has_a_limit_of_its_own_so_that_the_first_arm_does_not_pay_for_it(
    make_request: Make,
) -> None:
    request = make_request(format=Format.JSON_SCHEMA, schema={"type": "object"})
    limits = Limits()
    found = score_pair(StructuredOutput(), request, SMALL, SMALL, limit=limits)
    assert isinstance(found, Unscored)
    assert (found.reason, limits.armed) == (UnscoredReason.TIME_LIMIT, 1)
    assert found.detail == "reading the request ran into the time limit"
    assert isinstance(score_pair(StructuredOutput(), request, SMALL, SMALL, limit=limits), PairScore)
    assert limits.armed == 4
