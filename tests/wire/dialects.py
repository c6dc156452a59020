"""One answer, written in each dialect, whole and as a stream; and one request, written in each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

from evaluators.exchange import Answer, Endpoint, ToolCall

_CHAT, _COMPLETIONS, _RESPONSES, _MESSAGES = Endpoint
_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an answer is written at one endpoint."""

    endpoint: Endpoint
    whole: Callable[[Answer], dict[str, Any]]
    events: Callable[[Answer, Random], Iterator[dict[str, Any]]]
    can_say: Callable[[Answer], bool]
    names_events: bool = False
    """Each event has an `event:` line, and there is no `[DONE]`."""

    def stream(self, answer: Answer, chance: Random) -> bytes:
        """The events with line ends, comments and fields as engines vary them."""
        end = chance.choice(("\n", "\r\n", "\r"))
        space = chance.choice((" ", ""))
        written = ["\ufeff"] if chance.random() < 0.1 else []
        for event in self.events(answer, chance):
            if chance.random() < 0.2:
                written.append(f": ping{end}{end}")
            if self.names_events:
                written.append(f"event: {event['type']}{end}")
            text = to_json(event, chance)
            written.append(f"data:{space}{text}{end}{end}")
        if not self.names_events and chance.random() < 0.8:
            written.append(f"data: [DONE]{end}{end}")
        return "".join(written).encode()


def to_json(value: Any, chance: Random) -> str:
    """With escapes or without, where it can be: half a character has no other spelling."""
    text = json.dumps(value, ensure_ascii=False)
    halves = any("\ud800" <= char <= "\udfff" for char in text)
    return json.dumps(value) if halves or chance.random() < 0.5 else text


def pieces(text: str, chance: Random) -> list[str]:
    """A text in fragments, now and then with a character cut between its surrogates, as JavaScript does."""
    units = text.encode("utf-16-le", "surrogatepass")
    count = len(units) // 2
    cuts = sorted({0, count, *(chance.randrange(count + 1) for _ in range(chance.randrange(4)))})
    return [units[a * 2 : b * 2].decode("utf-16-le", "surrogatepass") for a, b in pairwise(cuts)]


def _merged(tracks: list[list[dict[str, Any]]], chance: Random) -> Iterator[dict[str, Any]]:
    """Each track in its order, all of them interleaved."""
    tracks = [track[:] for track in tracks if track]
    while tracks:
        track = chance.choice(tracks)
        yield track.pop(0)
        tracks = [each for each in tracks if each]


def _tokens(answer: Answer, prompt: str, completion: str) -> dict[str, Any] | None:
    if answer.prompt_tokens is None:
        return None
    return {prompt: answer.prompt_tokens, completion: answer.completion_tokens}


# -- chat ----------------------------------------------------------------------------------------------


def _chat_whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": answer.refusal}
    message["reasoning_content"] = answer.reasoning or None
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in answer.tool_calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
    usage = _tokens(answer, "prompt_tokens", "completion_tokens")
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}


def _chat_events(answer: Answer, chance: Random) -> Iterator[dict[str, Any]]:
    thought = chance.choice(("reasoning_content", "reasoning"))
    content: Callable[[str], Any] = str
    if chance.random() < 0.2:
        content = lambda piece: [{"type": "text", "text": piece}]  # noqa: E731
    tracks: list[list[dict[str, Any]]] = [
        [{"content": content(piece)} for piece in pieces(answer.text, chance)],
        [{thought: piece} for piece in pieces(answer.reasoning, chance)],
        [{"refusal": piece} for piece in pieces(answer.refusal or "", chance)],
    ]
    for index, call in enumerate(answer.tool_calls):
        first = chance.choice(({}, {"arguments": ""}, {"arguments": None}))
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, **first}}
        rest = [
            {"index": index, "function": {"arguments": piece}}
            for piece in pieces(call.arguments, chance)
            if piece
        ]
        tracks.append([{"tool_calls": [fragment]} for fragment in (head, *rest)])
    deltas = [{"role": "assistant", "content": chance.choice((None, ""))}, *_merged(tracks, chance)]
    other = {"index": 1, "delta": {"content": "another choice"}, "finish_reason": "stop"}
    # With the last delta, or in a chunk of its own; and usage beside choices, or in one without any.
    ends_apart, usage_apart = chance.random() < 0.5, chance.random() < 0.5
    usage = _tokens(answer, "prompt_tokens", "completion_tokens")
    if ends_apart:
        deltas.append({})
    for number, delta in enumerate(deltas):
        is_last = number == len(deltas) - 1
        choice = {"index": 0, "delta": delta, "finish_reason": answer.finish_reason if is_last else None}
        choices = [choice, other] if chance.random() < 0.1 and number else [choice]
        yield {"choices": choices, "usage": usage if is_last and not usage_apart else None}
    if usage_apart:
        yield {"choices": [], "usage": usage}


