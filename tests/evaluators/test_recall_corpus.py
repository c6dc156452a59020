"""Mined questions over a corpus of 1k to 64k tokens: answerable by reading, and by nothing else."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import pytest

from evaluators.exchange import Answer, Needle, Request
from evaluators.long_context_recall import LongContextRecall
from evaluators.needles import mine
from tests.evaluators.contexts import LANGUAGES, SHAPES, Context, context, corpus
from tests.evaluators.reader import read, text_of

RECALL = LongContextRecall()
ASKED = 8
"""Questions of one context."""
MOST = 400
"""As many as are looked at."""
Mined = list[tuple[Context, tuple[Needle, ...]]]


def needles(request: Request, *, seed: str = "a", limit: int = ASKED) -> tuple[Needle, ...]:
    return mine(request, seed=seed, limit=limit, min_chars=0)


@pytest.fixture(scope="module")
def contexts() -> list[Context]:
    return corpus()


@pytest.fixture(scope="module")
def mined(contexts: list[Context]) -> Mined:
    return [(each, needles(each.request)) for each in contexts]


@pytest.fixture(scope="module")
def all_mined(contexts: list[Context]) -> Mined:
    return [(each, needles(each.request, limit=MOST)) for each in contexts]


def passes(context: Context, needle: Needle, answer: str) -> bool:
    return RECALL.score(replace(context.request, needle=needle), Answer(text=answer)).passed


def test_a_reader_of_the_text_answers_every_question(mined: Mined) -> None:
    wrong = [
        (each.shape, each.language, needle.question, needle.value, answer)
        for each, found in mined
        for needle in found
        if not passes(each, needle, answer := read(text_of(each.request), needle.question))
    ]
    assert wrong == []
    assert sum(len(found) for _, found in mined) > 800


def test_a_reader_of_another_context_answers_none(mined: Mined) -> None:
    """Of the same kind and length, in which things of the same names have other values."""
    others = {
        (shape, language): text_of(context(shape, language, 16_000, 99).request)
        for shape in SHAPES
        for language in LANGUAGES
    }
    answers = [
        (passes(each, needle, answer), answer)
        for each, found in mined
        for needle in found
        for answer in (read(others[each.shape, each.language], needle.question),)
    ]
    assert sum(right for right, _ in answers) == 0
    assert (
        sum(not answer.startswith("The text") for _, answer in answers) > 50
    )  # it found the name, and misled


def test_every_value_is_one_that_the_context_says_once_and_no_trap(all_mined: Mined) -> None:
    asked = [(each, needle) for each, found in all_mined for needle in found]
    assert [(needle.question, needle.value) for each, needle in asked if needle.value in each.traps] == []
    assert [needle for each, needle in asked if needle.value not in each.facts.values()] == []


def test_neither_its_question_nor_the_closing_one_gives_an_answer_away(mined: Mined) -> None:
    asked = [(each, needle) for each, found in mined for needle in found]
    assert [needle for each, needle in asked if passes(each, needle, needle.question)] == []
    assert [needle for each, needle in asked if passes(each, needle, each.closing)] == []


def test_most_facts_of_a_context_can_be_asked_for(all_mined: Mined) -> None:
    facts, asked = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each, found in all_mined:
        facts[each.shape, each.language] += min(len(each.facts), MOST)
        asked[each.shape, each.language] += len(found)
    assert len(facts) == len(SHAPES) * len(LANGUAGES)
    assert {kind: asked[kind] / facts[kind] for kind in facts if asked[kind] < 0.85 * facts[kind]} == {}


def test_every_length_depth_language_and_shape_has_its_questions(mined: Mined) -> None:
    strata = Counter(
        (each.tokens, each.language, int(needle.depth * 4)) for each, found in mined for needle in found
    )
    assert len(strata) == 4 * 2 * 4
    assert min(strata.values()) >= 8
    shapes = Counter((each.shape, each.language) for each, found in mined for _ in found)
    assert min(shapes[shape, language] for shape in SHAPES for language in LANGUAGES) >= 60


def test_one_user_message_of_context_and_question_yields_as_many_as_may_be_asked() -> None:
    for shape in ("rag", "rag_lines"):
        for language in LANGUAGES:
            assert len(needles(context(shape, language, 4_000, 5).request)) == ASKED


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_context_sixteen_times_as_long_takes_about_sixteen_times_the_work(language: str) -> None:
    def work(tokens: int) -> float:
        request = context("rag", language, tokens, 3).request
        took = []
        for _ in range(3):
            began = time.process_time()
            needles(request)
            took.append(time.process_time() - began)
        return min(took)

    assert work(64_000) < 16 * 3 * work(4_000)
