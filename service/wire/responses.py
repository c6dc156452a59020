"""OpenAI responses: requests, and answers whole or streamed, as requests and answers of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluators.exchange import Answer, Endpoint, Json, Message, Request, Tool, ToolCall
from service.wire import shapes
from service.wire.content import digest, parts, read_content
from service.wire.ends import error_message
from service.wire.formats import asking, read_formats
from service.wire.logprobs import broken
from service.wire.shapes import WrongShape
from service.wire.thinking import join_thinking, split_thinking
from service.wire.tool_calls import allowed_tools


def read_request(body: Mapping[str, Json]) -> Request:
    """Raises `WrongShape` when the body has no input. Hosted tools are not functions and are left out."""
    given = body.get("input")
    turns = [{"role": "user", "content": given}] if isinstance(given, str) else shapes.items(given, "input")
    messages = [_message(shapes.mapping(turn, "an item of input")) for turn in turns]
    if not messages:
        raise WrongShape("input is missing or empty")
    if instructions := shapes.text(body.get("instructions"), "instructions"):
        messages.insert(0, Message(role="system", text=instructions))
    asked = read_formats(body, shapes.mapping(body.get("text"), "text").get("format"))
    tools = tuple(
        _tool(fields)
        for item in shapes.items(body.get("tools"), "tools")
        if (fields := shapes.mapping(item, "a tool")).get("type") in ("function", "custom")
    )
    return asking(
        Endpoint.RESPONSES,
        body,
        messages,
        asked,
        limit="max_output_tokens",
        tools=allowed_tools(tools, body.get("tool_choice")),
        tool_choice=_tool_choice(body.get("tool_choice")) if tools else "none",
        parallel_calls=body.get("parallel_tool_calls") is not False,
    )


def _message(item: Mapping[str, Json]) -> Message:
    type = shapes.text(item.get("type"), "type of an item") or "message"
    if type == "message":
        content = read_content(item.get("content"), "content of an item", between="\n")
        role = shapes.text(item.get("role"), "role of an item")
        if not role:
            raise WrongShape("an input message has no role")
        return Message(role=role, text=content.text or content.refusal or "", media=content.media)
    if type in ("function_call", "custom_tool_call"):
        return Message(role="assistant", tool_calls=(_call(item),))
    if type in ("function_call_output", "custom_tool_call_output"):
        content = read_content(item.get("output"), "output of an item", between="\n")
        return Message(role="tool", text=content.text, media=content.media)
    if type == "reasoning":
        return Message(role="assistant", media=(f"reasoning:{digest(item)}",))
    # calls of hosted tools and references: nothing to read, but they tell one conversation from another
    return Message(role="assistant", media=(f"{type}:{digest(item)}",))


def _tool(fields: Mapping[str, Json]) -> Tool:
    name = shapes.text(fields.get("name"), "name of a tool")
    if not name:
        raise WrongShape("a tool has no name")
    return Tool(
        name=name,
        parameters=fields.get("parameters"),
        strict=bool(fields.get("strict")),
        free_form=fields.get("type") == "custom",
    )


def _tool_choice(choice: Json) -> str:
    if choice is None:
        return "auto"
    if isinstance(choice, str):
        if choice not in ("auto", "none", "required"):
            raise WrongShape(f"tool_choice {choice!r} is not known (auto, none, required, or an object)")
        return choice
    fields = shapes.mapping(choice, "tool_choice")
    if fields.get("type") == "allowed_tools":
        return shapes.text(fields.get("mode"), "mode of allowed_tools") or "auto"
    return shapes.text(fields.get("name"), "name of tool_choice") or "required"


def _call(item: Mapping[str, Json]) -> ToolCall:
    arguments = item.get("arguments", item.get("input"))
    return ToolCall(
        name=shapes.text(item.get("name"), "name of a call"),
        arguments=shapes.write_json(arguments)
        if isinstance(arguments, dict | list)
        else shapes.text(arguments, "arguments of a call"),
        id=shapes.text(item.get("call_id"), "call_id of a call"),
    )


_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""Last events, and the status of the response that they carry, should it not say so itself."""


