"""Reading one field of a wire body, or saying what it should have been."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from evaluators.exchange import Json
from evaluators.strict_json import MAX_DEPTH, MAX_DIGITS, TooMuch, deeper_than, number_of

DEEPEST = MAX_DEPTH + 16
"""Nesting of a body: what it carries may be as deep as evaluators read, inside the dialect's own levels."""

_BEYOND_DOUBLE = re.compile(r"[0-9]{309}|[eE]\+?[0-9]{3}")
"""Whatever text has a number that would become infinity has this; hardly any text does."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class WrongShape(ValueError):
    """A body is not of its dialect."""


class NotARequest(ValueError):
    """A request body that none of our dialects can read."""


def kind(value: Json) -> str:
    """JSON's own word for the type of a value."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def text(value: Json, where: str) -> str:
    """A string; absent and null are empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongShape(f"{where} is {kind(value)}, not a string")
    return value


def mapping(value: Json, where: str) -> Mapping[str, Json]:
    """An object; absent and null are empty."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WrongShape(f"{where} is {kind(value)}, not an object")
    return value


def items(value: Json, where: str) -> Sequence[Json]:
    """An array; absent and null are empty."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise WrongShape(f"{where} is {kind(value)}, not an array")
    return value


def count(value: Json, where: str) -> int | None:
    """A whole number; absent and null are None."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongShape(f"{where} is not a whole number")
    return value


def detail(usage: Mapping[str, Json], details: str, name: str) -> int | None:
    """A count within a usage, such as `prompt_tokens_details.cached_tokens`, where the engine tells it."""
    within = usage.get(details)
    return told_count(within.get(name)) if isinstance(within, dict) else None


def told_count(value: Json) -> int | None:
    """A whole number, or None for anything else: of what an answer can do without."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_json(written: str) -> Json:
    """A JSON value as engines write it: NaN, names used twice and a BOM are let through.

    Raises `WrongShape`, and nothing else on any input: depth is bounded. Numbers beyond a double stay exact,
    as in `evaluators.strict_json`, and those of thousands of digits become infinity.
    """
    written = written.removeprefix("\ufeff")
    if deeper_than(written, DEEPEST):
        raise WrongShape(f"JSON nested deeper than {DEEPEST}")
    exact = _number if _BEYOND_DOUBLE.search(written) else None
    try:
        return json.loads(written, parse_int=_integer, parse_float=exact)
    except json.JSONDecodeError as error:
        raise WrongShape(f"not JSON: {error.msg} at character {error.pos}") from None


def write_json(value: Json) -> str:
    """The shortest JSON text of a value, in the order of its names."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def joined(pieces: Iterable[str]) -> str:
    """One text of several pieces; a character that was cut between its two surrogates is one again."""
    written = "".join(pieces)
    if _SURROGATE.search(written) is None:
        return written
    return written.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _number(digits: str) -> float | int:
    try:
        return number_of(digits)
    except TooMuch:
        return float(digits)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)