# -- completions ---------------------------------------------------------------------------------------


def _completions_whole(answer: Answer) -> dict[str, Any]:
    choice = {"index": 0, "text": answer.text, "logprobs": None, "finish_reason": answer.finish_reason}
    return {"choices": [choice], "usage": _tokens(answer, "prompt_tokens", "completion_tokens")}


def _completions_events(answer: Answer, chance: Random) -> Iterator[dict[str, Any]]:
    for piece in pieces(answer.text, chance):
        yield {"choices": [{"index": 0, "text": piece, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "text": "", "finish_reason": answer.finish_reason}]}
    yield {"choices": [], "usage": _tokens(answer, "prompt_tokens", "completion_tokens")}


# -- responses -----------------------------------------------------------------------------------------


def _output(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.reasoning:
        part = {"type": "reasoning_text", "text": answer.reasoning}
        items.append({"type": "reasoning", "id": "r", "summary": [], "content": [part]})
    parts: list[dict[str, Any]] = [{"type": "output_text", "text": answer.text}] if answer.text else []
    if answer.refusal:
        parts.append({"type": "refusal", "refusal": answer.refusal})
    if parts:
        items.append({"type": "message", "role": "assistant", "content": parts})
    for call in answer.tool_calls:
        fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({"type": "function_call", "id": "f", **fields})
    return items


def _responses_whole(answer: Answer) -> dict[str, Any]:
    ended = answer.finish_reason != "length"
    return {
        "object": "response",
        "status": "completed" if ended else "incomplete",
        "error": None,
        "incomplete_details": None if ended else {"reason": "max_output_tokens"},
        "output": _output(answer),
        "usage": _tokens(answer, "input_tokens", "output_tokens"),
    }


def _responses_events(answer: Answer, chance: Random) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {"status": "in_progress", "output": []}}
    for piece in pieces(answer.text, chance):
        yield {"type": "response.output_text.delta", "output_index": 0, "delta": piece}
    for index, item in enumerate(_output(answer)):
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    last = _responses_whole(answer)
    if chance.random() < 0.3:
        last["output"] = []  # some engines leave out what came before
    yield {"type": f"response.{last['status']}", "response": last}


# -- messages ------------------------------------------------------------------------------------------


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": ""})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for call in answer.tool_calls:
        fields = {"id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        blocks.append({"type": "tool_use", **fields})
    return blocks


def _messages_whole(answer: Answer) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "content": _blocks(answer),
        "stop_reason": _STOPS[answer.finish_reason or "stop"],
        "usage": _tokens(answer, "input_tokens", "output_tokens"),
    }


def _messages_events(answer: Answer, chance: Random) -> Iterator[dict[str, Any]]:
    usage = _tokens(answer, "input_tokens", "output_tokens")
    first = None if usage is None else {**usage, "output_tokens": 1}
    yield {"type": "message_start", "message": {"content": [], "stop_reason": None, "usage": first}}
    names = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}
    for index, block in enumerate(_blocks(answer)):
        if block["type"] == "tool_use":
            key, kind, start = "partial_json", "input_json_delta", {**block, "input": {}}
            written = json.dumps(
                block["input"], ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, 1))
            )
        else:
            key, kind = names[block["type"]]
            start, written = {**block, key: ""}, block[key]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for piece in pieces(written, chance):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}
            if chance.random() < 0.1:
                yield {"type": "ping"}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": _STOPS[answer.finish_reason or "stop"], "stop_sequence": None}
    ended = None if usage is None else {"output_tokens": usage["output_tokens"]}
    yield {"type": "message_delta", "delta": delta, "usage": ended}
    if chance.random() < 0.8:
        yield {"type": "message_stop"}


def _finishes_as(answer: Answer) -> bool:
    """Whether the dialect's own words would say so: it calls tools exactly when there are calls."""
    return answer.finish_reason == "length" or (answer.finish_reason == "tool_calls") == bool(
        answer.tool_calls
    )


