"""Whether an answer is the JSON, the tool call or the guided text that its request asked for.

One exclusive class per answer, in this order of precedence: `refused`, `runaway`, `truncated` and `empty` say
that no attempt was finished; `tool_missing`, `tool_unknown`, `arguments_not_json` and
`arguments_schema_violation` judge calls; `recoverable`, `not_json` and `schema_violation` judge text (the
last also against a choice or a regular expression);
`unjudgeable` is an answer beyond our bounds. `ok` passes, and so does `no_call` where a tool was offered and
not demanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from evaluators.call_marks import call_in
from evaluators.exchange import (
    REFUSING_FINISHES,
    Answer,
    Fault,
    Format,
    Guide,
    Json,
    Request,
    Tool,
    ToolCall,
)
from evaluators.guides import MOST_TEXT, UnsupportedGuide, check_guide, departure
from evaluators.json_schema import UnsupportedSchema, compile_schema
from evaluators.patterns import TooLong
from evaluators.refusal_rules import Stance, read_stance
from evaluators.score import Score, Unscored, UnscoredReason, excerpt, failed
from evaluators.strict_json import MAX_CHARS, NotJson, TooMuch, parse

_FENCE = re.compile(r"```[A-Za-z0-9_+-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```", re.DOTALL)
RUN = 512
"""Characters of repetition at the end of an answer that ran to its token limit which make it a `runaway`."""
MOST_LINES = 10_000
"""JSON lines of one answer that are judged."""


@dataclass(frozen=True, slots=True)
class StructuredOutput:
    """Judges every request that asks for JSON, gives the engine a guide, or offers tools."""

    name: ClassVar[str] = "structured_output"
    version: ClassVar[str] = "3"

    def applies(self, request: Request) -> bool:
        """By the request alone: a format or guide, a rule that expects JSON, or tools that may be called."""
        return request.needle is None and (
            request.guide is not None or request.wants_json or request.offers_tools
        )

    def score(self, request: Request, answer: Answer) -> Score | Unscored:
        """The class of one answer. `Unscored` when a schema or guide of the request cannot be evaluated."""
        if (unscored := self.prepare(request)) is not None:
            return unscored
        try:
            return self._class_of(request, answer)
        except UnsupportedSchema as error:
            return _unsupported(error)
        except TooMuch as error:
            return failed("unjudgeable", f"the answer is beyond what is judged: {error}", answer.text)

    def prepare(self, request: Request) -> Unscored | None:
        """Every schema and the guide, whether an answer needs them or not; compiled ones are kept."""
        try:
            for schema in _schemas(request):
                compile_schema(schema)
            if request.guide is not None:
                check_guide(request.guide)
        except UnsupportedSchema as error:
            return _unsupported(error)
        except UnsupportedGuide as error:
            return Unscored(reason=UnscoredReason.UNSUPPORTED_GUIDE, detail=excerpt(str(error)))
        return None

    def score_fault(self, request: Request, fault: Fault) -> Score:
        """No answer is no structured answer."""
        return failed("fault", str(fault))

    def _class_of(self, request: Request, answer: Answer) -> Score:
        if answer.refusal or answer.finish_reason in REFUSING_FINISHES:
            return failed("refused", "the engine reports a refusal", answer.refusal or answer.text)
        if answer.tool_calls and request.offers_tools:
            return _judge_calls(request, answer)
        written = answer.text.strip()
        unfinished = _unfinished(answer)
        if not written:
            return unfinished or failed("empty", "nothing was written", "")
        if request.offers_tools:
            missing = _missing_call(request, answer)
            if missing is not None:
                return unfinished or missing
        if unfinished is not None and unfinished.label == "runaway":
            return unfinished  # whole JSON and then white space to the token limit, too
        if request.guide is not None:
            return _judge_guided(request.guide, answer.text, unfinished)
        if not request.wants_json:
            return Score(passed=True, label="no_call", reason="a call was offered and not demanded")
        return _judge_text(request, answer, unfinished)


def _judge_guided(guide: Guide, text: str, unfinished: Score | None) -> Score:
    if len(text) > MOST_TEXT:
        return failed("unjudgeable", f"{len(text)} characters > {MOST_TEXT}", text)
    try:
        problem = departure(guide, text)
    except TooLong as error:
        return failed("unjudgeable", str(error), text)
    if problem is None:
        return Score(passed=True, label="ok")
    return unfinished or failed("schema_violation", problem, text)


def _judge_text(request: Request, answer: Answer, unfinished: Score | None) -> Score:
    written = answer.text
    try:
        duplicates, problem = _read(request, written)
    except NotJson as error:
        if unfinished is not None:
            return unfinished
        return _judge_not_json(request, written, error)
    if problem is not None:
        return problem
    noted = f"names used twice: {', '.join(duplicates[:5])}" if duplicates else ""
    return Score(passed=True, label="ok", reason=excerpt(noted))


def _judge_not_json(request: Request, written: str, error: NotJson) -> Score:
    for within in _recovered(written, lines=request.wants_lines):
        if _is_recoverable(request, within):
            return Score(
                passed=request.accept_recoverable,
                label="recoverable",
                reason="JSON stands within other text (a fence, prose, a byte order mark)",
                evidence=excerpt(written),
            )
    reading = read_stance(written)
    if reading.stance is Stance.FULL:
        return failed("refused", "the text declines the request", reading.span)
    return failed("not_json", f"expected JSON, found: {error}", written)


def _is_recoverable(request: Request, within: str) -> bool:
    """Whether this part of an answer is what was asked for, and more than a number or word of the prose."""
    try:
        holds = all(isinstance(parse(line).value, dict | list) for line in request.values_in(within))
        return holds and _read(request, within)[1] is None
    except NotJson:
        return False


def _read(request: Request, written: str) -> tuple[tuple[str, ...], Score | None]:
    """Names used twice, and how the values fail what was asked of them. Raises `NotJson` or `TooMuch`."""
    duplicates: list[str] = []
    if len(written) > MAX_CHARS:
        raise TooMuch(f"{len(written)} characters > {MAX_CHARS}")
    values = request.values_in(written)
    if len(values) > MOST_LINES:
        raise TooMuch(f"{len(values)} lines > {MOST_LINES}")
    for number, line in enumerate(values, 1):
        try:
            parsed = parse(line)
        except NotJson as error:
            raise (NotJson(f"line {number}: {error}") if request.wants_lines else error) from None
        duplicates += parsed.duplicates
        problem = _problem(request, parsed.value, len(line))
        if problem is not None:
            return tuple(duplicates), problem
    return tuple(duplicates), None


def _schemas(request: Request) -> list[Json]:
    schemas = [] if request.schema is None else [request.schema]
    if request.offers_tools:
        schemas += [tool.parameters for tool in request.tools if tool.parameters is not None]
    return schemas


def _unsupported(error: Exception) -> Unscored:
    return Unscored(reason=UnscoredReason.UNSUPPORTED_SCHEMA, detail=excerpt(str(error)))


def _unfinished(answer: Answer) -> Score | None:
    """What the token limit did to an answer, None when it ended by itself."""
    if answer.finish_reason != "length":
        return None
    written = answer.text or "".join(call.arguments for call in answer.tool_calls)
    if repeats(written):
        return failed("runaway", "ran to the token limit repeating itself", written[-200:])
    return failed("truncated", "the token limit came before the end of the answer", written[-200:])


def repeats(text: str) -> bool:
    """Whether a text ends in `RUN` characters of white space, or of one unit of at most 128 said again."""
    tail = text[-RUN:]
    if len(tail) < RUN:
        return False
    if not tail.strip():
        return True
    return any(tail[unit:] == tail[:-unit] for unit in range(1, 129))


def _missing_call(request: Request, answer: Answer) -> Score | None:
    """The failure of an answer without a call where there should be one."""
    if meant := call_in(answer.text):
        reason = "a call stands in the text, where the engine could not read it"
        return failed("arguments_not_json", reason, meant)
    if answer.finish_reason == "tool_calls":
        return failed("tool_missing", "finish_reason is tool_calls, and there is no call", answer.text)
    if request.tool_choice != "auto":
        demanded = "a call" if request.tool_choice == "required" else f"a call of {request.tool_choice!r}"
        return failed("tool_missing", f"expected {demanded}, found text", answer.text)
    return None


_GRAVEST_CALL = (
    "tool_unknown",
    "unjudgeable",
    "arguments_not_json",
    "truncated",
    "runaway",
    "arguments_schema_violation",
)
"""Of several calls that fail, the class that counts, so that no order of the calls changes it."""


def _judge_calls(request: Request, answer: Answer) -> Score:
    """Every call must hold; calls may come in any order."""
    demanded = None if request.tool_choice in ("auto", "required") else request.tool_choice
    named = any(call.name == demanded for call in answer.tool_calls)
    tools = {tool.name: tool for tool in request.tools}
    failures: list[Score] = []
    for call in answer.tool_calls:
        tool = tools.get(call.name)
        if tool is None:
            failure: Score | None = _unknown(call, tools)
        elif named and call.name != demanded:
            # Whoever runs the calls would run one that was not asked for.
            failure = failed("tool_unknown", f"a call of {call.name!r} beside {demanded!r}", call.name)
        else:
            failure = _judge_arguments(tool, call, answer)
        if failure is not None:
            failures.append(failure)
    if failures:
        return min(failures, key=lambda each: (_GRAVEST_CALL.index(each.label), each.reason))
    if demanded is not None and not named:
        called = ", ".join(sorted(call.name for call in answer.tool_calls))
        return failed("tool_missing", f"expected a call of {demanded!r}, found {called}", called)
    return Score(passed=True, label="ok")


def _unknown(call: ToolCall, tools: dict[str, Tool]) -> Score:
    offered = ", ".join(sorted(tools))
    return failed("tool_unknown", f"no tool is called {call.name!r}; offered: {offered}", call.name)


def _judge_arguments(tool: Tool, call: ToolCall, answer: Answer) -> Score | None:
    if tool.free_form:
        return None
    schema = True if tool.parameters is None else tool.parameters
    # No arguments at all are how some engines write {}; right where the tool takes nothing it must be given.
    written = call.arguments if call.arguments.strip() else "{}"
    try:
        value = parse(written).value
    except NotJson as error:
        reason = f"arguments of {call.name!r} are not JSON: {error}"
        return _unfinished(answer) or failed("arguments_not_json", reason, call.arguments)
    except TooMuch as error:
        return failed("unjudgeable", f"arguments of {call.name!r}: {error}", call.arguments)
    if not isinstance(value, dict):
        reason = f"arguments of {call.name!r} are not an object"
        return failed("arguments_schema_violation", reason, call.arguments)
    violation = compile_schema(schema).violation(value, chars=len(written))
    if violation is None:
        return None
    if not call.arguments.strip():
        return failed("arguments_not_json", f"arguments of {call.name!r} are missing", "")
    reason = f"arguments of {call.name!r} at {violation.pointer or '/'}: {violation.reason}"
    return failed("arguments_schema_violation", reason, violation.pointer or call.arguments)


def _problem(request: Request, value: Json, chars: int) -> Score | None:
    """How a JSON value fails what was asked of it."""
    if request.format is Format.JSON_OBJECT and not isinstance(value, dict):
        return failed("schema_violation", "expected an object, found another JSON value", str(value))
    if request.schema is None:
        return None
    violation = compile_schema(request.schema).violation(value, chars=chars)
    if violation is None:
        return None
    reason = f"at {violation.pointer or '/'}: {violation.reason}"
    return failed("schema_violation", reason, violation.pointer or "/")


def _recovered(written: str, *, lines: bool) -> list[str]:
    """Where JSON may stand in an answer that is more than JSON, likeliest first.

    Of JSON `lines` a broken one is not prose: nothing that opens may be left out.
    """
    text = written.strip().removeprefix("\ufeff")
    found = [text] if text != written.strip() else []
    found += [match.group(1) for match in _FENCE.finditer(text)]
    opened = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    closed = max(text.rfind("}"), text.rfind("]"))
    if 0 <= opened < closed and not (lines and re.search(r"[{\[]", text[closed + 1 :])):
        found.append(text[opened : closed + 1])
    return found[:8]
