"""Names for the fields of an answer that are safe to count: from the schema of its request, never from what
was said.

A JSON Pointer of an answer may hold what a model wrote (`/patients/John Smith/dose`). So only names that the
schema lists as properties stay; places in arrays and all other names become `*`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.exchange import Json

ANY = "*"
"""An item of an array, or a name that no schema lists."""
_MOST_BRANCHES = 32
"""Subschemas that are followed side by side, and steps of references."""
_DEEPEST = 12
"""Tokens of a pointer that are named; what lies below counts under the last of them."""
_LONGEST = 48
"""Characters of one name."""
_INDEXED = ("items", "prefixItems", "additionalItems", "contains")
_JOINED = ("allOf", "anyOf", "oneOf")


def field_name(schema: Json, pointer: str) -> str:
    """The pointer in names of the schema, `/` for the whole value: `/orders/*/total`."""
    here = list(_spread(schema, [schema]))
    names: list[str] = []
    for token in _tokens(pointer)[:_DEEPEST]:
        below = [found for each in here if (found := _property(each, token)) is not None]
        names.append(_written(token) if below else ANY)
        if not below:
            below = [found for each in here for found in _others(each)]
        here = list(_spread(schema, below))
    return "/" + "/".join(names)


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _written(token: str) -> str:
    """As a pointer's token on one line, shortened."""
    name = "".join(char if char.isprintable() else "?" for char in token)
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return name.replace("~", "~0").replace("/", "~1")


def _property(schema: Json, name: str) -> Json:
    """The schema of a property that is listed, or None; one that allows anything is `{}`."""
    listed = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(listed, dict) or name not in listed:
        return None
    found = listed[name]
    return found if isinstance(found, dict) else {}


def _others(schema: Json) -> Iterator[Json]:
    """Schemas of items, and of properties that are not listed."""
    if not isinstance(schema, dict):
        return
    for keyword in (*_INDEXED, "additionalProperties"):
        found = schema.get(keyword)
        yield from found if isinstance(found, list) else [found]
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict):
        yield from patterns.values()


def _spread(root: Json, schemas: Sequence[Json]) -> Iterator[Json]:
    """The schemas with all that they refer to or are joined of; each once, and a bounded number of them."""
    waiting = [schema for schema in schemas if isinstance(schema, dict)][:_MOST_BRANCHES]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_BRANCHES:
        schema = waiting.pop(0)
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        joined = [schema.get(keyword) for keyword in ("then", "else")]
        for keyword in _JOINED:
            branches = schema.get(keyword)
            joined += branches if isinstance(branches, list) else []
        joined.append(_referred(root, schema.get("$ref")))
        waiting += [each for each in joined[:_MOST_BRANCHES] if isinstance(each, dict)]


def _referred(root: Json, reference: Json) -> Json:
    """What a reference within the same document points to, else None."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    for token in _tokens(reference[1:]):
        if isinstance(found, dict):
            found = found.get(token)
        elif isinstance(found, list) and token.isdecimal() and int(token) < len(found):
            found = found[int(token)]
        else:
            return None
    return found
