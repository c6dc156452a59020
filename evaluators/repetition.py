"""Where a text goes round in circles: floods of white space, and the same words said again and again.

One pass over a bounded part of the text, whatever stands in it: the time is linear and has a ceiling.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_READ = 16_384
"""Characters read of the beginning, and as many of the end."""
FLOOD = 256
"""White space characters in a row that are a flood."""
TIMES = 6
"""How often one unit must be said in a row to be a loop."""
LEAST = 160
"""Characters that a loop has at least; shorter ones are refrains, rules, or a song."""
_GRAM = 4
"""Tokens that must be the same as before to say that a text goes on as it did."""
_LEAST_AGAIN = (TIMES - 1) - (_GRAM - 1)
"""Grams that stood before, of the shortest unit said `TIMES` times."""
_TOKEN = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|-{2,}|={2,}|_{2,}|\*{2,}|\.{2,}|\S")
"""A word, a rule (a hundred hyphens are one token), a sign, or one character of Chinese, Japanese
or Korean."""
_SPACES = re.compile(r"\s{8,}")
_FENCED = re.compile(r"```[^\n]{0,80}\n.*?(?:```|\Z)", re.DOTALL)
_TABLE_RULE = re.compile(r"^[ \t:|-]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A unit that is said again and again, with no word in between."""

    unit: str
    """As it is said the last time."""
    times: int
    at_end: bool
    """The text ends in it: nothing stopped the model but its limit."""


def flooded(text: str) -> bool:
    """Whether `FLOOD` white space characters stand in a row. They are no flood within a fence of code."""
    return any(len(run) >= FLOOD for part in _parts(text) for run in _SPACES.findall(part))


def loop_in(text: str) -> Loop | None:
    """The longest loop of a text, or None. Code within fences and the rules of tables may repeat."""
    found: list[tuple[int, Loop]] = []
    parts = _parts(text)
    for part in parts:
        loop = _loop(part, is_last=part is parts[-1])
        if loop is not None:
            found.append(loop)
    return max(found, key=lambda each: each[0])[1] if found else None


def _parts(text: str) -> list[str]:
    """What is read of a text, without fenced code and rules of tables."""
    whole = len(text) <= 2 * MOST_READ
    parts = [text] if whole else [text[:MOST_READ], text[-MOST_READ:]]
    if "```" in text:
        parts = [_FENCED.sub("\n", part) for part in parts]
    return [_TABLE_RULE.sub("", part) if "--" in part and "|" in part else part for part in parts]


def _loop(text: str, *, is_last: bool) -> tuple[int, Loop] | None:
    """The longest stretch in which each gram stood the same number of tokens before, with its characters."""
    words = _TOKEN.findall(text)
    grams = list(zip(*(words[start:] for start in range(_GRAM)), strict=False))
    if len(grams) - len(set(grams)) < _LEAST_AGAIN:
        return None
    tokens = list(_TOKEN.finditer(text))
    before: dict[tuple[str, ...], int] = {}
    longest: tuple[int, Loop] | None = None
    period = begun = 0
    for at, gram in enumerate(grams):
        last = before.get(gram)
        before[gram] = at
        if last is None:
            period = 0
            continue
        if at - last != period:
            period, begun = at - last, last
        end = at + _GRAM
        times = (end - begun) // period
        chars = tokens[end - 1].end() - tokens[begun].start()
        if times >= TIMES and chars >= LEAST and (longest is None or chars > longest[0]):
            loop = Loop(
                unit=text[tokens[end - period].start() : tokens[end - 1].end()],
                times=times,
                # A loop that the limit cuts in the middle of a word ends before its last token.
                at_end=is_last and end >= len(tokens) - 1,
            )
            longest = (chars, loop)
    return longest
