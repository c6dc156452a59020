"""The demo's traffic: independent conversations, seeded, small enough, and askable."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import jsonschema
import pytest

from evaluators.needles import mine
from service.demo.configuration import MIN_CONTEXT_CHARS
from service.demo.plan import FULL, QUICK, DemoPlan
from service.demo.prompt import Kind, Prompt
from service.demo.workload import MOST_QUESTIONS, Load, workload
from service.wire import message_chain, parse_request

PLANS = pytest.mark.parametrize("plan", [QUICK, FULL], ids=["quick", "full"])
PATH = "/v1/chat/completions"


def wire(prompt: Prompt) -> bytes:
    return json.dumps(prompt.body("smollm2")).encode()


@PLANS
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_message_list_is_the_beginning_of_another(plan: DemoPlan, seed: int) -> None:
    chains = [message_chain(parse_request(PATH, wire(prompt))) for prompt in workload(plan.load, seed)]
    complete = [chain[-1] for chain in chains]
    assert len(set(complete)) == len(chains)
    begun = {link for chain in chains for link in chain[:-1]}
    assert begun.isdisjoint(complete)


@PLANS
def test_the_same_seed_asks_the_same_and_another_asks_otherwise(plan: DemoPlan) -> None:
    assert workload(plan.load, 7) == workload(plan.load, 7)
    assert workload(plan.load, 7) != workload(plan.load, 8)


@PLANS
def test_wherever_a_run_stops_every_kind_has_had_its_share(plan: DemoPlan) -> None:
    prompts = workload(plan.load, 1)
    assert len(prompts) == plan.load.total
    shares = Counter(prompt.kind for prompt in prompts)
    for end in range(1, len(prompts)):
        counted = Counter(prompt.kind for prompt in prompts[:end])
        for kind in Kind:
            assert abs(counted[kind] - shares[kind] * end / len(prompts)) <= 1


@PLANS
def test_every_kind_is_asked_both_streamed_and_not(plan: DemoPlan) -> None:
    asked = {(prompt.kind, prompt.stream) for prompt in workload(plan.load, 1)}
    assert asked == {(kind, stream) for kind in Kind for stream in (False, True)}


@pytest.mark.parametrize("seed", range(5))
def test_a_quick_run_has_no_prompt_beyond_six_hundred_tokens(seed: int) -> None:
    # English takes about four characters a token and digits one each: three a token is on the safe side.
    longest = max(sum(len(turn.content) for turn in prompt.turns) for prompt in workload(QUICK.load, seed))
    assert longest / 3 < 600


@PLANS
@pytest.mark.parametrize("seed", range(3))
def test_every_text_yields_as_many_recall_questions_as_it_states_facts(plan: DemoPlan, seed: int) -> None:
    for prompt in workload(plan.load, seed):
        request = parse_request(PATH, wire(prompt))
        needles = mine(request, seed="capture", limit=64, min_chars=MIN_CONTEXT_CHARS)
        assert len(needles) == (plan.load.facts if prompt.kind is Kind.NOTES else 0)
        assert plan.probes <= plan.load.facts


def test_an_extraction_shows_two_examples_that_its_schema_accepts() -> None:
    extractions = [prompt for prompt in workload(QUICK.load, 1) if prompt.kind is Kind.EXTRACTION]
    for prompt in extractions:
        assert prompt.schema is not None
        shown = [turn.content for turn in prompt.turns if turn.role == "assistant"]
        assert len(shown) == 2
        for example in shown:
            jsonschema.validate(json.loads(example), prompt.schema)
    assert len({json.dumps(prompt.schema) for prompt in extractions}) > 3


def test_an_extraction_tells_the_server_its_schema() -> None:
    prompt = next(each for each in workload(QUICK.load, 1) if each.kind is Kind.EXTRACTION)
    assert parse_request(PATH, wire(prompt)).schema == prompt.schema


def test_a_streamed_prompt_asks_for_usage_and_nothing_else_changes() -> None:
    prompt = workload(QUICK.load, 1)[0]
    streamed, whole = replace(prompt, stream=True).body("m"), replace(prompt, stream=False).body("m")
    assert streamed.pop("stream_options") == {"include_usage": True}
    assert streamed | {"stream": False} == whole


def test_more_questions_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match=f"there are {MOST_QUESTIONS} questions, not {MOST_QUESTIONS + 1}"):
        Load(extractions=1, notes=1, questions=MOST_QUESTIONS + 1, sentences=5, facts=2)


def test_more_facts_than_groups_is_an_error() -> None:
    with pytest.raises(ValueError, match="9 facts do not fit"):
        workload(Load(extractions=0, notes=1, questions=0, sentences=20, facts=9), 1)
