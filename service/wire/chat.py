"""OpenAI chat completions: requests, and answers whole or streamed, as requests and answers of ours."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.exchange import Answer, Endpoint, Json, Message, Request, Tool, ToolCall
from service.wire import shapes
from service.wire.content import read_content
from service.wire.formats import asking, read_formats
from service.wire.logprobs import broken
from service.wire.shapes import WrongShape
from service.wire.thinking import join_thinking, split_thinking
from service.wire.tool_calls import ToolCallCollector, allowed_tools


def read_request(body: Mapping[str, Json]) -> Request:
    """Raises `WrongShape` when the body is not a chat request."""
    messages = tuple(_message(item) for item in shapes.items(body.get("messages"), "messages"))
    if not messages:
        raise WrongShape("messages is missing or empty")
    asked = read_formats(body, body.get("response_format"))
    tools = allowed_tools(read_tools(body), body.get("tool_choice"))
    limit = "max_tokens" if body.get("max_completion_tokens") is None else "max_completion_tokens"
    return asking(
        Endpoint.CHAT_COMPLETIONS,
        body,
        messages,
        asked,
        limit=limit,
        tools=tools,
        tool_choice=read_tool_choice(body, tools),
        parallel_calls=body.get("parallel_tool_calls") is not False,
    )


def _message(item: Json) -> Message:
    fields = shapes.mapping(item, "a message")
    role = shapes.text(fields.get("role"), "role of a message")
    if not role:
        raise WrongShape("a message has no role")
    content = read_content(fields.get("content"), "content of a message", between="\n")
    return Message(
        role=role,
        text=content.text or content.refusal or shapes.text(fields.get("refusal"), "refusal of a message"),
        tool_calls=read_calls(fields),
        media=content.media,
    )


def read_calls(message: Mapping[str, Json]) -> tuple[ToolCall, ...]:
    """The tool calls of a whole message, those of the older `function_call` included."""
    collector = ToolCallCollector()
    for call in shapes.items(message.get("tool_calls"), "tool_calls"):
        collector.add(call, whole=True)
    if message.get("function_call") is not None:
        collector.add({"function": message["function_call"]}, whole=True)
    return collector.calls()


def read_tools(body: Mapping[str, Json]) -> tuple[Tool, ...]:
    """What may be called: `tools`, or the older `functions`."""
    tools: list[Tool] = []
    for item in shapes.items(body.get("tools"), "tools"):
        fields = shapes.mapping(item, "a tool")
        type = shapes.text(fields.get("type"), "type of a tool") or "function"
        if type not in ("function", "custom"):
            raise WrongShape(f"tool type {type!r} is not known (function, custom)")
        tools.append(_tool(shapes.mapping(fields.get(type), f"{type} of a tool"), free_form=type == "custom"))
    for item in shapes.items(body.get("functions"), "functions"):
        tools.append(_tool(shapes.mapping(item, "a function"), free_form=False))
    return tuple(tools)


def _tool(function: Mapping[str, Json], *, free_form: bool) -> Tool:
    name = shapes.text(function.get("name"), "name of a tool")
    if not name:
        raise WrongShape("a tool has no name")
    return Tool(
        name=name,
        parameters=function.get("parameters"),
        strict=bool(function.get("strict")),
        free_form=free_form,
    )


def read_tool_choice(body: Mapping[str, Json], tools: tuple[Tool, ...]) -> str:
    """`auto`, `none`, `required`, or a tool's name; without tools nothing can be called."""
    choice = body.get("tool_choice", body.get("function_call"))
    if not tools:
        return "none"
    if choice is None:
        return "auto"
    if isinstance(choice, str):
        if choice not in ("auto", "none", "required"):
            raise WrongShape(f"tool_choice {choice!r} is not known (auto, none, required, or an object)")
        return choice
    fields = shapes.mapping(choice, "tool_choice")
    allowed = fields.get("allowed_tools", fields if fields.get("type") == "allowed_tools" else None)
    if allowed is not None:
        mode = shapes.mapping(allowed, "allowed_tools").get("mode")
        return shapes.text(mode, "mode of allowed_tools") or "auto"
    named = fields.get("function") or fields.get("custom") or fields
    name = shapes.text(shapes.mapping(named, "tool_choice").get("name"), "name of tool_choice")
    if not name:
        raise WrongShape("tool_choice names no tool")
    return name


