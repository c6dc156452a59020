"""Whether candidate and baseline wrote the same fields with the same values, where both owe JSON or calls.

Under constrained decoding both arms parse, and damage moves into the values. This compares the two answers of
a pair with each other instead of judging each by itself: the baseline is the reference and always passes, the
candidate passes where it agrees. Sampling alone makes answers differ, so the share means nothing beside zero
and everything beside the control's, which is the baseline against itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from evaluators.differences import Agreement, TooManyFields, agreement
from evaluators.exchange import Answer, Fault, Json, Request
from evaluators.field_names import ANY, field_name
from evaluators.score import ALONE, BROKEN, REFERENCE, Detail, NotApplicable, Score, excerpt, failed
from evaluators.strict_json import NotJson, TooMuch, parse

MOST_REASON = 500
"""Characters of a reason: room for some twenty pointers, as many as are kept with a pair."""


@dataclass(frozen=True, slots=True)
class FieldAgreement:
    """Applies where the request asks for JSON or offers tools; texts are not compared."""

    name: ClassVar[str] = "field_agreement"
    version: ClassVar[str] = "1"

    def applies(self, request: Request) -> bool:
        return request.needle is None and (request.wants_json or request.offers_tools)

    def score(self, request: Request, answer: Answer) -> NotApplicable:
        """One answer alone agrees with nothing."""
        return ALONE

    def score_fault(self, request: Request, fault: Fault) -> NotApplicable:
        return BROKEN

    def compare(self, request: Request, baseline: Answer, candidate: Answer) -> tuple[Score, Score]:
        """`agrees`, `values_differ`, `types_differ`, `fields_differ` (one has what the other lacks), or
        `unreadable` where an answer is not JSON or too large. The gravest counts; fields before types."""
        try:
            found = compare(request, baseline, candidate)
        except NotJson as error:
            return REFERENCE, failed("unreadable", str(error))
        except (TooMuch, TooManyFields) as error:
            return REFERENCE, failed("unreadable", f"too large: {error}")
        judged = _judged(found)
        return REFERENCE, replace(judged, details=_details(request, baseline, candidate, found))


def compare(request: Request, baseline: Answer, candidate: Answer) -> Agreement:
    """What the two wrote, compared; calls if there are any, else the JSON of the text.

    Raises `NotJson`, `TooMuch` or `TooManyFields` where that cannot be done.
    """
    if baseline.tool_calls or candidate.tool_calls or not request.wants_json:
        return agreement(_calls(baseline), _calls(candidate))
    values: list[Json] = []
    for arm, answer in (("baseline", baseline), ("candidate", candidate)):
        try:
            read = [parse(text).value for text in request.values_in(answer.text)]
        except NotJson as error:
            raise NotJson(f"the {arm}'s answer is not JSON: {error}") from None
        values.append(read if request.wants_lines else read[0])
    return agreement(*values)


MOST_NAMES = 60
"""Names of fields counted of one pair."""


def _details(request: Request, baseline: Answer, candidate: Answer, found: Agreement) -> tuple[Detail, ...]:
    """How often each field of the request's schema agrees or differs, in names of the schema alone."""
    calls = bool(baseline.tool_calls or candidate.tool_calls or not request.wants_json)
    tools = {tool.name: tool.parameters for tool in request.tools}
    called = [_calls(answer) for answer in (baseline, candidate)] if calls else []
    counted: Counter[tuple[str, str]] = Counter()
    kinds = (
        ("agrees", found.same),
        ("value", found.values),
        ("type", found.types),
        ("missing", found.missing),
    )
    for kind, pointers in kinds:
        for pointer in pointers:
            named = _of_call(tools, called, pointer) if calls else field_name(request.schema, pointer)
            counted[named, kind] += 1
    kept = sorted({name for name, _ in counted})[:MOST_NAMES]
    return tuple(Detail(name, kind, amount) for (name, kind), amount in counted.items() if name in kept)


def _of_call(tools: Mapping[str, Json], called: Sequence[Json], pointer: str) -> str:
    """`/0/arguments/city` as `/get_weather/city`; tools that the request does not offer are `*`."""
    place, _, below = pointer.removeprefix("/").partition("/")
    names = {calls[int(place)]["name"] for calls in called if place.isdecimal() and int(place) < len(calls)}
    name = names.pop() if len(names) == 1 else ""
    if name not in tools:
        return f"/{ANY}"
    tool = field_name({"properties": {name: {}}}, "/" + name.replace("~", "~0").replace("/", "~1"))
    part, _, argument = below.partition("/")
    return f"{tool}{field_name(tools[name], f'/{argument}')}" if part == "arguments" and argument else tool


def _calls(answer: Answer) -> Json:
    """Calls in one order, whatever order they came in; arguments that are not JSON stay text."""
    calls: list[Json] = []
    for call in answer.tool_calls:
        try:
            arguments = parse(call.arguments).value if call.arguments.strip() else {}
        except NotJson:
            arguments = call.arguments
        calls.append({"name": call.name, "arguments": arguments})
    return sorted(calls, key=lambda call: (call["name"], json.dumps(call["arguments"], sort_keys=True)))


def _judged(found: Agreement) -> Score:
    kinds = (
        ("fields_differ", "only in one answer", found.missing),
        ("types_differ", "of another type", found.types),
        ("values_differ", "of another value", found.values),
    )
    told = [f"{words}: {', '.join(at or '/' for at in where)}" for _, words, where in kinds if where]
    if not told:
        return Score(passed=True, label="agrees", reason=f"all {found.fields} fields agree")
    label = next(label for label, _, where in kinds if where)
    agreeing = found.fields - found.differing
    reason = f"{agreeing} of {found.fields} fields agree; {'; '.join(told)}"
    first = next(where[0] for _, _, where in kinds if where)
    return Score(
        passed=False, label=label, reason=excerpt(reason, MOST_REASON), evidence=excerpt(first or "/")
    )
