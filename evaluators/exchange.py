"""The nouns every evaluator sees: a request, and the outcome a tier gave for it.

`service.wire` makes these from bytes; evaluators and the worker read them. Nothing here says which tier
answered: an evaluator cannot prefer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

Json = Any
"""A parsed JSON value."""


class Endpoint(StrEnum):
    """The generating endpoints, by path."""

    CHAT_COMPLETIONS = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    RESPONSES = "/v1/responses"
    MESSAGES = "/v1/messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call that a model asked for; `arguments` is the text it wrote, not what it means."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the request offers; `parameters` is its JSON Schema, None when it takes anything."""

    name: str
    parameters: Json = None
    strict: bool = False
    free_form: bool = False
    """Takes any text as its argument (OpenAI's custom tools), not a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of the prompt; `text` joins its text parts in order."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    media: tuple[str, ...] = ()
    """A digest for each part that is not text (image, audio, file), so that turns differing in one differ."""


class Format(StrEnum):
    """What the request says the answer must be."""

    TEXT = "text"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"


class GuideKind(StrEnum):
    """What, other than JSON, an engine was told to keep to."""

    CHOICE = "choice"
    REGEX = "regex"
    GRAMMAR = "grammar"
    STRUCTURAL_TAG = "structural_tag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A constraint that is not JSON, as the request wrote it."""

    kind: GuideKind
    choices: tuple[str, ...] = ()
    """The texts to choose from (kind choice)."""
    written: str = ""
    """The regular expression or grammar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A fact of the context with a known answer: ask for `key`, expect `value`.

    `depth` is where the value stands in the context, 0 (start) to 1 (end).
    """

    key: str
    value: str
    question: str
    depth: float
    others: tuple[str, ...] = ()
    """Further values that the answer has to name as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked, whatever dialect it came in.

    `body` is the parsed wire body that made it: replays start from it and evaluators may look into it.
    """

    endpoint: Endpoint
    model: str
    messages: tuple[Message, ...]
    format: Format = Format.TEXT
    schema: Json = None
    """JSON Schema the answer must satisfy (format json_schema), else None."""
    constrained: bool = False
    """The engine was asked to constrain decoding, so that parsing alone proves little."""
    guide: Guide | None = None
    """What the text must keep to where that is not JSON."""
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the name of the one tool that must be called."""
    parallel_calls: bool = True
    """False where the request forbids more than one call in an answer."""
    stream: bool = False
    max_tokens: int | None = None
    expects_json: bool = False
    """A rule of the model says so, though the request does not."""
    json_lines: bool = False
    """That rule expects one JSON value a line instead of one in all."""
    accept_recoverable: bool = False
    """A rule of the model lets JSON pass that stands in a fence or has prose around it."""
    needle: Needle | None = None
    """Set on recall probes only."""
    body: Mapping[str, Json] = field(default_factory=dict)

    @property
    def asked(self) -> tuple[str, ...]:
        """What its user said, turn by turn, whoever wrote the instructions; without a user, every turn."""
        said = tuple(message.text for message in self.messages if message.role == "user")
        return said or tuple(message.text for message in self.messages)

    @property
    def wants_json(self) -> bool:
        """Whether the text of its answer is to be JSON: by its own format, or by a rule of the model."""
        return self.format is not Format.TEXT or self.expects_json

    @property
    def wants_lines(self) -> bool:
        """Whether that rule asks for JSON lines; a format that the request names goes before it."""
        return self.json_lines and self.format is Format.TEXT

    def values_in(self, text: str) -> list[str]:
        """The parts of an answer's text that are each to be one JSON value: all of it, or its lines."""
        return [line for line in text.split("\n") if line.strip()] if self.wants_lines else [text]

    @property
    def offers_tools(self) -> bool:
        """Whether its answer may call a tool."""
        return bool(self.tools) and self.tool_choice != "none"


class Expected(StrEnum):
    """What answers are to be although their requests do not ask for it."""

    NONE = "none"
    JSON = "json"
    JSON_LINES = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRule:
    """What the configuration says of a model's answers, whatever a request says."""

    expects_json: bool = False
    json_lines: bool = False
    accept_recoverable: bool = False
    paths: Mapping[str, Expected] = field(default_factory=dict)
    """By endpoint, where another rule holds there."""

    def applied_to(self, request: Request, told: str = "") -> Request:
        """The request as it is to be judged.

        `told` is what came with it (a header): one of `Expected` goes before the path's rule, which goes
        before the model's. Anything else tells nothing.
        """
        expected = Expected(told) if told in set(Expected) else self.paths.get(request.endpoint)
        if expected is None:
            expected = self._of_model
        return replace(
            request,
            expects_json=expected is not Expected.NONE,
            json_lines=expected is Expected.JSON_LINES,
            accept_recoverable=self.accept_recoverable,
        )

    @property
    def _of_model(self) -> Expected:
        if self.json_lines:
            return Expected.JSON_LINES
        return Expected.JSON if self.expects_json else Expected.NONE


REFUSING_FINISHES = frozenset({"content_filter", "refusal"})
"""Finish reasons by which an engine says that it, or a filter of its, declined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model wrote. Streamed and unstreamed answers of the same content are equal here."""

    text: str = ""
    reasoning: str = ""
    """Thinking, by field or by `<think>` tags; never judged as the answer."""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    """OpenAI's words: stop, length, tool_calls, content_filter ..."""
    refusal: str | None = None
    """The refusal field or content part, when the engine says so itself."""
    prompt_tokens: int | None = None
    """All of the prompt, whatever of it came from a cache."""
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt, served from the engine's prefix cache; None where it does not say."""
    reasoning_tokens: int | None = None
    """Of those completed, thought and perhaps not shown; None where the engine does not say."""
    reasoning_hidden: bool = False
    """The answer itself says that there was thinking which it does not show, or not all of it."""
    broken_logprobs: int = 0
    """Tokens written whose log probability is no finite number; only where a request asks for these."""


class FaultKind(StrEnum):
    """Why there is no answer, and so who is to blame."""

    UNREACHABLE = "unreachable"
    OVERLOADED = "overloaded"
    """429 or 503."""
    TIMEOUT = "timeout"
    """Our own limit on a replay."""
    CENSORED = "censored"
    """The client hung up; says nothing about the tier."""
    SERVER_ERROR = "server_error"
    CUT_OFF = "cut_off"
    STREAM_ERROR = "stream_error"
    UNREADABLE = "unreadable"
    """A 200 whose body is not of its dialect."""
    REJECTED = "rejected"
    """Another 4xx: the tier refused the request itself."""


SHADOW_FAULTS = frozenset(
    {FaultKind.UNREACHABLE, FaultKind.OVERLOADED, FaultKind.TIMEOUT, FaultKind.CENSORED}
)
"""Faults of the infrastructure around a tier. They are retried and never held against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """No answer, and why."""

    kind: FaultKind
    status: int | None = None
    detail: str = ""

    def __str__(self) -> str:
        """`stream_error: out of memory`, or its kind alone."""
        return f"{self.kind}: {self.detail}" if self.detail else str(self.kind)

    @property
    def of_infrastructure(self) -> bool:
        """True when the fault says nothing about what the tier generates."""
        return self.kind in SHADOW_FAULTS


Outcome = Answer | Fault
