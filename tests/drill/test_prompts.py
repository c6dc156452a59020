"""What a drill asks: distinct, long enough, and told apart by the relay."""

from __future__ import annotations

import json
import math
from itertools import islice

import pytest

from evaluators.needles import mine
from service.demo.prompt import Kind, Prompt
from service.drill.defects import ASKED_BY, Defect
from service.drill.plan import MOST_PAIRS, Bill, DrillPlan, bill
from service.drill.prompts import asks_again, prompts_of
from service.settings.values import ProbePlan
from service.wire import parse_request
from service.wire.probe import probe_request


def some(kind: Kind, count: int, *, chars: int = 2000, facts: int = 4, seed: int = 1) -> list[Prompt]:
    return list(islice(prompts_of(kind, seed=seed, min_context_chars=chars, facts=facts), count))


@pytest.mark.parametrize("kind", Kind)
def test_no_request_comes_twice_and_a_seed_repeats_them(kind: Kind) -> None:
    asked = some(kind, MOST_PAIRS)
    assert len(asked) == MOST_PAIRS
    assert len({prompt.turns for prompt in asked}) == MOST_PAIRS
    assert asked == some(kind, MOST_PAIRS)
    assert asked != some(kind, MOST_PAIRS, seed=2)
    assert {prompt.stream for prompt in asked} == {True, False}


@pytest.mark.parametrize("chars", [1, 200, 2000, 20_000])
def test_notes_are_as_long_as_the_probes_want_and_hold_facts(chars: int) -> None:
    for prompt in some(Kind.NOTES, 20, chars=chars):
        request = parse_request("/v1/chat/completions", json.dumps(prompt.body("m")).encode())
        needles = mine(request, seed="a", limit=4, min_chars=chars)
        assert len(needles) >= 3, "facts that can be asked for"
        assert not asks_again(request.messages[-1].text)
        probe = probe_request(request, needles[0], max_tokens=8, extra_body={})
        assert asks_again(probe.messages[-1].text)


def test_questions_and_extractions_are_never_taken_for_recall() -> None:
    for kind in (Kind.QUESTION, Kind.EXTRACTION):
        assert not any(asks_again(prompt.turns[-1].content) for prompt in some(kind, MOST_PAIRS))


def test_a_bill_is_two_answers_to_every_question() -> None:
    probe = ProbePlan(per_capture=3, min_context_chars=200, max_tokens=100)
    one = DrillPlan(defects=(Defect.JSON,), pairs=10)
    assert bill(one, probe).requests == 20
    all_of_them = bill(DrillPlan(pairs=10), probe)
    assert all_of_them.requests == 20 + 20 * (1 + 3) + 20
    assert all_of_them.tokens > all_of_them.requests * 100
    assert bill(DrillPlan(pairs=20), probe) == Bill(
        requests=2 * all_of_them.requests, tokens=2 * all_of_them.tokens
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"pairs": 0},
        {"pairs": MOST_PAIRS + 1},
        {"share": 0.0},
        {"share": 1.1},
        {"share": math.nan},
        {"seconds": 0.0},
        {"seconds": -5.0},
        {"seconds": math.nan},
        {"seconds": math.inf},
        {"defects": ()},
    ],
)
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(
        ValueError, match=r"pairs must be|share must be|longest time must be|without a defect"
    ):
        DrillPlan(**wrong)  # type: ignore[arg-type]


def test_every_defect_has_a_kind_of_its_own() -> None:
    assert len(set(ASKED_BY.values())) == len(Defect)