class _Choice:
    """What one of several choices has written so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.refusals: list[str] = []
        self.tools = ToolCallCollector()
        self.finish_reason: str | None = None
        self.broken_logprobs = 0

    def add(self, choice: Mapping[str, Json], turn: Mapping[str, Json], *, whole: bool) -> None:
        content = read_content(turn.get("content"), "content")
        self.texts.append(content.text)
        self.thoughts.append(content.thinking)
        # engines call it either, some both with the same words
        thought = turn.get("reasoning_content") or turn.get("reasoning")
        self.thoughts.append(shapes.text(thought, "reasoning"))
        for refusal in (turn.get("refusal"), content.refusal):
            if refusal is not None:
                self.refusals.append(shapes.text(refusal, "refusal"))
        for call in shapes.items(turn.get("tool_calls"), "tool_calls"):
            self.tools.add(call, whole=whole)
        if turn.get("function_call") is not None:
            self.tools.add({"function": turn["function_call"]}, whole=whole)
        if choice.get("logprobs") is not None:
            self.broken_logprobs += broken(choice["logprobs"])
        self.finish_reason = (
            shapes.text(choice.get("finish_reason"), "finish_reason") or self.finish_reason or None
        )


class ChatAnswer:
    """Reads an answer, whole or streamed: a whole message is taken as one delta."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._usage: Mapping[str, Json] = {}

    def add_body(self, body: Mapping[str, Json]) -> None:
        self._add(body, "message", whole=True)
        if not self._choices:
            raise WrongShape("the answer has no choices")

    def add_event(self, event: Mapping[str, Json]) -> None:
        self._add(event, "delta", whole=False)

    def _add(self, body: Mapping[str, Json], turn: str, *, whole: bool) -> None:
        for position, item in enumerate(shapes.items(body.get("choices"), "choices")):
            choice = shapes.mapping(item, "a choice")
            index = shapes.count(choice.get("index"), "index of a choice")
            at = (position if whole else 0) if index is None else index
            # A gateway that only looks as if it streamed sends a whole message in an event.
            said = "message" if turn not in choice and at not in self._choices else turn
            fields = shapes.mapping(choice.get(said), f"{said} of a choice")
            if at not in self._choices or not whole:
                self._choices.setdefault(at, _Choice()).add(choice, fields, whole=said == "message")
        self._usage = shapes.mapping(body.get("usage"), "usage") or self._usage

    @property
    def ended(self) -> bool:
        return bool(self._choices) and self._first.finish_reason is not None

    @property
    def failure(self) -> str | None:
        return None  # this dialect reports errors in a body of their own

    @property
    def _first(self) -> _Choice:
        """The first of several choices: with `n` > 1 that one is judged, in every arm alike."""
        if not self._choices:
            raise WrongShape("the answer has no choices")
        return self._choices[min(self._choices)]

    def answer(self) -> Answer:
        choice = self._first
        text, thinking = split_thinking(shapes.joined(choice.texts))
        return Answer(
            text=text,
            reasoning=join_thinking(shapes.joined(choice.thoughts), thinking),
            tool_calls=choice.tools.calls(),
            finish_reason=choice.finish_reason,
            refusal=shapes.joined(choice.refusals) or None,
            prompt_tokens=shapes.count(self._usage.get("prompt_tokens"), "prompt_tokens"),
            completion_tokens=shapes.count(self._usage.get("completion_tokens"), "completion_tokens"),
            cached_tokens=shapes.detail(self._usage, "prompt_tokens_details", "cached_tokens"),
            reasoning_tokens=shapes.detail(self._usage, "completion_tokens_details", "reasoning_tokens"),
            broken_logprobs=choice.broken_logprobs,
        )
