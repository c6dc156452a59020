"""Bodies in, outcomes out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evaluators.exchange import Answer, Fault, Outcome
from service.wire import parse_answer

CHAT = "/v1/chat/completions"
Read = Callable[..., Outcome]


def sse(*payloads: Any, done: bool = True) -> bytes:
    """A stream of JSON events, the way OpenAI-like engines write it."""
    written = [f"data: {json.dumps(payload)}\n\n" for payload in payloads]
    return "".join([*written, "data: [DONE]\n\n"] if done else written).encode()


@pytest.fixture
def read_stream() -> Read:
    """Parses events as a stream."""

    def read(*payloads: Any, path: str = CHAT, done: bool = True, complete: bool = True) -> Outcome:
        return parse_answer(
            path,
            status=200,
            content_type="text/event-stream",
            content_encoding="",
            body=sse(*payloads, done=done),
            complete=complete,
        )

    return read


@pytest.fixture
def read_whole() -> Read:
    """Parses one JSON body."""

    def read(body: Any, *, path: str = CHAT, status: int = 200, complete: bool = True) -> Outcome:
        return parse_answer(
            path,
            status=status,
            content_type="application/json",
            content_encoding="",
            body=body if isinstance(body, bytes) else json.dumps(body).encode(),
            complete=complete,
        )

    return read


@pytest.fixture
def answer_of(read_stream: Read) -> Callable[..., Answer]:
    """The answer that a list of chat deltas amounts to."""

    def read(*deltas: Any, finish: str | None = "stop") -> Answer:
        chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        found = read_stream(*chunks, end)
        assert isinstance(found, Answer), found
        return found

    return read


@pytest.fixture
def fault_of() -> Callable[[Outcome], Fault]:
    def check(outcome: Outcome) -> Fault:
        assert isinstance(outcome, Fault), outcome
        return outcome

    return check
