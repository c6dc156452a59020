"""Sentences of our own in a captured prompt: between its paragraphs, never in its closing question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from evaluators.exchange import Endpoint, Json, Request
from evaluators.needles import closing_begin
from service.wire.requests import read_body
from service.wire.shapes import NotARequest

_PARAGRAPHS = re.compile(r"\n[ \t\r]*\n\s*")
_LINES = re.compile(r"\n\s*")
_SENTENCES = re.compile(r"(?<=[.!?]) +(?=\S)|(?<=[。！？])(?=\S)")
_FEWEST = 4
"""Paragraphs that are enough to choose from; with fewer, lines, and then sentences."""
_WRITTEN_BY = frozenset(("system", "developer", "user"))
"""Who wrote what may be added to: an answer or the result of a tool stays what it was."""


@dataclass(slots=True)
class _Text:
    """One text of a body: where it is kept, and how much of it comes before the closing question."""

    holder: Any
    key: str | int
    usable: int
    begin: int
    """Characters of the other texts before it."""

    @property
    def written(self) -> str:
        return str(self.holder[self.key])


def plant(request: Request, sentences: Sequence[tuple[float, str]]) -> Request:
    """The request with each sentence written at about its depth (0 to 1), as near as there is a place.

    Raises `NotARequest` where there is none: token ids, or nothing but a question.
    """
    body: dict[str, Json] = deepcopy(dict(request.body))
    texts, length = _texts(request, body)
    places = _places(texts)
    if not places:
        raise NotARequest("there is no place between two paragraphs, lines or sentences")
    chosen = [
        (*min(places, key=lambda place: abs(place[0].begin + place[1] - depth * length)), sentence)
        for depth, sentence in sentences
    ]
    # from the back, so that what is written does not move what is still to be
    for text, at, mark, sentence in sorted(
        chosen, key=lambda place: (place[0].begin, place[1]), reverse=True
    ):
        before = text.written
        text.holder[text.key] = f"{before[:at]}{sentence}{mark}{before[at:]}"
    planted = read_body(request.endpoint, body)
    return replace(planted, needle=request.needle)


def _places(texts: Sequence[_Text]) -> list[tuple[_Text, int, str]]:
    """Where a sentence may begin, and what is to follow it."""
    for breaks in (_PARAGRAPHS, _LINES, _SENTENCES):
        places = [
            (text, match.end(), match.group() or "")
            for text in texts
            for match in breaks.finditer(text.written, 0, text.usable)
            if match.end() <= text.usable
        ]
        if len(places) >= _FEWEST:
            break
    return places


def _texts(request: Request, body: dict[str, Json]) -> tuple[list[_Text], int]:
    """Those that may be added to, and the length of all of them."""
    found: list[_Text] = []
    length = 0
    holders = list(_holders(request.endpoint, body))
    last = max((i for i, (_, _, role) in enumerate(holders) if role == "user"), default=None)
    for i, (holder, key, role) in enumerate(holders):
        text = holder[key]
        usable = closing_begin(text) if i == last else len(text)
        if role in _WRITTEN_BY:
            found.append(_Text(holder=holder, key=key, usable=usable, begin=length))
        length += len(text)
    return found, length


def _holders(endpoint: Endpoint, body: dict[str, Json]) -> Iterator[tuple[Any, str | int, str]]:
    """Every text of the prompt in its order: what holds it, under which key, and whose it is."""
    if endpoint is Endpoint.COMPLETIONS:
        prompt = body.get("prompt")
        if isinstance(prompt, list) and prompt and isinstance(prompt[0], str):
            yield prompt, 0, "user"
        elif isinstance(prompt, str):
            yield body, "prompt", "user"
        return
    if endpoint is Endpoint.RESPONSES:
        yield from _content(body, "instructions", "system")
        yield from _content(body, "input", "user") if isinstance(body.get("input"), str) else ()
        turns = body.get("input")
    else:
        yield from _content(body, "system", "system")
        turns = body.get("messages")
    for turn in turns if isinstance(turns, list) else ():
        if isinstance(turn, dict):
            yield from _content(turn, "content", str(turn.get("role", "")))


def _content(holder: dict[str, Json], key: str, role: str) -> Iterator[tuple[Any, str | int, str]]:
    content = holder.get(key)
    if isinstance(content, str):
        yield holder, key, role
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part, "text", role
