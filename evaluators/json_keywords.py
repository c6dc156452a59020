"""Keywords of JSON Schema that we judge ourselves: by RE2, exactly, or in linear time.

Each has the signature of `jsonschema`'s keywords: (validator, keyword's value, instance, schema) -> errors.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from evaluators.exchange import Json
from evaluators.patterns import matcher
from evaluators.strict_json import NotJson, TooMuch, parse

Keyword = Callable[[Any, Any, Json, Any], Iterator[ValidationError]]


def own_keywords(draft: type[Validator], *, formats: bool) -> dict[str, Keyword]:
    """What replaces the draft's keywords; `formats`: whether the content of strings is asserted, too."""
    keywords: dict[str, Keyword] = {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "uniqueItems": unique_items,
    }
    keywords["divisibleBy" if draft is jsonschema.Draft3Validator else "multipleOf"] = multiple_of
    if "dependencies" not in draft.VALIDATORS:
        # gone from the drafts since 2019-09, yet still written by tools that make schemas
        keywords["dependencies"] = jsonschema.Draft7Validator.VALIDATORS["dependencies"]
    if formats and draft is jsonschema.Draft7Validator:
        # asserted by draft 7 as formats are (section 8), annotations since
        keywords["contentEncoding"] = content
        keywords["contentMediaType"] = content
    return keywords


def pattern(validator: Any, written: str, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """JSON Schema validation, 6.3.3, by a matcher that takes time in the length of the text."""
    if isinstance(instance, str) and not matcher(written)(instance):
        yield ValidationError(f"{instance[:80]!r} does not match {written[:80]!r}")


def pattern_properties(
    validator: Any, patterns: Mapping[str, Json], instance: Json, schema: Json
) -> Iterator[ValidationError]:
    """JSON Schema core, 10.3.2.2, by the same matcher."""
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        matches = matcher(pattern)
        for name, value in instance.items():
            if matches(name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def additional_properties(
    validator: Any, additional: Json, instance: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """JSON Schema core, 10.3.2.3, by the same matcher; the first name that is not allowed and all others."""
    if not isinstance(instance, dict):
        return
    named = schema.get("properties", {})
    patterns = [matcher(pattern) for pattern in schema.get("patternProperties", {})]
    for name, value in instance.items():
        if name in named or any(matches(name) for matches in patterns):
            continue
        if additional is False:
            yield ValidationError(f"additional property {name[:80]!r} is not allowed")
        else:
            yield from validator.descend(value, additional, path=name)


def content(
    validator: Any, value: Json, instance: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """Base64 and JSON within a string, the two that can be told."""
    problem = _content_problem(instance, schema) if isinstance(instance, str) else ""
    if problem:
        yield ValidationError(f"{instance[:80]!r} {problem}")


def _content_problem(text: str, schema: Mapping[str, Json]) -> str:
    held: str | bytes = text
    if schema.get("contentEncoding") == "base64":
        try:
            held = b64decode(text, validate=True)
        except ValueError:  # binascii's, and that of a character beyond ASCII
            return "is not base64"
    if schema.get("contentMediaType") == "application/json":
        try:
            parse(held)
        except (NotJson, TooMuch) as error:
            return f"does not hold JSON: {error}"
    return ""


def multiple_of(validator: Any, factor: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """Exact, on the decimals as they are written: 0.07 is a multiple of 0.01, whatever doubles say."""
    if not validator.is_type(instance, "number"):
        return
    if Fraction(repr(instance)) % Fraction(repr(factor)):
        yield ValidationError(f"{instance!r} is not a multiple of {factor!r}")


def unique_items(validator: Any, unique: bool, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """Linear, where comparing each with each is quadratic in what a model wrote."""
    if unique and isinstance(instance, list):
        frozen = [_frozen(item) for item in instance]
        if len(set(frozen)) < len(frozen):
            counts = Counter(frozen)
            repeated = next(item for item, one in zip(instance, frozen, strict=True) if counts[one] > 1)
            yield ValidationError(f"{str(repeated)[:80]!r} occurs twice")


def _frozen(value: Json) -> object:
    """A hashable equal of a JSON value; 1 equals 1.0, and neither equals true."""
    if isinstance(value, dict):
        return "object", frozenset((name, _frozen(member)) for name, member in value.items())
    if isinstance(value, list):
        return "array", tuple(_frozen(item) for item in value)
    return ("boolean", value) if isinstance(value, bool) else value