DIALECTS = (
    Dialect(_CHAT, _chat_whole, _chat_events, lambda answer: True),
    Dialect(
        _COMPLETIONS,
        _completions_whole,
        _completions_events,
        lambda answer: not (answer.tool_calls or answer.refusal or answer.reasoning),
    ),
    Dialect(_RESPONSES, _responses_whole, _responses_events, _finishes_as, names_events=True),
    Dialect(
        _MESSAGES,
        _messages_whole,
        _messages_events,
        lambda answer: _finishes_as(answer) and not answer.refusal,
        names_events=True,
    ),
)


# -- requests ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that is said in every dialect."""

    system: str
    question: str
    schema: dict[str, Any] | None
    tools: tuple[tuple[str, dict[str, Any]], ...]
    choice: str
    """`auto`, `none`, `required`, or a tool's name."""
    called: ToolCall | None
    """A call in the turn before, and what the tool said to it: the question."""
    limit: int | None


def written_as(endpoint: Endpoint, asked: Asked) -> dict[str, Any]:
    """The body of the request; completions can say the question and the schema alone."""
    body: dict[str, Any] = {"model": "m"}
    match endpoint:
        case Endpoint.CHAT_COMPLETIONS:
            body |= _chat_request(asked)
        case Endpoint.COMPLETIONS:
            body |= {"prompt": asked.question, "max_tokens": asked.limit}
            if asked.schema is not None:
                body["response_format"] = {"type": "json_schema", "json_schema": {"schema": asked.schema}}
        case Endpoint.RESPONSES:
            body |= _responses_request(asked)
        case Endpoint.MESSAGES:
            body |= _messages_request(asked)
    return body


def _chat_request(asked: Asked) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": asked.system}]
    if asked.called is None:
        messages.append({"role": "user", "content": [{"type": "text", "text": asked.question}]})
    else:
        function = {"name": asked.called.name, "arguments": asked.called.arguments}
        calls = [{"id": asked.called.id, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": asked.called.id, "content": asked.question})
    body: dict[str, Any] = {"messages": messages, "max_completion_tokens": asked.limit}
    if asked.schema is not None:
        wrapped = {"name": "s", "schema": asked.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wrapped}
    if asked.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in asked.tools
        ]
        named = {"type": "function", "function": {"name": asked.choice}}
        body["tool_choice"] = asked.choice if asked.choice in ("auto", "none", "required") else named
    return body


def _responses_request(asked: Asked) -> dict[str, Any]:
    if asked.called is None:
        items: list[Mapping[str, Any]] = [{"role": "user", "content": asked.question}]
    else:
        call = {"name": asked.called.name, "arguments": asked.called.arguments, "call_id": asked.called.id}
        items = [
            {"type": "function_call", **call},
            {"type": "function_call_output", "call_id": asked.called.id, "output": asked.question},
        ]
    body: dict[str, Any] = {"instructions": asked.system, "input": items, "max_output_tokens": asked.limit}
    if asked.schema is not None:
        body["text"] = {"format": {"type": "json_schema", "name": "s", "schema": asked.schema}}
    if asked.tools:
        body["tools"] = [
            {"type": "function", "name": name, "parameters": schema} for name, schema in asked.tools
        ]
        named = {"type": "function", "name": asked.choice}
        body["tool_choice"] = asked.choice if asked.choice in ("auto", "none", "required") else named
    return body


def _messages_request(asked: Asked) -> dict[str, Any]:
    if asked.called is None:
        messages: list[Mapping[str, Any]] = [{"role": "user", "content": asked.question}]
    else:
        use = {"id": asked.called.id, "name": asked.called.name, "input": json.loads(asked.called.arguments)}
        said = {"type": "tool_result", "tool_use_id": asked.called.id, "content": asked.question}
        messages = [
            {"role": "assistant", "content": [{"type": "tool_use", **use}]},
            {"role": "user", "content": [said]},
        ]
    body: dict[str, Any] = {"system": asked.system, "messages": messages, "max_tokens": asked.limit}
    if asked.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": asked.schema}}
    if asked.tools:
        body["tools"] = [{"name": name, "input_schema": schema} for name, schema in asked.tools]
        kinds = {"auto": "auto", "none": "none", "required": "any"}
        kind = kinds.get(asked.choice, "tool")
        body["tool_choice"] = {"type": kind, **({"name": asked.choice} if kind == "tool" else {})}
    return body
