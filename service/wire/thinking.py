"""Parting an answer from the thinking that a model wrote before it."""

from __future__ import annotations

import re

_OPEN = re.compile(r"\s*<(think|thinking)>")
# Templates of some models open the tag in the prompt, so that only its end is in the answer. It stands on its
# own line there; inside a JSON string it cannot, since strings hold no line breaks.
_ORPHAN_CLOSE = re.compile(r"(?:\A|\n)[ \t]*</think(?:ing)?>")


def split_thinking(written: str) -> tuple[str, str]:
    """(answer, thinking). Thinking that never ends leaves no answer."""
    if opened := _OPEN.match(written):
        thinking, closed, answer = written[opened.end() :].partition(f"</{opened.group(1)}>")
        return (answer.lstrip() if closed else ""), thinking.strip()
    if orphan := _ORPHAN_CLOSE.search(written):
        return written[orphan.end() :].lstrip(), written[: orphan.start()].strip()
    return written, ""


def join_thinking(*parts: str) -> str:
    """Thinking from several places, one after another."""
    return "\n".join(part for part in parts if part)
