"""Which events of a stream carry output, and what the stream tells of usage and of its end; by dialect.

Output is content, reasoning, tool arguments and refusals. Roles, names of tools, comments and usage are none.
The readers are handed every event of every stream while others wait to be timed, so they look only where
output can be. What is not of the dialect raises TypeError or AttributeError, as it comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from evaluators.exchange import Endpoint

Event = Mapping[str, Any]


class Output(ABC):
    """One answer as far as it came."""

    __slots__ = ("cached_tokens", "ended", "failure", "prompt_tokens", "tokens", "written")

    def __init__(self) -> None:
        self.ended = False
        """The model was seen to finish."""
        self.failure = False
        """The engine gave up, and says so in the stream."""
        self.tokens: int | None = None
        """Written, as the engine counts them; None where it does not say."""
        self.prompt_tokens: int | None = None
        """All of the prompt."""
        self.cached_tokens: int | None = None
        """Of the prompt, from the engine's prefix cache."""
        self.written = 0
        """Bytes of output so far, in UTF-8."""

    @abstractmethod
    def take(self, event: Event) -> bool:
        """Whether the event carries output."""

    def _wrote(self, text: Any) -> bool:
        """Whether there is output in what should be text."""
        if isinstance(text, str):
            self.written += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return bool(text)

    def _finish(self, reason: str) -> None:
        self.ended = True
        if reason in ("error", "abort"):
            self.failure = True

    def _openai_usage(self, usage: Event, prompt: str, output: str) -> None:
        self.tokens = _count(usage.get(output), self.tokens)
        self.prompt_tokens = _count(usage.get(prompt), self.prompt_tokens)
        details = usage.get(f"{prompt}_details")
        if details:
            self.cached_tokens = _count(details.get("cached_tokens"), self.cached_tokens)


class ChatOutput(Output):
    """OpenAI chat completions."""

    __slots__ = ()

    def take(self, event: Event) -> bool:
        carried = False
        for choice in event.get("choices") or ():
            delta = choice.get("delta")
            if delta and not carried:
                carried = self._wrote(
                    delta.get("content")
                    or delta.get("reasoning_content")
                    or delta.get("reasoning")
                    or delta.get("refusal")
                    or ("tool_calls" in delta and _arguments(delta["tool_calls"]))
                    or ("function_call" in delta and (delta["function_call"] or {}).get("arguments"))
                )
            if reason := choice.get("finish_reason"):
                self._finish(reason)
        if usage := event.get("usage"):
            self._openai_usage(usage, "prompt_tokens", "completion_tokens")
        if event.get("error"):
            self.failure = True
        return carried


class CompletionsOutput(Output):
    """OpenAI completions."""

    __slots__ = ()

    def take(self, event: Event) -> bool:
        carried = False
        for choice in event.get("choices") or ():
            if self._wrote(choice.get("text")):
                carried = True
            if reason := choice.get("finish_reason"):
                self._finish(reason)
        if usage := event.get("usage"):
            self._openai_usage(usage, "prompt_tokens", "completion_tokens")
        if event.get("error"):
            self.failure = True
        return carried


_RESPONSES_DELTAS = frozenset(
    f"response.{kind}.delta"
    for kind in (
        "output_text",
        "refusal",
        "reasoning",
        "reasoning_text",
        "reasoning_summary",
        "reasoning_summary_text",
        "function_call_arguments",
        "custom_tool_call_input",
        "mcp_call_arguments",
        "code_interpreter_call_code",
    )
)
_RESPONSES_ENDS = frozenset({"response.completed", "response.incomplete"})
_RESPONSES_FAILURES = frozenset({"response.failed", "response.cancelled", "error"})


class ResponsesOutput(Output):
    """OpenAI responses."""

    __slots__ = ()

    def take(self, event: Event) -> bool:
        kind = event.get("type")
        if kind in _RESPONSES_DELTAS:
            return self._wrote(event.get("delta"))
        if kind in _RESPONSES_ENDS:
            self.ended = True
            response = event.get("response") or {}
            if usage := response.get("usage"):
                self._openai_usage(usage, "input_tokens", "output_tokens")
        elif kind in _RESPONSES_FAILURES or event.get("error"):
            self.failure = True
        return False


class MessagesOutput(Output):
    """Anthropic messages."""

    __slots__ = ("_created", "_fresh")

    def __init__(self) -> None:
        super().__init__()
        self._fresh: int | None = None
        self._created: int | None = None
        """Tokens of the prompt that went into the cache."""

    def take(self, event: Event) -> bool:
        kind = event.get("type")
        if kind == "content_block_delta":
            delta = event.get("delta") or {}
            return self._wrote(delta.get("text") or delta.get("thinking") or delta.get("partial_json"))
        if kind == "message_start":
            self._usage((event.get("message") or {}).get("usage"))
        elif kind == "message_delta":
            if reason := (event.get("delta") or {}).get("stop_reason"):
                self._finish(reason)
            self._usage(event.get("usage"))
        elif kind == "error" or event.get("error"):
            self.failure = True
        return False

    def _usage(self, usage: Event | None) -> None:
        """`input_tokens` are only those that no cache has to do with (`wire.messages`)."""
        if usage:
            self.tokens = _count(usage.get("output_tokens"), self.tokens)
            self._fresh = _count(usage.get("input_tokens"), self._fresh)
            self._created = _count(usage.get("cache_creation_input_tokens"), self._created)
            self.cached_tokens = _count(usage.get("cache_read_input_tokens"), self.cached_tokens)
            if self._fresh is not None:
                self.prompt_tokens = self._fresh + (self.cached_tokens or 0) + (self._created or 0)


OUTPUTS: Mapping[Endpoint, Callable[[], Output]] = {
    Endpoint.CHAT_COMPLETIONS: ChatOutput,
    Endpoint.COMPLETIONS: CompletionsOutput,
    Endpoint.RESPONSES: ResponsesOutput,
    Endpoint.MESSAGES: MessagesOutput,
}


def _arguments(calls: Any) -> Any:
    """What the calls of one event add to their arguments; anything but text as it comes."""
    told = ""
    for call in calls or ():
        piece = (call.get("function") or {}).get("arguments") or (call.get("custom") or {}).get("input")
        if piece and not isinstance(piece, str):
            return piece
        told += piece or ""
    return told


MOST_TOKENS = 10**8
"""Of one answer or prompt: what claims more claims nothing that can be added up."""


def _count(told: Any, before: int | None) -> int | None:
    return told if type(told) is int and 0 <= told <= MOST_TOKENS else before
