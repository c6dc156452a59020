"""JSON Schema, evaluated without network, backtracking or unbounded work.

The draft is the one that `$schema` names, else 2020-12. References resolve within the schema and the
published meta-schemas and nowhere else. `pattern` and `patternProperties` run on RE2 (`patterns`). A schema
that we cannot evaluate so is `UnsupportedSchema`, decided from the schema alone wherever that is possible; an
answer that is too deep or too large for an honest schema is `TooMuch`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jsonschema
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from evaluators.exchange import Json
from evaluators.json_formats import FORMATS
from evaluators.json_keywords import own_keywords
from evaluators.patterns import Inexpressible, TooLong, matcher
from evaluators.strict_json import TooMuch, deeper_than

MAX_SCHEMA_CHARS = 512 * 1024
MAX_SCHEMA_DEPTH = 96
"""Nesting of the schema's own JSON."""
MOST_KEPT = 256
"""Compiled schemas that are kept, those used last."""
STEPS = 20_000
"""Keywords that may be evaluated on one answer, plus `STEPS_PER_CHAR` for each character of it."""
STEPS_PER_CHAR = 100
MAX_STEPS = 300_000
LARGE_ANSWER = 20_000
"""Characters beyond which running out of steps is the answer's fault, not the schema's."""
DEEP_ANSWER = 32
"""Levels beyond which running out of stack is the answer's fault."""

DRAFTS: Mapping[str, type[Validator]] = {
    "http://json-schema.org/draft-03/schema": jsonschema.Draft3Validator,
    "http://json-schema.org/draft-04/schema": jsonschema.Draft4Validator,
    "http://json-schema.org/draft-06/schema": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-07/schema": jsonschema.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
}
_LATEST = "https://json-schema.org/draft/2020-12/schema"


class UnsupportedSchema(ValueError):
    """The schema cannot be evaluated; the request's doing, never the answer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Where a value breaks its schema first, and how."""

    pointer: str
    """JSON Pointer (RFC 6901) into the value; empty for the whole."""
    reason: str


@dataclass(slots=True)
class _Meter:
    """Steps left of the evaluation that is under way."""

    left: int = 0

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _OutOfSteps


