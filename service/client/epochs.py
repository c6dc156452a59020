"""A tier's epochs for a terminal: what each was, and in what it differs from the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType

from service.client.readings import Document
from service.client.tables import plain


def epochs_view(document: Document) -> RenderableType:
    """The latest first; of each what changed, of the first what its engines are."""
    return Group(*_lines(document))


def _lines(document: Document) -> Iterator[RenderableType]:
    yield plain(f"{document['model']} / {document['tier']}: epoch {document['epoch'][:12]}", "bold")
    if document["unsettled"] is not None:
        yield plain(f"unsettled, pairs count nowhere: {document['unsettled']}", "yellow")
    known = document["epochs"]
    if not known:
        yield plain("the guard has not looked at its engines yet")
    for place, each in enumerate(known):
        attempt = "" if each["attempt"] is None else f", attempt {each['attempt']}"
        told = f"{each['epoch'][:12]}  since {each['first_seen']}{attempt}{', current' * each['current']}"
        yield plain(told, "bold" if each["current"] else "")
        before = known[place + 1]["facts"] if place + 1 < len(known) else None
        for name, change in _changes(before, each["facts"]):
            yield plain(f"  {name}: {change}")


def _changes(before: Document | None, now: Document) -> Iterator[tuple[str, str]]:
    """What differs from the epoch before; without one, what the engines are."""
    flat = _flat(now)
    if before is None:
        yield from ((name, value) for name, value in flat.items() if name.startswith("engines."))
        return
    former = _flat(before)
    for name in sorted({*flat, *former}):
        if former.get(name) != flat.get(name):
            yield name, f"{former.get(name, 'not told')} -> {flat.get(name, 'not told')}"


def _flat(facts: Document, above: str = "") -> dict[str, str]:
    """Every fact under its path."""
    found: dict[str, str] = {}
    for name, value in facts.items():
        path = f"{above}.{name}" if above else name
        found |= _flat(value, path) if isinstance(value, Mapping) else {path: str(value)}
    return found
