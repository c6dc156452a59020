"""Where two JSON values differ, by JSON Pointer (RFC 6901): types and values apart, and what only one has.

Names of an object have no order; items of an array are compared place by place. 1 equals 1.0, and neither
equals true.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluators.exchange import Json

MOST_POINTERS = 100
"""Pointers kept of each kind; all are counted."""
MOST_FIELDS = 50_000


class TooManyFields(ValueError):
    """The values have more fields than are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How two values agree, counted over the fields (leaves) of either."""

    fields: int
    """Leaves that one of the values has, or both; an empty object or array is one."""
    missing: tuple[str, ...] = ()
    """Pointers of what only one of them has; the topmost."""
    types: tuple[str, ...] = ()
    """Pointers at which their types differ."""
    values: tuple[str, ...] = ()
    """Pointers at which only the values differ."""
    same: tuple[str, ...] = ()
    """Pointers of leaves that agree."""
    differing: int = 0
    """Leaves that differ in one of these ways, those beyond the kept pointers and below them included."""

    @property
    def share(self) -> float:
        """Share of the fields that agree, 0 to 1."""
        return 1.0 - self.differing / self.fields


def agreement(one: Json, other: Json) -> Agreement:
    """Compare two values. Raises `TooManyFields`."""
    fields = differing = 0
    kept: dict[str, list[str]] = {"missing": [], "types": [], "values": [], "same": []}
    waiting: list[tuple[str, Json, Json]] = [("", one, other)]

    def differ(kind: str, pointer: str, leaves: int) -> None:
        nonlocal fields, differing
        fields += leaves
        differing += leaves
        if fields > MOST_FIELDS:
            raise TooManyFields(f"more than {MOST_FIELDS} fields")
        if len(kept[kind]) < MOST_POINTERS:
            kept[kind].append(pointer)

    def agree(pointer: str) -> None:
        nonlocal fields
        fields += 1
        if len(kept["same"]) < MOST_POINTERS:
            kept["same"].append(pointer)

    while waiting:
        if fields > MOST_FIELDS:
            raise TooManyFields(f"more than {MOST_FIELDS} fields")
        pointer, mine, theirs = waiting.pop()
        if _type(mine) != _type(theirs):
            differ("types", pointer, max(_leaves(mine), _leaves(theirs)))
        elif isinstance(mine, dict):
            if not (mine or theirs):
                agree(pointer)
            for name in sorted(mine.keys() | theirs.keys(), reverse=True):
                below = f"{pointer}/{_escaped(name)}"
                if name in mine and name in theirs:
                    waiting.append((below, mine[name], theirs[name]))
                else:
                    differ("missing", below, _leaves(mine.get(name, theirs.get(name))))
        elif isinstance(mine, list):
            if not (mine or theirs):
                agree(pointer)
            both = min(len(mine), len(theirs))
            for place in reversed(range(both)):
                waiting.append((f"{pointer}/{place}", mine[place], theirs[place]))
            for place, more in enumerate(mine[both:] + theirs[both:], both):
                differ("missing", f"{pointer}/{place}", _leaves(more))
        elif mine == theirs:
            agree(pointer)
        else:
            differ("values", pointer, 1)
    return Agreement(
        fields=fields, differing=differing, **{kind: tuple(sorted(found)) for kind, found in kept.items()}
    )


def _type(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _leaves(value: Json) -> int:
    """Fields of one value, at most `MOST_FIELDS` and one."""
    leaves = 0
    waiting = [value]
    while waiting and leaves <= MOST_FIELDS:
        held = waiting.pop()
        inner = held.values() if isinstance(held, dict) else held if isinstance(held, list) else ()
        leaves += not inner
        waiting.extend(inner)
    return leaves


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