class ResponsesAnswer:
    """Reads an answer. The last event of a stream carries the whole response; its items may come earlier."""

    def __init__(self) -> None:
        self._response: Mapping[str, Json] = {}
        self._items: list[tuple[int, Mapping[str, Json]]] = []

    def add_body(self, body: Mapping[str, Json]) -> None:
        if "output" not in body or "status" not in body:
            raise WrongShape("the answer has no output or no status")
        self._response = body

    def add_event(self, event: Mapping[str, Json]) -> None:
        type = shapes.text(event.get("type"), "type of an event")
        if type == "response.output_item.done":
            index = shapes.count(event.get("output_index"), "output_index")
            item = shapes.mapping(event.get("item"), "item of an event")
            self._items.append((len(self._items) if index is None else index, item))
        elif type in _ENDS:
            response = shapes.mapping(event.get("response"), "response of an event")
            self._response = {**response, "status": response.get("status") or _ENDS[type]}

    @property
    def ended(self) -> bool:
        return self._response.get("status") in ("completed", "incomplete")

    @property
    def failure(self) -> str | None:
        """Why the engine gave up, when the response says so itself."""
        if self._response.get("status") in ("failed", "cancelled"):
            return error_message(self._response) or str(self._response.get("status"))
        return None

    def _output(self) -> Sequence[Json]:
        output = shapes.items(self._response.get("output"), "output")
        return output or [item for _, item in sorted(self._items, key=lambda entry: entry[0])]

    def answer(self) -> Answer:
        texts: list[str] = []
        refusals: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        without = 0
        hidden = False
        for entry in self._output():
            item = shapes.mapping(entry, "an item of output")
            type = item.get("type")
            if type == "message":
                content = read_content(item.get("content"), "content of an item")
                texts.append(content.text)
                refusals.append(content.refusal or "")
                without += sum(
                    broken(part.get("logprobs")) for part in parts(item.get("content"), "content of an item")
                )
            elif type in ("function_call", "custom_tool_call"):
                calls.append(_call(item))
            elif type == "reasoning":
                thoughts.append(_thought(item))
                hidden |= not thoughts[-1]  # encrypted, or left out
        text, thinking = split_thinking("".join(texts))
        usage = shapes.mapping(self._response.get("usage"), "usage")
        return Answer(
            text=text,
            reasoning=join_thinking(*thoughts, thinking),
            tool_calls=tuple(calls),
            finish_reason=self._finish_reason(bool(calls)),
            refusal="".join(refusals) or None,
            prompt_tokens=shapes.count(usage.get("input_tokens"), "input_tokens"),
            completion_tokens=shapes.count(usage.get("output_tokens"), "output_tokens"),
            cached_tokens=shapes.detail(usage, "input_tokens_details", "cached_tokens"),
            reasoning_tokens=shapes.detail(usage, "output_tokens_details", "reasoning_tokens"),
            reasoning_hidden=hidden,
            broken_logprobs=without,
        )

    def _finish_reason(self, called: bool) -> str | None:
        status = self._response.get("status")
        if status == "completed":
            return "tool_calls" if called else "stop"
        details = shapes.mapping(self._response.get("incomplete_details"), "incomplete_details")
        reason = shapes.text(details.get("reason"), "reason of incomplete_details")
        return "length" if reason == "max_output_tokens" else reason or None


def _thought(item: Mapping[str, Json]) -> str:
    """The reasoning itself where the engine shows it, else its summary."""
    for where in ("content", "summary"):
        texts = [shapes.text(part.get("text"), f"text of {where}") for part in parts(item.get(where), where)]
        if any(texts):
            return "".join(texts)
    return ""
