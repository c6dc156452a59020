"""Planted needles: of three kinds, in two languages, in words that the context does not have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluators.exchange import Answer, Endpoint, Request
from evaluators.long_context_recall import LongContextRecall
from evaluators.planted import _OWNERS, Kind, planting


def right(request: Request, answer: str) -> bool:
    return LongContextRecall().score(request, Answer(text=answer)).passed


@pytest.mark.parametrize("chinese", [False, True])
@pytest.mark.parametrize("kind", Kind)
def test_only_an_answer_with_all_that_was_asked_for_is_right(kind: Kind, chinese: bool) -> None:
    found = planting("A text.", seed="a", kind=kind, depth=0.3, chinese=chinese)
    assert found is not None
    assert found == planting("A text.", seed="a", kind=kind, depth=0.3, chinese=chinese)
    needle = found.needle
    request = replace(REQUEST, needle=needle)
    assert len(found.sentences) == {Kind.SINGLE: 1, Kind.MULTI_KEY: 4, Kind.MULTI_VALUE: 3}[kind]
    assert found.sentences[0][0] == needle.depth == 0.3
    assert needle.value in found.sentences[0][1]
    assert needle.key in found.sentences[0][1]
    assert right(request, " ".join((needle.value, *needle.others)))
    assert not right(request, needle.question)
    if kind is Kind.MULTI_KEY:
        assert not any(right(request, said) for _, said in found.sentences[1:])
    if kind is Kind.MULTI_VALUE:
        assert not right(request, needle.value)
        assert len({needle.value, *needle.others}) == 3


def test_what_the_context_names_already_is_not_named_again() -> None:
    taken = [owner for owner in _OWNERS if "amber" not in owner]
    for seed in "abcdef":
        found = planting(" ".join(taken).upper(), seed=seed, kind=Kind.SINGLE, depth=0.5, chinese=False)
        assert found is not None
        assert "amber" in found.needle.key
    assert planting(" ".join(_OWNERS), seed="a", kind=Kind.SINGLE, depth=0.5, chinese=False) is None


REQUEST = Request(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", messages=())
