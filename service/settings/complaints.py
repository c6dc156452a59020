"""What pydantic found, in the words of the file: place, line, nearest valid key."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from service.settings.document import Document
from service.settings.nearest import distance, nearest
from service.settings.problems import Place, Problem
from service.settings.shape import TiergateShape

INLINE_SECRETS = {"api_key": "api_key_file", "key": "key_file", "token": "api_key_file"}
"""Secrets that people first try to write into the file, and where they belong."""


def complaints(error: ValidationError, document: Document) -> list[Problem]:
    """One problem for each thing pydantic found."""
    return [_problem(details, document) for details in error.errors(include_url=False)]


def valid_keys(place: Place) -> list[str]:
    """The keys that the mapping at this place may have; empty where keys are free or there is no mapping."""
    kind: Any = TiergateShape
    for step in place:
        kind = _inside(_bare(kind), step)
    bare = _bare(kind)
    return sorted(bare.model_fields) if isinstance(bare, type) and issubclass(bare, BaseModel) else []


def all_places(kind: Any = TiergateShape, place: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every key of the shape by its path; `*` stands for a free key or a list position."""
    bare = _bare(kind)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return [
            found
            for name, about in bare.model_fields.items()
            for found in [(*place, name), *all_places(about.annotation, (*place, name))]
        ]
    if get_origin(bare) in (dict, list):
        return all_places(get_args(bare)[-1], (*place, "*"))
    return []


def _problem(details: ErrorDetails, document: Document) -> Problem:
    place: Place = tuple(details["loc"])
    known = document.known(place)
    line = document.line_of(place)
    kind = details["type"]
    if kind == "extra_forbidden":
        return Problem(place=place, line=line, message=_unknown(place))
    if kind == "missing":
        *around, key = place
        return Problem(
            place=document.known(tuple(around)), line=line, message=f"the key `{key}` is missing here"
        )
    if kind == "model_type":
        keys = ", ".join(valid_keys(known))
        return Problem(place=known, line=line, message=f"expected a mapping with the keys {keys}")
    if kind == "dict_type":
        given = "nothing" if details["input"] is None else repr(details["input"])
        return Problem(
            place=known, line=line, message=f"expected a mapping of names to what they stand for, got {given}"
        )
    return Problem(place=known, line=line, message=_worded(details))


def _unknown(place: Place) -> str:
    *around, key = place
    valid = valid_keys(tuple(around))
    name = str(key)
    if name in INLINE_SECRETS and INLINE_SECRETS[name] in valid:
        return (
            f"a secret does not belong here; put it in its own file and name that in `{INLINE_SECRETS[name]}`"
        )
    suggestion = nearest(name, valid)
    elsewhere = [path for path in all_places() if path[-1] == name]
    if elsewhere and distance(name, suggestion) > 2:
        where = " or ".join(f"`{'.'.join(path)}`" for path in elsewhere[:3])
        return f"unknown key; it belongs at {where} (valid here: {', '.join(valid)})"
    return f"unknown key; did you mean `{suggestion}`? (valid here: {', '.join(valid)})"


def _worded(details: ErrorDetails) -> str:
    given = details["input"]
    context = details.get("ctx", {})
    kind = details["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"expected {context['expected']}, got {given!r}"
    if kind == "string_type" and isinstance(given, int | float):
        return f"expected text; write it in quotes if {given!r} is meant as text"
    if kind == "list_type":
        return "expected a list: [ONE, ANOTHER], or a line with `- ` for each"
    if kind == "too_short":
        return "needs at least one entry"
    shown = f", got {given!r}" if isinstance(given, str | int | float | bool) or given is None else ""
    message = details["msg"]
    return message[:1].lower() + message[1:] + shown


def _bare(kind: Any) -> Any:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    arguments = [each for each in get_args(kind) if each is not type(None)]
    if len(arguments) == 1 and type(None) in get_args(kind):
        return _bare(arguments[0])
    return kind


def _inside(kind: Any, step: str | int) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_fields[str(step)].annotation if str(step) in kind.model_fields else None
    return get_args(kind)[-1] if get_origin(kind) in (dict, list) else None
