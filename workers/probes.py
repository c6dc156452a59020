"""Recall questions with known answers, mined from the captured context itself (design section 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.exchange import Json, Needle, Request
from evaluators.needles import mine
from evaluators.planted import Kind, planting
from service.strata import language_of
from service.wire import NotARequest, plant, probe_request

RECALL = "long_context_recall"
"""The evaluator that judges probes, and nothing else; the others judge the request itself."""
_QUARTERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """How a model's recall is probed."""

    per_capture: int = 4
    """Most questions per captured request; 0 = none."""
    planted: int = 0
    """Most facts of our own written into a context, each for a quarter of its depth that has none."""
    min_context_chars: int = 2000
    """Shorter contexts are not long and get no probes."""
    max_tokens: int = 128
    extra_body: Mapping[str, Json] = field(default_factory=dict)
    """Added to a probe's body, such as what turns thinking off."""


def questions(request: Request, *, seed: str, probing: Probing) -> tuple[Request, ...]:
    """The probes of one captured request; the same for the same seed, empty when nothing can be asked.

    All of them go to every arm alike and form one unit: they share a context, so they are not independent.
    """
    if not probing.per_capture:
        return ()
    needles = mine(request, seed=seed, limit=probing.per_capture, min_chars=probing.min_context_chars)
    try:
        return tuple(
            _ask(asked, needle, probing)
            for asked, needle in (
                *((request, needle) for needle in needles),
                *_planted(request, needles, seed=seed, probing=probing),
            )
        )
    except NotARequest:
        # A prompt of token ids has no place for a question.
        return ()


def _ask(request: Request, needle: Needle, probing: Probing) -> Request:
    return probe_request(request, needle, max_tokens=probing.max_tokens, extra_body=probing.extra_body)


def _planted(
    request: Request, needles: Sequence[Needle], *, seed: str, probing: Probing
) -> Iterator[tuple[Request, Needle]]:
    """The request with a fact written into it, once for each quarter of its depth without one; and the fact.

    The kinds take turns by the seed. What follows a planted sentence is not in the prefix cache.
    """
    text = "\n\n".join(message.text for message in request.messages)
    if not probing.planted or len(text) < probing.min_context_chars:
        return
    empty = [
        quarter for quarter in range(_QUARTERS) if quarter not in {int(n.depth * _QUARTERS) for n in needles}
    ]
    chinese = language_of([text]) == "zh"
    kinds = list(Kind)
    first = sum(seed.encode())
    for turn, quarter in enumerate(empty[: probing.planted]):
        depth = (quarter + 0.5) / _QUARTERS
        kind = kinds[(first + turn) % len(kinds)]
        planted = planting(text, seed=seed, kind=kind, depth=depth, chinese=chinese)
        if planted is None:
            return
        try:
            yield plant(request, planted.sentences), planted.needle
        except NotARequest:
            # nothing but a question, or nothing but answers and what tools said
            return
