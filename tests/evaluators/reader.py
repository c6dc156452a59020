"""A reader that answers a recall question from the text alone, and knows nothing of how it was mined."""

from __future__ import annotations

import re

from evaluators.exchange import Request

_ENGLISH = re.compile(r"What is (?:the )?(.+)\?\Z")
_CHINESE = re.compile(r"(.+)是什么？\Z")
_SAYS = re.compile(r"[\s*_\"'`]*(?:is|was|equals|=|:|\||：|是|为)[\s*_\"'`|]*")
_ENDS = re.compile(r"\.(?=\s|\Z)|[\n;|\"}`。；，？]|\\n|,(?!\d| \d{4})|\?")


def named(question: str) -> str:
    """What is asked for."""
    found = _ENGLISH.match(question) or _CHINESE.match(question)
    assert found, question
    return found[1]


def text_of(request: Request) -> str:
    """All that a model is shown, closing question included."""
    return "\n\n".join(
        message.text + "".join(f"\n{call.arguments}" for call in message.tool_calls)
        for message in request.messages
    )


def read(text: str, question: str) -> str:
    """What the text says of the thing asked for: the words behind its name, up to where the statement ends.

    Says so if the name stands nowhere, or in several places: then the question has no one answer.
    """
    name = named(question)
    edge = "" if re.match("[\u4e00-\u9fff]", name) else r"\b"
    places = [match.end() for match in re.finditer(edge + re.escape(name) + edge, text, re.IGNORECASE)]
    said = [says.end() for at in places if (says := _SAYS.match(text, at))]
    if not said:
        return "The text does not say."
    if len(places) > 1:
        return "The text says several things."
    end = _ENDS.search(text, said[0])
    return text[said[0] : end.start() if end else len(text)]
