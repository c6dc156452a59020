"""Anthropic messages: requests, and answers whole or streamed, as requests and answers of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluators.exchange import Answer, Endpoint, Json, Message, Request, Tool, ToolCall
from evaluators.strict_json import NotJson, TooMuch, parse
from service.wire import shapes
from service.wire.content import parts, read_content
from service.wire.formats import asking, read_formats
from service.wire.shapes import WrongShape
from service.wire.thinking import join_thinking, split_thinking

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""Stop reasons in OpenAI's words; `refusal`, `pause_turn` and what comes later keep their own."""
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Beside `input_tokens`, not within: so Anthropic's prompt caching defines it, and vLLM since its pull
request 40912. Engines that do not tell leave them out."""


def read_request(body: Mapping[str, Json]) -> Request:
    """Raises `WrongShape` when the body is not a messages request."""
    messages = [m for item in shapes.items(body.get("messages"), "messages") for m in _turn(item)]
    if not messages:
        raise WrongShape("messages is missing or empty")
    if body.get("system") is not None:
        system = read_content(body["system"], "system", between="\n")
        messages.insert(0, Message(role="system", text=system.text, media=system.media))
    config = shapes.mapping(body.get("output_config"), "output_config")
    asked = read_formats(body, config.get("format", body.get("output_format")))
    tools = tuple(
        Tool(
            name=shapes.text(fields.get("name"), "name of a tool"),
            parameters=fields.get("input_schema"),
            strict=bool(fields.get("strict")),
        )
        for item in shapes.items(body.get("tools"), "tools")
        if (fields := shapes.mapping(item, "a tool")).get("type") in (None, "custom")
    )
    if any(not tool.name for tool in tools):
        raise WrongShape("a tool has no name")
    return asking(
        Endpoint.MESSAGES,
        body,
        messages,
        asked,
        limit="max_tokens",
        tools=tools,
        tool_choice=_tool_choice(body.get("tool_choice")) if tools else "none",
        parallel_calls=not _calls_once(body.get("tool_choice")),
    )


def _turn(item: Json) -> list[Message]:
    """One message; a user turn that carries tool output becomes a tool message and what is said besides."""
    fields = shapes.mapping(item, "a message")
    role = shapes.text(fields.get("role"), "role of a message")
    if not role:
        raise WrongShape("a message has no role")
    spoken: list[Json] = []
    calls: list[ToolCall] = []
    turns: list[Message] = []
    for part in parts(fields.get("content"), "content of a message"):
        type = part.get("type")
        if type == "tool_use":
            calls.append(_call(part, shapes.write_json(part.get("input") or {})))
        elif type == "tool_result":
            output = read_content(part.get("content"), "content of a tool result", between="\n")
            turns.append(Message(role="tool", text=output.text, media=output.media))
        else:
            spoken.append(part)
    if spoken or calls or not turns:
        content = read_content(spoken, "content of a message", between="\n")
        turns.append(Message(role=role, text=content.text, tool_calls=tuple(calls), media=content.media))
    return turns


def _call(block: Mapping[str, Json], arguments: str) -> ToolCall:
    return ToolCall(
        name=shapes.text(block.get("name"), "name of a tool use"),
        arguments=arguments,
        id=shapes.text(block.get("id"), "id of a tool use"),
    )


def _tool_choice(choice: Json) -> str:
    fields = shapes.mapping(choice, "tool_choice")
    type = shapes.text(fields.get("type"), "type of tool_choice") or "auto"
    if type == "tool":
        return shapes.text(fields.get("name"), "name of tool_choice") or "required"
    named = {"auto": "auto", "any": "required", "none": "none"}
    if type not in named:
        raise WrongShape(f"tool_choice {type!r} is not known (auto, any, tool, none)")
    return named[type]


def _calls_once(choice: Json) -> bool:
    return isinstance(choice, dict) and choice.get("disable_parallel_tool_use") is True


@dataclass(slots=True, kw_only=True)
class _Block:
    """A content block as it grows; `pieces` are its text, thinking, or the JSON of its input."""

    place: int
    start: Mapping[str, Json]
    pieces: list[str] = field(default_factory=list)


class MessagesAnswer:
    """Reads an answer, whole or streamed. `message_stop` may be missing once the stop reason came."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._by_index: dict[int, _Block] = {}
        self._stop_reason: str | None = None
        self._usage: dict[str, Json] = {}

    def add_body(self, body: Mapping[str, Json]) -> None:
        if not isinstance(body.get("content"), list):
            raise WrongShape("the answer has no content")
        for block in body["content"]:
            self._begin(None, shapes.mapping(block, "a content block"))
        self._end(body, body.get("usage"))

    def add_event(self, event: Mapping[str, Json]) -> None:
        type = shapes.text(event.get("type"), "type of an event")
        if type == "message_start":
            message = shapes.mapping(event.get("message"), "message of an event")
            self._end(message, message.get("usage"))
        elif type == "content_block_start":
            self._begin(self._index(event), shapes.mapping(event.get("content_block"), "content_block"))
        elif type == "content_block_delta":
            delta = shapes.mapping(event.get("delta"), "delta")
            block = self._block(self._index(event))
            for name in ("text", "thinking", "partial_json"):
                block.pieces.append(shapes.text(delta.get(name), f"{name} of a delta"))
        elif type == "message_delta":
            self._end(shapes.mapping(event.get("delta"), "delta"), event.get("usage"))

    def _index(self, event: Mapping[str, Json]) -> int | None:
        return shapes.count(event.get("index"), "index of a block")

    def _begin(self, index: int | None, start: Mapping[str, Json]) -> _Block:
        """A block of its own, even where its index was used before or is missing."""
        block = _Block(place=len(self._blocks) if index is None else index, start=start)
        self._blocks.append(block)
        if index is not None:
            self._by_index[index] = block
        return block

    def _block(self, index: int | None) -> _Block:
        """The block that a delta goes on with; text, when none has begun."""
        held = self._by_index.get(index) if index is not None else next(reversed(self._blocks), None)
        return self._begin(index, {"type": "text"}) if held is None else held

    def _end(self, fields: Mapping[str, Json], usage: Json) -> None:
        stop = shapes.text(fields.get("stop_reason"), "stop_reason")
        self._stop_reason = _FINISH.get(stop, stop) or self._stop_reason
        self._usage.update(shapes.mapping(usage, "usage"))

    @property
    def ended(self) -> bool:
        return self._stop_reason is not None

    @property
    def failure(self) -> str | None:
        return None  # this dialect reports errors in a body of their own

    def answer(self) -> Answer:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        hidden = False
        for block in sorted(self._blocks, key=lambda block: block.place):
            type = block.start.get("type")
            if type == "text":
                texts += [shapes.text(block.start.get("text"), "text of a block"), *block.pieces]
            elif type == "thinking":
                begun = shapes.text(block.start.get("thinking"), "thinking of a block")
                thoughts.append(shapes.joined([begun, *block.pieces]))
                hidden |= not thoughts[-1]  # asked for with `display: omitted`
            elif type == "redacted_thinking":
                hidden = True
            elif type == "tool_use":
                calls.append(_call(block.start, _input(block)))
        text, thinking = split_thinking(shapes.joined(texts))
        return Answer(
            text=text,
            reasoning=join_thinking(*thoughts, thinking),
            tool_calls=tuple(calls),
            finish_reason=self._stop_reason,
            prompt_tokens=self._prompt_tokens(),
            completion_tokens=shapes.count(self._usage.get("output_tokens"), "output_tokens"),
            cached_tokens=shapes.told_count(self._usage.get("cache_read_input_tokens")),
            reasoning_hidden=hidden,
        )

    def _prompt_tokens(self) -> int | None:
        fresh = shapes.count(self._usage.get("input_tokens"), "input_tokens")
        if fresh is None:
            return None
        return fresh + sum(shapes.told_count(self._usage.get(name)) or 0 for name in _CACHED)


def _input(block: _Block) -> str:
    """The arguments as text: what was streamed in the shortest JSON, so that it equals the unstreamed object.

    What is not JSON, or uses a name twice, stays as it was written.
    """
    written = shapes.joined(block.pieces)
    if not written:
        return shapes.write_json(block.start.get("input") or {})
    try:
        parsed = parse(written)
    except (NotJson, TooMuch):
        return written
    return written if parsed.duplicates else shapes.write_json(parsed.value)