class _OutOfSteps(Exception):
    """The evaluation took more steps than its answer allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSchema:
    """A schema ready to judge; not to be used by two threads at once, since it counts steps."""

    _validator: Any
    _meter: _Meter

    def violation(self, value: Json, *, chars: int) -> Violation | None:
        """The first violation of a value whose JSON text has `chars` characters.

        Raises `UnsupportedSchema` or `TooMuch` when the evaluation cannot be brought to its end.
        """
        self._meter.left = min(STEPS + STEPS_PER_CHAR * chars, MAX_STEPS)
        try:
            error = next(self._validator.iter_errors(value), None)
        except _OutOfSteps:
            if chars > LARGE_ANSWER:
                raise TooMuch(f"{chars} characters take more than {MAX_STEPS} steps to validate") from None
            raise UnsupportedSchema(f"schema takes too many steps on {chars} characters") from None
        except RecursionError:
            if _depth(value) > DEEP_ANSWER:
                raise TooMuch(f"nested deeper than {DEEP_ANSWER}, too deep for its schema") from None
            raise UnsupportedSchema("schema recurses without end") from None
        except (Unresolvable, NoSuchResource) as lost:
            raise UnsupportedSchema(f"reference {getattr(lost, 'ref', '')!r} cannot be resolved") from None
        except Inexpressible as odd:
            raise UnsupportedSchema(str(odd)) from None
        except TooLong as slow:
            if chars > LARGE_ANSWER:
                raise TooMuch(str(slow)) from None
            raise UnsupportedSchema(str(slow)) from None
        if error is None:
            return None
        return Violation(pointer=_pointer(error.absolute_path), reason=error.message)


def compile_schema(schema: Json, *, formats: bool = True) -> CompiledSchema:
    """The schema, ready to judge; cached by its content. `formats`: whether `format` is asserted.

    Raises `UnsupportedSchema` with the reason.
    """
    try:
        written = json.dumps(schema)
    except (ValueError, RecursionError) as error:
        raise UnsupportedSchema(f"schema: {error}") from None
    compiled = _compiled(written, formats)
    if isinstance(compiled, str):
        raise UnsupportedSchema(compiled)
    return compiled


@lru_cache(maxsize=MOST_KEPT)
def _compiled(written: str, formats: bool) -> CompiledSchema | str:
    """The compiled schema, or why there is none: failures are cached too."""
    if len(written) > MAX_SCHEMA_CHARS:
        return f"schema of {len(written)} characters > {MAX_SCHEMA_CHARS}"
    if deeper_than(written, MAX_SCHEMA_DEPTH):
        return f"schema nested deeper than {MAX_SCHEMA_DEPTH}"
    schema = json.loads(written)
    if not isinstance(schema, dict | bool):
        return "schema is neither an object nor a boolean"
    meter = _Meter()
    try:
        draft = _draft_of(schema)
        check: Any = draft.check_schema
        check(schema, format_checker=None)  # `pattern` is ECMA-262, which Python would not compile
        _check_parts(schema)
    except SchemaError as error:
        return f"not a valid schema at {_pointer(error.absolute_path) or '/'}: {error.message[:120]}"
    except (Unresolvable, NoSuchResource) as error:
        return f"reference {getattr(error, 'ref', '')!r} cannot be resolved without the network"
    except (Inexpressible, UnsupportedSchema) as error:
        return str(error)
    except RecursionError:
        # the caller's stack has a part in this, so it is raised and not cached
        raise UnsupportedSchema("schema is nested too deep to be compiled here") from None
    judge = _metered(draft, meter, formats)
    return CompiledSchema(
        _validator=judge(schema, registry=REGISTRY, format_checker=_FORMATS if formats else None),
        _meter=meter,
    )


def _draft_of(schema: Json) -> type[Validator]:
    """The draft that `$schema` names, the latest where it names none."""
    named = schema.get("$schema", _LATEST) if isinstance(schema, dict) else _LATEST
    draft = DRAFTS.get(str(named).rstrip("#"))
    if draft is None:
        raise UnsupportedSchema(f"$schema {str(named)[:80]!r} is not a draft we know")
    return draft


def _check_parts(schema: Json) -> None:
    """Refuse what only some answers would run into: references that lead nowhere, patterns beyond RE2."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    spec = DRAFT202012 if named is None else specification_with(named)
    root = spec.create_resource(schema)
    waiting = [(root, REGISTRY.resolver_with_root(root))]
    seen: set[int] = set()
    keywords: set[str] = set()
    while waiting:
        resource, resolver = waiting.pop()
        contents = resource.contents
        if not isinstance(contents, dict) or id(contents) in seen:
            continue
        seen.add(id(contents))
        _draft_of(contents)  # a part may name its own
        keywords |= contents.keys()
        patterns = contents.get("patternProperties")
        for pattern in [contents.get("pattern"), *(patterns if isinstance(patterns, dict) else ())]:
            if isinstance(pattern, str):
                matcher(pattern)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(contents.get(keyword), str):
                target = resolver.lookup(contents[keyword])
                waiting.append((spec.create_resource(target.contents), target.resolver))
        for part in resource.subresources():
            waiting.append((part, resolver.in_subresource(part)))
    if {"unevaluatedProperties", "patternProperties"} <= keywords:
        # jsonschema matches these patterns itself, by backtracking
        raise UnsupportedSchema("unevaluatedProperties beside patternProperties")


def _metered(draft: type[Validator], meter: _Meter, formats: bool) -> Callable[..., Any]:
    """The draft with our patterns and uniqueness, each keyword counted."""
    keywords = {**draft.VALIDATORS, **own_keywords(draft, formats=formats)}

    def counted(keyword: Any) -> Any:
        def count_then_judge(validator: Any, value: Json, instance: Json, schema: Json) -> Any:
            meter.step()
            return keyword(validator, value, instance, schema)

        return count_then_judge

    extend: Any = jsonschema.validators.extend
    extended: Callable[..., Any] = extend(
        draft, {name: counted(keyword) for name, keyword in keywords.items()}
    )
    return extended


def _format_checker() -> jsonschema.FormatChecker:
    """Our formats for every draft; a format is said of strings, and of nothing else."""

    def of_strings(conforms: Callable[[str], bool]) -> Callable[[object], bool]:
        return lambda value: not isinstance(value, str) or conforms(value)

    checker = jsonschema.FormatChecker(formats=())
    checker.checkers = {name: (of_strings(conforms), ()) for name, conforms in FORMATS.items()}
    return checker


_FORMATS = _format_checker()


def _depth(value: Json) -> int:
    depth = 0
    level = [value]
    while level:
        depth += 1
        level = [
            inner
            for outer in level
            for inner in (
                outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ()
            )
        ]
    return depth


def _pointer(path: Any) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
