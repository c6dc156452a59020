"""Damaging the text of a chat completion, whole or streamed, and nothing else of it. Pure.

The answer keeps its shape: as many events, of the same lengths but for the last one with text, the same
finish reason and usage. What only a reader of the text can find, only a reader of the text may find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from service.drill.defects import Defect

KEPT = 0.6
"""Of the text of a JSON answer that is cut off."""
DECLINED = (
    "I'm sorry, but I can't help with that.",
    "I cannot assist with this request.",
    "I'm unable to help with that.",
    "抱歉，我无法帮助您完成这个请求。",
)
FORGOTTEN = ("The text says nothing about it.", "It is not mentioned anywhere.")
_KEY = re.compile(r'"(\w+)"(\s*:)')


def damaged(text: str, defect: Defect, draw: Random) -> str:
    """The text with one defect; `draw` chooses the way. An empty text stays empty."""
    return _WAYS[defect](text, draw) if text else text


def _malformed(text: str, draw: Random) -> str:
    renamed = _KEY.sub(r'"\1_"\2', text, count=1)
    if renamed != text and draw.random() < 0.5:
        return renamed
    return text[: max(1, int(KEPT * len(text)))].rstrip("}] \n")


def _forgotten(text: str, draw: Random) -> str:
    shift = draw.randint(1, 9)
    altered = re.sub(r"[0-9]", lambda digit: str((int(digit[0]) + shift) % 10), text)
    if altered != text and draw.random() < 0.5:
        return altered
    return draw.choice(FORGOTTEN)


def _declined(text: str, draw: Random) -> str:
    return draw.choice(DECLINED)


_WAYS: Mapping[Defect, Callable[[str, Random], str]] = {
    Defect.JSON: _malformed,
    Defect.RECALL: _forgotten,
    Defect.REFUSAL: _declined,
}


def rewrite(body: bytes, content_type: str, change: Callable[[str], str]) -> bytes:
    """The answer with its text changed; bytes that are no chat completion come back as they are."""
    try:
        if content_type.startswith("text/event-stream"):
            return _rewrite_stream(body.decode("utf-8"), change).encode()
        answer = json.loads(body)
        for choice in answer["choices"]:
            text = choice["message"].get("content")
            if isinstance(text, str):
                choice["message"]["content"] = change(text)
        return json.dumps(answer, ensure_ascii=False).encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return body


def _rewrite_stream(stream: str, change: Callable[[str], str]) -> str:
    lines = stream.split("\n")
    events = {number: event for number, line in enumerate(lines) if (event := _event(line)) is not None}
    texts: dict[int, dict[int, str]] = {}
    for number, event in events.items():
        for place, choice in enumerate(event["choices"]):
            text = choice.get("delta", {}).get("content")
            if isinstance(text, str) and text:
                texts.setdefault(choice.get("index", place), {})[number] = text
    for index, pieces in texts.items():
        left = change("".join(pieces.values()))
        last = max(pieces)
        for number, before in pieces.items():
            length = len(left) if number == last else len(before)
            _delta(events[number], index)["content"], left = left[:length], left[length:]
    for number, event in events.items():
        ending = "\r" if lines[number].endswith("\r") else ""
        lines[number] = f"data: {json.dumps(event, ensure_ascii=False)}{ending}"
    return "\n".join(lines)


def _event(line: str) -> dict[str, Any] | None:
    if not line.startswith("data:") or not line[5:].strip().startswith("{"):
        return None
    event = json.loads(line[5:])
    return event if isinstance(event, dict) and event.get("choices") else None


def _delta(event: dict[str, Any], index: int) -> dict[str, Any]:
    return next(
        choice["delta"]
        for place, choice in enumerate(event["choices"])
        if choice.get("index", place) == index and choice.get("delta", {}).get("content")
    )
