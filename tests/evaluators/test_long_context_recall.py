"""Recall: the value as a token of its own, in whatever form, and no refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Needle, Request
from evaluators.long_context_recall import LongContextRecall

Make = Callable[..., Request]
RECALL = LongContextRecall()


def probe(make_request: Make, value: str, key: str = "access code of the blue room") -> Request:
    return make_request(needle=Needle(key=key, value=value, question=f"What is the {key}?", depth=0.5))


@pytest.mark.parametrize(
    ("value", "text", "label"),
    [
        ("4821", "The access code of the blue room is 4821.", "hit"),
        ("4821", "4821", "hit"),
        ("4821", "**4821**", "hit"),
        ("4821", "密码是4821。", "hit"),
        ("4821", "48213", "miss"),
        ("4821", "It is 1482, or 4821.5", "miss"),
        ("42", "1423", "miss"),
        ("1,234.50", "It is $1234.5", "hit"),
        ("45000", "45,000 dollars", "hit"),
        ("INV-20391", "inv-20391", "hit"),
        ("INV-20391", "INV-20391-B", "miss"),
        ("2024-03-05", "on March 5th, 2024", "hit"),
        ("2024年5月6日", "2024-05-06", "hit"),
        ("2024-03-05", "03/05/2024", "miss"),
        ("2024-03-25", "03/25/2024", "hit"),
        ("2024-03-25", "25.3.2024", "hit"),
        ("1234.5", "1.234,50 €", "hit"),
        ("4821", "４８２１", "hit"),
        ("2024-05-06", "二〇二四年五月六日", "hit"),
        ("4821", "四千八百二十一", "hit"),
        ("4821", "What is the access code of the blue room?", "miss"),
        ("4821", "I'm sorry, I can't share the access code of the blue room.", "refused"),
        ("4821", "I'm sorry, but I cannot provide the code 4821.", "refused"),
        ("4821", "抱歉，我无法提供蓝色房间的门禁密码。", "refused"),
        ("4821", "The text does not say.", "miss"),
        ("4821", "", "empty"),
    ],
)
def test_an_answer_is_a_hit_or_says_why_not(value: str, text: str, label: str, make_request: Make) -> None:
    score = RECALL.score(probe(make_request, value), Answer(text=text, finish_reason="stop"))
    assert (score.label, score.passed) == (label, label == "hit")
    assert score.passed or repr(value) in score.reason


def test_an_echo_of_the_question_is_a_miss_whatever_stands_in_it(make_request: Make) -> None:
    asked = probe(make_request, "4821", key="invoice number of order 4821")
    question = "What is the invoice number of order 4821?"
    assert RECALL.score(asked, Answer(text=f"You ask: {question}")).label == "miss"
    assert RECALL.score(asked, Answer(text=f"{question} It is 4821.")).label == "hit"


def test_thinking_is_not_the_answer(make_request: Make) -> None:
    score = RECALL.score(probe(make_request, "4821"), Answer(text="I do not know.", reasoning="it says 4821"))
    assert score.label == "miss"


def test_an_answer_that_ran_out_of_tokens_is_told_apart(make_request: Make) -> None:
    request = probe(make_request, "4821")
    thinking = Answer(reasoning="let me see", finish_reason="length")
    assert RECALL.score(request, thinking).label == "truncated"
    assert RECALL.score(request, Answer(text="The code", finish_reason="length")).label == "truncated"
    assert RECALL.score(request, Answer(text="The code is 4821 and", finish_reason="length")).label == "hit"


def test_a_refusal_field_is_a_refusal(make_request: Make) -> None:
    assert RECALL.score(probe(make_request, "4821"), Answer(refusal="no", text="4821")).label == "refused"


def test_it_applies_to_probes_alone(make_request: Make) -> None:
    assert RECALL.applies(probe(make_request, "4821"))
    assert not RECALL.applies(make_request())
    with pytest.raises(ValueError, match="needle"):
        RECALL.score(make_request(), Answer(text="4821"))


def test_a_fault_recalls_nothing(make_request: Make) -> None:
    request = probe(make_request, "4821")
    told = RECALL.score_fault(request, Fault(kind=FaultKind.SERVER_ERROR, status=500, detail="boom"))
    assert (told.label, told.passed, told.reason) == ("fault", False, "server_error: boom")
    assert RECALL.score_fault(request, Fault(kind=FaultKind.CUT_OFF)).reason == "cut_off"


def test_an_answer_of_megabytes_is_read_by_its_beginning(make_request: Make) -> None:
    late = Answer(text="x " * 1_000_000 + "4821")
    assert RECALL.score(probe(make_request, "4821"), late).label == "miss"
