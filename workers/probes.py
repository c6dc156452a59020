"""Recall questions with known answers, mined from the captured context itself (design section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluators.exchange import Json, Request
from evaluators.needles import mine
from service.wire import NotARequest, probe_request

RECALL = "long_context_recall"
"""The evaluator that judges probes, and nothing else; the others judge the request itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """How a model's recall is probed."""

    per_capture: int = 4
    """Most questions per captured request; 0 = none."""
    min_context_chars: int = 2000
    """Shorter contexts are not long and get no probes."""
    max_tokens: int = 128
    extra_body: Mapping[str, Json] = field(default_factory=dict)
    """Added to a probe's body, such as what turns thinking off."""


def questions(request: Request, *, seed: str, probing: Probing) -> tuple[Request, ...]:
    """The probes of one captured request; the same for the same seed, empty when nothing can be asked.

    All of them go to every arm alike and form one unit: they share a context, so they are not independent.
    """
    needles = mine(request, seed=seed, limit=probing.per_capture, min_chars=probing.min_context_chars)
    try:
        return tuple(
            probe_request(request, needle, max_tokens=probing.max_tokens, extra_body=probing.extra_body)
            for needle in needles
        )
    except NotARequest:
        # A prompt of token ids has no place for a question.
        return ()
