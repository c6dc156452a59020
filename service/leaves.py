"""Two JSON documents side by side: the leaves of each by path, and where they differ. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

NAMES = ("name", "tier")
"""By which entries of a list are told, so that one more of them does not shift the others; else by number."""


def text_of(leaf: Any) -> str:
    """Words as they are, anything else as JSON."""
    return leaf if isinstance(leaf, str) else json.dumps(leaf, sort_keys=True, default=str)


def short_text_of(leaf: Any, most: int = 80) -> str:
    """The same, of so many characters at most."""
    text = text_of(leaf)
    return text if len(text) <= most else f"{text[:most]}…"


def leaves(
    document: Any, *, shown: Callable[[Any], str] = text_of, path: str = ""
) -> Iterator[tuple[str, str]]:
    """Path and text of each; an empty object or list has none."""
    if isinstance(document, Mapping):
        for name, each in document.items():
            yield from leaves(each, shown=shown, path=f"{path}.{name}" if path else str(name))
    elif isinstance(document, list | tuple):
        for number, each in enumerate(document):
            yield from leaves(each, shown=shown, path=f"{path}[{_name_of(each, number)}]")
    else:
        yield path, shown(document)


def apart(
    was: Mapping[str, Any], now: Mapping[str, Any], *, shown: Callable[[Any], str] = text_of
) -> list[tuple[str, str | None, str | None]]:
    """Where two documents differ, in the order of `now`: path, text before and now; None for none."""
    before, after = dict(leaves(was, shown=shown)), dict(leaves(now, shown=shown))
    paths = [*after, *(path for path in before if path not in after)]
    return [
        (path, before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)
    ]


def _name_of(entry: Any, number: int) -> str | int:
    if isinstance(entry, Mapping):
        for name in NAMES:
            if isinstance(entry.get(name), str):
                return str(entry[name])
    return number
