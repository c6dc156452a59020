"""Structured output: one class per answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.exchange import (
    Answer,
    AnswerRule,
    Endpoint,
    Fault,
    FaultKind,
    Format,
    Guide,
    GuideKind,
    Message,
    Needle,
    Request,
    Tool,
    ToolCall,
)
from evaluators.score import Score, Unscored, UnscoredReason
from evaluators.structured_output import StructuredOutput, repeats

Make = Callable[..., Request]
JUDGE = StructuredOutput()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}
WEATHER = Tool(
    name="weather",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
NOW = Tool(name="now", parameters={"type": "object", "properties": {}})
LOOP = '"a", ' * 200


def call(name: str = "weather", arguments: str = '{"city": "Oslo"}') -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def judged(request: Request, answer: Answer) -> Score:
    score = JUDGE.score(request, answer)
    assert isinstance(score, Score), score
    assert len(score.evidence) <= 200
    assert len(score.reason) <= 200
    assert score.passed == (score.label in ("ok", "no_call")) or request.accept_recoverable
    return score


def label(request: Request, answer: Answer) -> str:
    return judged(request, answer).label


@pytest.fixture
def json_request(make_request: Make) -> Request:
    return make_request(format=Format.JSON_SCHEMA, schema=SCHEMA)


@pytest.fixture
def tool_request(make_request: Make) -> Request:
    return make_request(tools=(WEATHER, NOW))


# --- text ---


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(text='{"name": "Anna", "n": 3}'), "ok"),
        (Answer(text=' \n{"name":"Anna"}\n'), "ok"),
        (Answer(text='{"name":"Anna"}', finish_reason="length"), "ok"),
        (Answer(text='{"name":"Anna","name":"Bob"}'), "ok"),
        (Answer(text='```json\n{"name":"Anna"}\n```'), "recoverable"),
        (Answer(text='Here you are:\n```\n{"name":"Anna"}\n```\nDone.'), "recoverable"),
        (Answer(text='The JSON is {"name":"Anna"}, as you asked.'), "recoverable"),
        (Answer(text='\ufeff{"name":"Anna"}'), "recoverable"),
        (Answer(text='```json\n{"name":5}\n```'), "not_json"),
        (Answer(text='```json\n{"name":}\n```'), "not_json"),
        (Answer(text="{'name': 'Anna'}"), "not_json"),
        (Answer(text='{"name": NaN}'), "not_json"),
        (Answer(text='{"name":"Anna"'), "not_json"),
        (Answer(text="Anna"), "not_json"),
        (Answer(text='{"n": 3}'), "schema_violation"),
        (Answer(text='{"name": 5}'), "schema_violation"),
        (Answer(text='{"name": "Anna", "x": 1}'), "schema_violation"),
        (Answer(text="[]"), "schema_violation"),
        (Answer(text='{"name": "An', finish_reason="length"), "truncated"),
        (Answer(text='{"name": "Anna", "n": 3' + "\n" * 1000, finish_reason="length"), "runaway"),
        (Answer(text='{"name": "Anna"}' + " \n" * 1000, finish_reason="length"), "runaway"),
        (Answer(text="[" + LOOP, finish_reason="length"), "runaway"),
        (Answer(text="[" * 2000, finish_reason="length"), "runaway"),
        (Answer(text=" " * 2000, finish_reason="length"), "runaway"),
        (Answer(text=""), "empty"),
        (Answer(text=" \n"), "empty"),
        (Answer(text="", reasoning="hm", finish_reason="length"), "truncated"),
        (Answer(text="I'm sorry, I can't help with that."), "refused"),
        (Answer(text="", refusal="I can't."), "refused"),
        (Answer(text='{"name":"Anna"}', finish_reason="content_filter"), "refused"),
        (Answer(text='{"name": "I\'m sorry, I can\'t help with that."}'), "ok"),
        (Answer(text="[" * 500 + "]" * 500), "unjudgeable"),
        (Answer(text='{"name": "' + "x" * 10_000_000 + '"}'), "unjudgeable"),
        (Answer(text='{"name": "Anna", "n": 1e9999}'), "unjudgeable"),
    ],
)
def test_each_text_has_one_class(answer: Answer, expected: str, json_request: Request) -> None:
    assert label(json_request, answer) == expected


def test_a_json_object_must_be_an_object(make_request: Make) -> None:
    request = make_request(format=Format.JSON_OBJECT)
    assert label(request, Answer(text='{"anything": 1}')) == "ok"
    assert label(request, Answer(text="[1]")) == "schema_violation"
    assert label(request, Answer(text="prose [1] prose")) == "not_json"


def test_where_a_rule_expects_json_any_value_will_do(make_request: Make) -> None:
    request = make_request(expects_json=True)
    for text in ("{}", "[1]", "3", '"x"', "null"):
        assert label(request, Answer(text=text)) == "ok"
    assert label(request, Answer(text="prose")) == "not_json"
    assert label(request, Answer(text="the answer is 3 [sic")) == "not_json"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(text='{"a":1}\n[2]\n"x"\n3'), "ok"),
        (Answer(text='\n{"a":1}\r\n\n{"a":2}\n'), "ok"),
        (Answer(text='{"a":1}'), "ok"),
        (Answer(text='{"a":\n1}'), "not_json"),
        (Answer(text='{"a":1}{"a":2}'), "not_json"),
        (Answer(text='{"a":1}\n{"a":'), "not_json"),
        (Answer(text='{"a":1}\n{"a":', finish_reason="length"), "truncated"),
        (Answer(text='Here:\n```jsonl\n{"a":1}\n{"a":2}\n```'), "recoverable"),
        (Answer(text='The lines:\n{"a":1}\n{"a":2}\nDone.'), "recoverable"),
        (Answer(text="One [1] and two [2]"), "not_json"),
        (Answer(text="1\n" * 20_000), "unjudgeable"),
        (Answer(text="1\n" * 3_000_000), "unjudgeable"),
        (Answer(text="\n"), "empty"),
    ],
)
def test_a_rule_may_expect_one_json_value_a_line(answer: Answer, expected: str, make_request: Make) -> None:
    request = AnswerRule(json_lines=True).applied_to(make_request())
    assert request.expects_json
    assert label(request, answer) == expected


def test_a_broken_line_is_named_and_a_format_of_the_request_goes_before_a_rule(make_request: Make) -> None:
    rule = AnswerRule(json_lines=True)
    broken = judged(rule.applied_to(make_request()), Answer(text='{"a":1}\n\n{"a":}'))
    assert broken.reason == "expected JSON, found: line 2: Expecting value at character 5"
    formatted = rule.applied_to(make_request(format=Format.JSON_OBJECT))
    assert label(formatted, Answer(text='{"a":\n1}')) == "ok"
    assert label(formatted, Answer(text='{"a":1}\n{"a":2}')) == "not_json"


# --- guides that are not JSON ---

YES_OR_NO = Guide(kind=GuideKind.CHOICE, choices=("yes", "no"))
ORDER = Guide(kind=GuideKind.REGEX, written=r"[A-Z]{2}-\d+|none")


@pytest.mark.parametrize(
    ("guide", "answer", "expected"),
    [
        (YES_OR_NO, Answer(text="yes"), "ok"),
        (YES_OR_NO, Answer(text="\n no "), "ok"),
        (YES_OR_NO, Answer(text="Yes"), "schema_violation"),
        (YES_OR_NO, Answer(text="yes."), "schema_violation"),
        (YES_OR_NO, Answer(text="y", finish_reason="length"), "truncated"),
        (YES_OR_NO, Answer(text="yes", finish_reason="length"), "ok"),
        (YES_OR_NO, Answer(text=" "), "empty"),
        (YES_OR_NO, Answer(refusal="no"), "refused"),
        (YES_OR_NO, Answer(text="yes" * 1_000_000), "unjudgeable"),
        (ORDER, Answer(text="AB-12"), "ok"),
        (ORDER, Answer(text="none"), "ok"),
        (ORDER, Answer(text="AB-12 or none"), "schema_violation"),
        (ORDER, Answer(text="order AB-12"), "schema_violation"),
        (ORDER, Answer(text="AB-", finish_reason="length"), "truncated"),
    ],
)
def test_a_guided_text_keeps_to_its_guide(
    guide: Guide, answer: Answer, expected: str, make_request: Make
) -> None:
    assert label(make_request(constrained=True, guide=guide), answer) == expected


@pytest.mark.parametrize(
    ("guide", "reason"),
    [
        (Guide(kind=GuideKind.GRAMMAR, written='root ::= "x"'), "what a grammar allows is not judged"),
        (Guide(kind=GuideKind.STRUCTURAL_TAG), "what a structural tag allows is not judged"),
        (Guide(kind=GuideKind.REGEX, written="(?=a)"), "look-around"),
        (Guide(kind=GuideKind.REGEX, written="a)(b"), "unexpected"),
        (Guide(kind=GuideKind.CHOICE), "offers nothing"),
    ],
)
@pytest.mark.parametrize("answer", [Answer(text="x"), Answer(), Answer(refusal="no")])
def test_a_guide_that_cannot_be_judged_is_unscored_whatever_the_answer(
    guide: Guide, reason: str, answer: Answer, make_request: Make
) -> None:
    request = make_request(constrained=True, guide=guide)
    found = JUDGE.score(request, answer)
    assert JUDGE.applies(request)
    assert isinstance(found, Unscored)
    assert found.reason is UnscoredReason.UNSUPPORTED_GUIDE
    assert reason in found.detail


def test_a_rule_may_accept_what_is_recoverable(json_request: Request) -> None:
    lenient = AnswerRule(accept_recoverable=True).applied_to(json_request)
    fenced = Answer(text='```json\n{"name":"Anna"}\n```')
    assert (judged(json_request, fenced).passed, judged(lenient, fenced).passed) == (False, True)
    assert not judged(lenient, Answer(text='```json\n{"name":5}\n```')).passed


def test_a_failure_names_expectation_and_finding_and_points_at_its_place(json_request: Request) -> None:
    broken = judged(json_request, Answer(text='{"name": 5}'))
    assert (broken.reason, broken.evidence) == ("at /name: 5 is not of type 'string'", "/name")
    prose = judged(json_request, Answer(text="Anna"))
    assert (prose.reason, prose.evidence) == ("expected JSON, found: Expecting value at character 0", "Anna")
    twice = judged(json_request, Answer(text='{"name":"a","name":"b"}'))
    assert (twice.passed, twice.reason) == (True, "names used twice: name")


def test_evidence_with_a_lone_surrogate_can_be_stored(json_request: Request) -> None:
    judged(json_request, Answer(text="\ud83d")).evidence.encode()
    judged(json_request, Answer(text='{"name": 5, "\\ud83d": 1}')).reason.encode()


# --- tool calls ---


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(tool_calls=(call(),)), "ok"),
        (Answer(tool_calls=(call(), call("now", "{}"))), "ok"),
        (Answer(tool_calls=(call("now", "{}"), call())), "ok"),
        (Answer(text="calling", tool_calls=(call(),)), "ok"),
        (Answer(tool_calls=(call("now", ""),)), "ok"),
        (Answer(tool_calls=(call(),), finish_reason="length"), "ok"),
        (Answer(text="It is sunny."), "no_call"),
        (Answer(text="It is sunny and", finish_reason="length"), "no_call"),
        (Answer(text="I'm sorry, I can't help with that."), "no_call"),
        (Answer(tool_calls=(call("wether"),)), "tool_unknown"),
        (Answer(tool_calls=(call(""),)), "tool_unknown"),
        (Answer(tool_calls=(call(), call("x"))), "tool_unknown"),
        (Answer(tool_calls=(call(arguments='{"city": "Oslo"'),)), "arguments_not_json"),
        (Answer(tool_calls=(call(arguments=""),)), "arguments_not_json"),
        (Answer(tool_calls=(call(arguments='{}{"city": "Oslo"}'),)), "arguments_not_json"),
        (Answer(tool_calls=(call(arguments='{"city": NaN}'),)), "arguments_not_json"),
        (Answer(tool_calls=(call(), call(arguments="{"))), "arguments_not_json"),
        (Answer(tool_calls=(call(arguments='{"city": 5}'),)), "arguments_schema_violation"),
        (Answer(tool_calls=(call(arguments="{}"),)), "arguments_schema_violation"),
        (Answer(tool_calls=(call(arguments='["Oslo"]'),)), "arguments_schema_violation"),
        (Answer(tool_calls=(call(arguments='"Oslo"'),)), "arguments_schema_violation"),
        (Answer(tool_calls=(call(arguments='{"city": "Os'),), finish_reason="length"), "truncated"),
        (Answer(tool_calls=(call(arguments='{"city": "' + "ha" * 500),), finish_reason="length"), "runaway"),
        (Answer(tool_calls=(call(arguments="[" * 300),)), "unjudgeable"),
        (Answer(text='<tool_call>\n{"name": "weather", "argum'), "arguments_not_json"),
        (Answer(text='[TOOL_CALLS] [{"name":'), "arguments_not_json"),
        (Answer(text="ok", finish_reason="tool_calls"), "tool_missing"),
        (Answer(text=""), "empty"),
        (Answer(text="", finish_reason="length"), "truncated"),
        (Answer(text=LOOP * 2, finish_reason="length"), "runaway"),
        (Answer(refusal="no", tool_calls=(call(),)), "refused"),
    ],
)
def test_each_call_has_one_class(answer: Answer, expected: str, tool_request: Request) -> None:
    assert label(tool_request, answer) == expected


@given(st.permutations([call(), call("now", "[]"), call("x"), call(arguments="{"), call(arguments="{}")]))
def test_calls_in_any_order_have_one_class_and_one_reason(calls: list[ToolCall]) -> None:
    request = Request(
        endpoint=Endpoint.CHAT_COMPLETIONS,
        model="m",
        messages=(Message(role="user", text="hi"),),
        tools=(WEATHER, NOW),
    )
    found = judged(request, Answer(tool_calls=tuple(calls)))
    assert (found.label, found.evidence) == ("tool_unknown", "x")
    known = judged(request, Answer(tool_calls=tuple(each for each in calls if each.name != "x")))
    assert (known.label, known.evidence) == ("arguments_not_json", "{")


def test_a_demanded_call_must_be_made(make_request: Make) -> None:
    required = make_request(tools=(WEATHER, NOW), tool_choice="required")
    named = make_request(tools=(WEATHER, NOW), tool_choice="now")
    text = Answer(text="It is sunny.")
    assert label(required, text) == "tool_missing"
    assert judged(named, text).reason == "expected a call of 'now', found text"
    assert label(required, Answer(text="It is", finish_reason="length")) == "truncated"
    assert label(required, Answer(tool_calls=(call(),))) == "ok"
    assert label(named, Answer(tool_calls=(call(),))) == "tool_missing"
    assert label(named, Answer(tool_calls=(call("now", "{}"), call("now", "{}")))) == "ok"
    assert label(required, Answer(tool_calls=(call(), call("now", "{}")))) == "ok"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (call(), "a call of 'weather' beside 'now'"),
        (call(arguments="{"), "a call of 'weather' beside 'now'"),
        (call("x"), "no tool is called 'x'; offered: now, weather"),
    ],
)
def test_beside_the_named_tool_no_other_may_be_called(
    other: ToolCall, reason: str, make_request: Make
) -> None:
    named = make_request(tools=(WEATHER, NOW), tool_choice="now")
    for calls in ((other, call("now", "{}")), (call("now", "{}"), other)):
        found = judged(named, Answer(tool_calls=calls))
        assert (found.label, found.passed, found.evidence) == ("tool_unknown", False, other.name)
        assert found.reason == reason


def test_a_tool_without_parameters_takes_any_object_and_a_custom_tool_any_text(make_request: Make) -> None:
    request = make_request(tools=(Tool(name="any"), Tool(name="sql", free_form=True)))
    assert label(request, Answer(tool_calls=(call("any", '{"x": [1]}'), call("sql", "select 1")))) == "ok"
    assert label(request, Answer(tool_calls=(call("any", "[]"),))) == "arguments_schema_violation"
    assert label(request, Answer(tool_calls=(call("any", ""),))) == "ok"


def test_with_tools_and_a_format_calls_are_judged_where_there_are_calls_else_the_text(
    make_request: Make,
) -> None:
    request = make_request(tools=(WEATHER,), format=Format.JSON_SCHEMA, schema=SCHEMA)
    assert label(request, Answer(tool_calls=(call(),))) == "ok"
    assert label(request, Answer(text='{"name": "Anna"}')) == "ok"
    assert label(request, Answer(text="prose")) == "not_json"


def test_calls_where_none_may_be_made_are_not_what_was_asked_for(make_request: Make) -> None:
    request = make_request(tools=(WEATHER,), tool_choice="none", format=Format.JSON_OBJECT)
    assert label(request, Answer(tool_calls=(call(),))) == "empty"


# --- eligibility, faults, and schemas that cannot be evaluated ---


def test_the_request_alone_decides_whether_it_is_judged(make_request: Make) -> None:
    needle = Needle(key="a", value="b", question="?", depth=0.5)
    assert JUDGE.applies(make_request(format=Format.JSON_OBJECT))
    assert JUDGE.applies(make_request(format=Format.JSON_SCHEMA, schema=SCHEMA))
    assert JUDGE.applies(make_request(expects_json=True))
    assert JUDGE.applies(make_request(tools=(WEATHER,)))
    assert not JUDGE.applies(make_request())
    assert JUDGE.applies(make_request(guide=YES_OR_NO))
    assert not JUDGE.applies(make_request(constrained=True))
    assert not JUDGE.applies(make_request(tools=(WEATHER,), tool_choice="none"))
    assert not JUDGE.applies(make_request(format=Format.JSON_OBJECT, needle=needle))


def test_a_fault_fails(json_request: Request) -> None:
    fault = JUDGE.score_fault(json_request, Fault(kind=FaultKind.CUT_OFF, detail="after 3 bytes"))
    assert (fault.label, fault.passed, fault.reason) == ("fault", False, "cut_off: after 3 bytes")
    assert JUDGE.score_fault(json_request, Fault(kind=FaultKind.SERVER_ERROR)).reason == "server_error"


@pytest.mark.parametrize(
    "answer", [Answer(text='{"a":1}'), Answer(text="prose"), Answer(text=""), Answer(refusal="no")]
)
def test_an_unsupported_schema_is_unscored_whatever_the_answer(answer: Answer, make_request: Make) -> None:
    look_ahead = {"pattern": "(?=a)"}
    for request in (
        make_request(format=Format.JSON_SCHEMA, schema=look_ahead),
        make_request(tools=(NOW, Tool(name="odd", parameters=look_ahead))),
    ):
        found = JUDGE.score(request, answer)
        assert isinstance(found, Unscored)
        assert found.reason is UnscoredReason.UNSUPPORTED_SCHEMA
        assert "look-around" in found.detail


def test_an_odd_tool_that_may_not_be_called_does_no_harm(make_request: Make) -> None:
    odd = Tool(name="odd", parameters={"pattern": "(?=a)"})
    request = make_request(tools=(odd,), tool_choice="none", format=Format.JSON_OBJECT)
    assert label(request, Answer(text="{}")) == "ok"


def test_a_bomb_of_a_schema_is_unscored(make_request: Make) -> None:
    parts: dict[str, Any] = {"a40": {"type": "string"}}
    for level in range(40):
        following = {"$ref": f"#/$defs/a{level + 1}"}
        parts[f"a{level}"] = {"anyOf": [{"allOf": [following, {"type": "null"}]}, following]}
    request = make_request(format=Format.JSON_SCHEMA, schema={"$defs": parts, "$ref": "#/$defs/a0"})
    found = JUDGE.score(request, Answer(text="3"))
    assert isinstance(found, Unscored)
    assert found.reason is UnscoredReason.UNSUPPORTED_SCHEMA


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("", False),
        ("a" * 511, False),
        ("a" * 512, True),
        (" \n" * 300, True),
        ("abc" * 200, True),
        ("".join(str(n) for n in range(500)), False),
        ("x" * 300 + "".join(chr(97 + n % 25) for n in range(600)), True),
    ],
)
def test_an_ending_that_says_one_thing_again_repeats(text: str, runs: bool) -> None:
    assert repeats(text) is runs


@settings(deadline=None)
@given(
    st.text(max_size=60),
    st.sampled_from([None, "stop", "length", "tool_calls", "content_filter"]),
    st.lists(st.tuples(st.sampled_from(["weather", "now", "x"]), st.text(max_size=20)), max_size=2),
)
def test_any_answer_to_any_request_has_a_class(
    text: str, finish: str | None, calls: list[tuple[str, str]]
) -> None:
    answer = Answer(text=text, finish_reason=finish, tool_calls=tuple(call(n, a) for n, a in calls))
    message = (Message(role="user", text="hi"),)
    for fields in (
        {"format": Format.JSON_SCHEMA, "schema": SCHEMA},
        {"format": Format.JSON_OBJECT},
        {"tools": (WEATHER, NOW)},
        {"tools": (WEATHER, NOW), "tool_choice": "now"},
    ):
        request = Request(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", messages=message, **fields)  # type: ignore[arg-type]
        judged(request, answer)


@given(st.dictionaries(st.sampled_from(["name", "n", "x"]), st.none() | st.integers() | st.text(max_size=5)))
def test_the_class_of_a_json_object_is_what_the_schema_says(value: dict[str, Any]) -> None:
    request = Request(
        endpoint=Endpoint.CHAT_COMPLETIONS,
        model="m",
        messages=(Message(role="user", text="hi"),),
        format=Format.JSON_SCHEMA,
        schema=SCHEMA,
    )
    fits = isinstance(value.get("name"), str) and "x" not in value and isinstance(value.get("n", 0), int)
    assert label(request, Answer(text=json.dumps(value))) == ("ok" if fits else "schema_violation")
