"""JSON by RFC 8259 to the letter, in bounded memory and depth.

What the grammar forbids is `NotJson`: NaN, Infinity, a BOM, comments, trailing commas, text after the value,
bytes that are not UTF-8. What it allows but no client could hold is `TooMuch`: size, depth, numbers of
thousands of digits. Lone surrogates in escapes (`"\\ud83d"`) are in the grammar and accepted; names used
twice in an object are too, and reported. Size and depth are checked before anything is built.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from evaluators.exchange import Json

MAX_CHARS = 4 * 1024 * 1024
"""Longest text that is parsed, in characters (bytes where bytes come in)."""
MAX_DEPTH = 128
"""Deepest nesting of arrays and objects that is parsed."""
MAX_DIGITS = 4000
"""Longest number that is kept, in digits; below Python's own limit of 4,300."""

_BOM = "\ufeff"
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


class NotJson(ValueError):
    """The text is not JSON."""


class TooMuch(ValueError):
    """The text may be JSON, but is larger, deeper or has longer numbers than we read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A JSON value, and the names that some object in it used more than once."""

    value: Json
    duplicates: tuple[str, ...] = ()


def deeper_than(text: str, limit: int) -> bool:
    """Whether arrays and objects nest deeper than `limit`; true of unclosed ones too, strings set aside."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for token in _TOKENS.finditer(text):
        char = token.group()
        if char in "[{":
            depth += 1
            if depth > limit:
                return True
        elif char in "]}":
            depth -= 1
    return False


def parse(text: str | bytes, *, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> Parsed:
    """The value of a JSON text. Raises `NotJson` or `TooMuch`, and nothing else on any input."""
    if len(text) > max_chars:
        raise TooMuch(f"{len(text)} characters > {max_chars}")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise NotJson(f"not UTF-8 at byte {error.start}") from None
    if text.startswith(_BOM):
        raise NotJson("starts with a byte order mark")
    if deeper_than(text, max_depth):
        raise TooMuch(f"nested deeper than {max_depth}")
    duplicates: list[str] = []

    def members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        members = dict(pairs)
        if len(members) != len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen and name not in duplicates:
                    duplicates.append(name)
                seen.add(name)
        return members

    try:
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=number_of,
            object_pairs_hook=members,
        )
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at character {error.pos}") from None
    return Parsed(value=value, duplicates=tuple(duplicates))


def _refuse_constant(name: str) -> Json:
    raise NotJson(f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise TooMuch(f"a number of {len(digits)} digits > {MAX_DIGITS}")
    return int(digits)


def number_of(digits: str) -> float | int:
    """A double; beyond its range the exact integer (1e400), so that no number turns into infinity.

    Raises `TooMuch` where that integer has more than `MAX_DIGITS` digits.
    """
    if len(digits) > MAX_DIGITS:
        raise TooMuch(f"a number of {len(digits)} digits > {MAX_DIGITS}")
    number = float(digits)
    if number not in (float("inf"), float("-inf")):
        return number
    try:
        exact = Decimal(digits)
    except InvalidOperation:
        exact = Decimal("Infinity")  # an exponent that even Decimal cannot hold
    if exact.is_infinite() or exact.adjusted() > MAX_DIGITS:
        raise TooMuch(f"the number {digits[:40]} has more than {MAX_DIGITS} digits")
    return int(exact)
