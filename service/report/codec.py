"""Frozen dataclasses to JSON and back, total: anything that is not such a document is one clear error.

What a field may hold is what its annotation says: text, whole numbers, finite numbers, truth, enumerations,
optional ones, tuples, mappings by text, and other dataclasses. Unknown names are errors: a document of a
later version is not half read.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class DocumentError(ValueError):
    """Not a document of that kind: where, and what was found there."""


def encode(told: object) -> Any:
    """As JSON values; DocumentError for a number that JSON has not."""
    if dataclasses.is_dataclass(told) and not isinstance(told, type):
        return {each.name: encode(getattr(told, each.name)) for each in dataclasses.fields(told)}
    if isinstance(told, Mapping):
        return {str(name): encode(each) for name, each in told.items()}
    if isinstance(told, (list, tuple)):
        return [encode(each) for each in told]
    if isinstance(told, StrEnum):
        return told.value
    if isinstance(told, float) and not math.isfinite(told):
        raise DocumentError(f"{told} has no place in JSON: leave out what was not reached")
    if told is None or isinstance(told, (str, int, float, bool)):
        return told
    raise DocumentError(f"a {type(told).__name__} has no place in JSON")


def written(told: object) -> str:
    """As a text of JSON, two spaces deep."""
    return json.dumps(encode(told), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(kind: type[T], text: str | bytes) -> T:
    """The document in a text of JSON; DocumentError says where it is none."""
    try:
        told = json.loads(text, parse_constant=_refused, object_pairs_hook=_once)
    except RecursionError as error:
        raise DocumentError("the JSON is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8: {error}") from error
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error}") from error
    return decode(kind, told)


def decode(kind: type[T], told: object) -> T:
    """The document in JSON values; DocumentError says where it is none."""
    found: T = _decoded(kind, told, "")
    return found


def _refused(constant: str) -> float:
    raise DocumentError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DocumentError(f"{twice!r} stands twice in one object")
    return found


def _decoded(kind: Any, told: Any, where: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return told
    if origin in (Union, UnionType):
        return _optional(kind, told, where)
    if origin is tuple:
        return _listed(kind, told, where)
    if origin is not None and issubclass(origin, Mapping):
        key, content = get_args(kind)
        _expect(isinstance(told, dict), "an object", told, where)
        return {
            _decoded(key, name, where): _decoded(content, each, _below(where, name))
            for name, each in told.items()
        }
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, told, where)
    if issubclass(kind, StrEnum):
        choices = [each.value for each in kind]
        _expect(isinstance(told, str) and told in choices, f"one of {', '.join(choices)}", told, where)
        return kind(told)
    return _plain(kind, told, where)


def _plain(kind: Any, told: Any, where: str) -> Any:
    number = isinstance(told, (int, float)) and not isinstance(told, bool)
    if kind is float:
        _expect(number, "a number", told, where)
        try:
            as_float = float(told)
        except OverflowError:
            as_float = math.inf
        _expect(math.isfinite(as_float), "a number that a double holds", "a larger one", where)
        return as_float
    if kind is int:
        _expect(number and isinstance(told, int), "a whole number", told, where)
    elif kind is bool:
        _expect(isinstance(told, bool), "true or false", told, where)
    else:
        _expect(kind is str and isinstance(told, str), "a text", told, where)
    return told


def _optional(kind: Any, told: Any, where: str) -> Any:
    choices = [each for each in get_args(kind) if each is not NoneType]
    if told is None and NoneType in get_args(kind):
        return None
    (only,) = choices
    return _decoded(only, told, where)


def _listed(kind: Any, told: Any, where: str) -> tuple[Any, ...]:
    _expect(isinstance(told, list), "a list", told, where)
    kinds = get_args(kind)
    if kinds[-1] is Ellipsis:
        return tuple(_decoded(kinds[0], each, f"{where}[{place}]") for place, each in enumerate(told))
    _expect(len(told) == len(kinds), f"{len(kinds)} entries", f"{len(told)}", where)
    return tuple(
        _decoded(each_kind, each, f"{where}[{place}]")
        for place, (each_kind, each) in enumerate(zip(kinds, told, strict=True))
    )


def _dataclass(kind: Any, told: Any, where: str) -> Any:
    _expect(isinstance(told, dict), "an object", told, where)
    hints = get_type_hints(kind)
    fields = {each.name: each for each in dataclasses.fields(kind)}
    unknown = sorted(set(told) - set(fields))
    if unknown:
        raise DocumentError(f"{_named(where)}: unknown field {unknown[0]!r}")
    for name, field in fields.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in told:
            raise DocumentError(f"{_below(where, name)}: missing")
    found = {name: _decoded(hints[name], each, _below(where, name)) for name, each in told.items()}
    try:
        return kind(**found)
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"{_named(where)}: {error}") from error


def _expect(right: bool, wanted: str, found: object, where: str) -> None:
    if not right:
        shown = found if isinstance(found, str) and wanted[:1].isdigit() else _shown(found)
        raise DocumentError(f"{_named(where)}: expected {wanted}, found {shown}")


def _shown(found: object) -> str:
    if found is None or isinstance(found, bool):
        return json.dumps(found)
    text = "an object" if isinstance(found, dict) else "a list" if isinstance(found, list) else repr(found)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _named(where: str) -> str:
    return where or "the document"
