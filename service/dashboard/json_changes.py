"""Two JSON values side by side where they differ, by JSON Pointer (RFC 6901). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from evaluators.differences import TooManyFields, agreement
from evaluators.exchange import Json
from evaluators.strict_json import NotJson, TooMuch, parse

MOST_ROWS = 100
"""Of one comparison."""
MOST_VALUE = 300
"""Characters of a value; the text beside it has the whole."""


class Difference(StrEnum):
    """How a place differs."""

    VALUE = "value"
    TYPE = "type"
    ONLY_BASELINE = "only_baseline"
    ONLY_CANDIDATE = "only_candidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedField:
    """One place, and what either side has there; empty on the side that has nothing."""

    pointer: str
    difference: Difference
    baseline: str
    candidate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonChanges:
    """Two values compared."""

    fields: int
    """Leaves that one of the values has, or both."""
    differing: int
    rows: tuple[ChangedField, ...]
    """By pointer, the first `MOST_ROWS`."""
    left_out: int
    """Places that differ beyond these rows, as far as they are told apart."""


def json_changes(baseline: str, candidate: str) -> JsonChanges | None:
    """Where two texts of JSON differ; None where one is no JSON or too large, or both are a single value."""
    try:
        one, other = parse(baseline).value, parse(candidate).value
        found = agreement(one, other)
    except (NotJson, TooMuch, TooManyFields):
        return None
    if not (isinstance(one, dict | list) or isinstance(other, dict | list)):
        return None
    rows = sorted(
        (
            *(_row(each, Difference.VALUE, one, other) for each in found.values),
            *(_row(each, Difference.TYPE, one, other) for each in found.types),
            *(_row(each, _side(each, one), one, other) for each in found.missing),
        ),
        key=lambda row: row.pointer,
    )
    return JsonChanges(
        fields=found.fields,
        differing=found.differing,
        rows=tuple(rows[:MOST_ROWS]),
        left_out=max(0, len(rows) - MOST_ROWS),
    )


def _row(pointer: str, difference: Difference, one: Json, other: Json) -> ChangedField:
    return ChangedField(
        pointer=pointer,
        difference=difference,
        baseline=_written(pointer, one),
        candidate=_written(pointer, other),
    )


def _side(pointer: str, one: Json) -> Difference:
    return Difference.ONLY_BASELINE if list(_at(pointer, one)) else Difference.ONLY_CANDIDATE


def _written(pointer: str, value: Json) -> str:
    """What stands at a pointer, as JSON; empty where there is nothing."""
    text = "".join(json.dumps(each, ensure_ascii=False) for each in _at(pointer, value))
    return text if len(text) <= MOST_VALUE else f"{text[:MOST_VALUE]}…"


def _at(pointer: str, value: Json) -> Iterator[Json]:
    """What stands at a pointer, if anything does."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return
    yield value
