"""Whether a candidate repeats the facts of the context that the baseline used."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Needle, Request, ToolCall
from evaluators.passive_recall import MIN_CHARS, PassiveRecall
from evaluators.score import NotApplicable, PairScore, score_pair

Make = Callable[..., Request]
JUDGE = PassiveRecall()
PROSE = "The river near the old market was quiet that week. " * 40
FACTS = (
    "The invoice number is INV-20391. The total is 1,234.50. It is due on March 25, 2024. The year was 1984."
)
ASKED = f"{PROSE}\n\n{FACTS}\n\nOrder 77123 is mine. What do I owe?"


def compared(request: Request, baseline: str, candidate: str) -> PairScore:
    found = score_pair(JUDGE, request, Answer(text=baseline), Answer(text=candidate))
    assert isinstance(found, PairScore), found
    assert (found.baseline.passed, found.baseline.label) == (True, "reference")
    return found


@pytest.mark.parametrize(
    ("baseline", "candidate", "label"),
    [
        ("You owe 1,234.50 for INV-20391.", "INV-20391: 1234.5, please.", "repeats"),
        ("You owe 1,234.50 by March 25, 2024.", "截止日期是2024年3月25日，金额1234.50。", "repeats"),
        ("You owe 1,234.50 for INV-20391.", "You owe 1,243.50 for INV-20391.", "omits"),
        ("You owe 1,234.50 for INV-20391.", "A good deal.", "omits"),
        ("You owe 1,234.50.", "You owe 1,234.50, and 99,812.30 of what nobody asked.", "repeats"),
        ("A good deal, since 1984.", "Much.", "no_facts"),
        ("You owe 55,512.70.", "You owe nothing.", "no_facts"),  # not in the context
        ("For order 77123, much.", "Much.", "no_facts"),  # in the closing question
    ],
)
def test_facts_are_values_of_the_reference_that_the_context_gave(
    baseline: str, candidate: str, label: str, make_request: Make
) -> None:
    found = compared(make_request(ASKED), baseline, candidate)
    assert (found.candidate.label, found.candidate.passed) == (label, label != "omits")


@pytest.mark.parametrize(
    ("baseline", "candidate", "label"),
    [
        ("The balance is -4,327.00.", "It stands at -4327.", "repeats"),
        ("The balance is -4,327.00.", "It stands at \u2212$4,327.00.", "repeats"),
        ("The balance is -4,327.00.", "It stands at 4,327.00.", "omits"),
        ("The balance is 4,327.00.", "Much.", "no_facts"),  # which the context did not say
        ("- 88,123\n- 77,456", "88,123 and 77,456", "repeats"),  # a list
        ("Pages 88,123-99,456", "Pages 88,123-99,456", "repeats"),  # a range
    ],
)
def test_a_minus_belongs_to_its_number(baseline: str, candidate: str, label: str, make_request: Make) -> None:
    facts = "The balance is -4,327.00 today, with 88,123 and 77,456 to come, on pages 88,123-99,456."
    found = compared(make_request(f"{PROSE}\n\n{facts}\n\nWhat do I owe?"), baseline, candidate)
    assert found.candidate.label == label


def test_the_reason_counts_them_and_names_what_is_missing(make_request: Make) -> None:
    found = compared(make_request(ASKED), "1,234.50 for INV-20391 by March 25, 2024", "1234.5 in spring")
    assert found.candidate.reason == "repeats 1 of 3 facts; not 2024-03-25, inv-20391"
    assert found.candidate.evidence == "1234.5 in spring"


def test_a_baseline_agrees_with_itself(make_request: Make) -> None:
    assert compared(make_request(ASKED), FACTS, FACTS).candidate.label == "repeats"


def test_what_is_written_into_calls_is_said(make_request: Make) -> None:
    calls = (ToolCall(name="pay", arguments='{"invoice": "INV-20391", "amount": 1234.50}'),)
    found = score_pair(JUDGE, make_request(ASKED), Answer(tool_calls=calls), Answer(text="INV-20391"))
    assert isinstance(found, PairScore)
    assert found.candidate.reason == "repeats 1 of 2 facts; not 1234.5"


def test_it_applies_to_long_prompts_by_the_request_alone(make_request: Make) -> None:
    assert JUDGE.applies(make_request("x" * MIN_CHARS))
    assert not JUDGE.applies(make_request("x" * (MIN_CHARS - 1)))
    needle = Needle(key="a", value="b", question="?", depth=0.5)
    assert not JUDGE.applies(make_request("x" * MIN_CHARS, needle=needle))


def test_a_broken_generation_and_one_answer_alone_say_nothing(make_request: Make) -> None:
    request = make_request(ASKED)
    broken = Fault(kind=FaultKind.CUT_OFF)
    assert isinstance(score_pair(JUDGE, request, Answer(text=FACTS), broken), NotApplicable)
    assert isinstance(JUDGE.score(request, Answer(text=FACTS)), NotApplicable)
