"""How chat templates of common model families begin a call; in text, a call the engine could not read."""

from __future__ import annotations

import re

_CALL_MARKS = re.compile(
    r"<tool_call>|<\|tool_call(?:s_begin|_begin)?\|>|<｜tool▁calls?▁begin｜>|\[TOOL_CALLS\]|<\|python_tag\|>|"
    r"<function=|<function_calls?>|<invoke name="
)


def call_in(text: str) -> str:
    """The text from where a call begins in it; empty when none does."""
    mark = _CALL_MARKS.search(text)
    return "" if mark is None else text[mark.start() :]
