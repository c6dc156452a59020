"""Whether the two answers of a pair hold the same fields and values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluators.exchange import (
    Answer,
    AnswerRule,
    Fault,
    FaultKind,
    Format,
    Guide,
    GuideKind,
    Needle,
    Outcome,
    Request,
    Tool,
    ToolCall,
)
from evaluators.field_agreement import MOST_REASON, FieldAgreement
from evaluators.score import NotApplicable, PairScore, TimeLimit, Unscored, UnscoredReason, score_pair

Make = Callable[..., Request]
JUDGE = FieldAgreement()
TOOLS = (Tool(name="weather"), Tool(name="now"))


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def compared(request: Request, baseline: Outcome, candidate: Outcome) -> PairScore:
    found = score_pair(JUDGE, request, baseline, candidate)
    assert isinstance(found, PairScore), found
    assert found.baseline.passed
    assert len(found.candidate.reason) <= MOST_REASON
    return found


def of_texts(request: Request, baseline: str, candidate: str) -> str:
    return compared(request, Answer(text=baseline), Answer(text=candidate)).candidate.label


def test_it_applies_where_json_or_calls_are_asked_for(make_request: Make) -> None:
    assert JUDGE.applies(make_request(format=Format.JSON_OBJECT))
    assert JUDGE.applies(make_request(expects_json=True))
    assert JUDGE.applies(make_request(tools=TOOLS))
    assert not JUDGE.applies(make_request())
    assert not JUDGE.applies(make_request(tools=TOOLS, tool_choice="none"))
    assert not JUDGE.applies(make_request(guide=Guide(kind=GuideKind.CHOICE, choices=("a",))))
    needle = Needle(key="a", value="b", question="?", depth=0.5)
    assert not JUDGE.applies(make_request(format=Format.JSON_OBJECT, needle=needle))


@pytest.mark.parametrize(
    ("baseline", "candidate", "label"),
    [
        ('{"a": 1, "b": "x"}', '{"b":"x","a":1.0}', "agrees"),
        ('{"a": 1}', '{"a": 2}', "values_differ"),
        ('{"a": 1}', '{"a": "1"}', "types_differ"),
        ('{"a": 1, "b": 2}', '{"a": "1", "b": 3}', "types_differ"),
        ('{"a": 1}', '{"a": 1, "b": 2}', "fields_differ"),
        ('{"a": 1, "b": 2}', '{"a": "1"}', "fields_differ"),
        ('{"a": 1}', "prose", "unreadable"),
        ("prose", '{"a": 1}', "unreadable"),
        ('{"a": 1}', "[" * 1000, "unreadable"),
        ("[" + "1," * 60_000 + "1]", "[" + "1," * 60_000 + "1]", "unreadable"),
    ],
)
def test_the_gravest_difference_is_the_class(
    baseline: str, candidate: str, label: str, make_request: Make
) -> None:
    assert of_texts(make_request(format=Format.JSON_OBJECT), baseline, candidate) == label


def test_the_reason_counts_fields_and_names_pointers_by_kind(make_request: Make) -> None:
    request = make_request(format=Format.JSON_OBJECT)
    found = compared(
        request,
        Answer(text='{"total": 1, "items": [{"n": "x"}], "id": 7}'),
        Answer(text='{"total": 2, "items": [{"n": 3}], "id": 7, "more": null}'),
    ).candidate
    assert found.reason == (
        "1 of 4 fields agree; only in one answer: /more; of another type: /items/0/n; "
        "of another value: /total"
    )
    assert found.evidence == "/more"
    whole = compared(request, Answer(text="[1]"), Answer(text="{}")).candidate
    assert whole.reason == "0 of 1 fields agree; of another type: /"


def test_some_twenty_pointers_fit_into_a_reason(make_request: Make) -> None:
    far = "[" + ",".join(map(str, range(200))) + "]"
    near = "[" + ",".join(map(str, range(1, 201))) + "]"
    request = make_request(format=Format.JSON_OBJECT)
    found = compared(request, Answer(text=far), Answer(text=near)).candidate
    assert found.reason.startswith("0 of 200 fields agree; of another value: /0, /1, /10, ")
    assert found.reason.count("/") > 20


def test_json_lines_are_compared_line_by_line(make_request: Make) -> None:
    request = AnswerRule(json_lines=True).applied_to(make_request())
    assert of_texts(request, '{"a":1}\n{"a":2}', '{"a":1}\n\n{"a":2}\n') == "agrees"
    found = compared(request, Answer(text='{"a":1}\n{"a":2}'), Answer(text='{"a":1}\n{"a":3}'))
    assert found.candidate.evidence == "/1/a"


def test_calls_are_compared_in_any_order_by_what_their_arguments_mean(make_request: Make) -> None:
    request = make_request(tools=TOOLS, format=Format.JSON_OBJECT)
    one = Answer(tool_calls=(call("weather", '{"city": "Oslo", "n": 1}'), call("now", "")))
    other = Answer(tool_calls=(call("now", "{}"), call("weather", '{"n":1.0,"city":"Oslo"}')))
    assert compared(request, one, other).candidate.label == "agrees"
    far = Answer(tool_calls=(call("now", "{}"), call("weather", '{"n":1,"city":"Bergen"}')))
    found = compared(request, one, far).candidate
    assert (found.label, found.evidence) == ("values_differ", "/1/arguments/city")
    broken = Answer(tool_calls=(call("now", "{}"), call("weather", "{")))
    assert compared(request, one, broken).candidate.label == "types_differ"
    assert compared(request, one, Answer(text="{}")).candidate.label == "fields_differ"


def test_two_answers_that_rightly_call_nothing_agree(make_request: Make) -> None:
    request = make_request(tools=TOOLS)
    assert of_texts(request, "It is sunny.", "Sunny.") == "agrees"


def test_without_two_answers_there_is_nothing_to_compare(make_request: Make) -> None:
    request = make_request(format=Format.JSON_OBJECT)
    answer = Answer(text="{}")
    for pair in ((answer, Fault(kind=FaultKind.CUT_OFF)), (Fault(kind=FaultKind.SERVER_ERROR), answer)):
        assert isinstance(score_pair(JUDGE, request, *pair), NotApplicable)
    shadow = score_pair(JUDGE, request, answer, Fault(kind=FaultKind.TIMEOUT))
    assert isinstance(shadow, Unscored)
    assert shadow.reason is UnscoredReason.SHADOW
    alone = JUDGE.score(request, answer)
    assert alone.why == "it compares two answers with each other"


def test_a_comparison_has_the_caller_s_time_limit(make_request: Make) -> None:
    class Rings:
        def __enter__(self) -> None:
            raise TimeLimit

        def __exit__(self, *_: object) -> None:
            raise AssertionError

    found = score_pair(
        JUDGE, make_request(format=Format.JSON_OBJECT), Answer(text="{}"), Answer(text="{}"), limit=Rings
    )
    assert isinstance(found, Unscored)
    assert found.reason is UnscoredReason.TIME_LIMIT
