"""What a backend sent back, read: an `Answer`, or the `Fault` that it amounts to. Total: never raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evaluators.exchange import Answer, Endpoint, Fault, FaultKind, Json, Outcome
from evaluators.score import excerpt
from service.wire.chat import ChatAnswer
from service.wire.completions import CompletionsAnswer
from service.wire.content_encoding import Undecodable, decode
from service.wire.ends import AnswerReader, error_message, fault_by_finish, told
from service.wire.messages import MessagesAnswer
from service.wire.requests import endpoint_of
from service.wire.responses import ResponsesAnswer
from service.wire.shapes import WrongShape, kind, read_json
from service.wire.sse import events

_READERS: Mapping[Endpoint, Callable[[], AnswerReader]] = {
    Endpoint.CHAT_COMPLETIONS: ChatAnswer,
    Endpoint.COMPLETIONS: CompletionsAnswer,
    Endpoint.RESPONSES: ResponsesAnswer,
    Endpoint.MESSAGES: MessagesAnswer,
}

_LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete")
"""Like `[DONE]`: whatever follows is not the answer."""
_FIELD_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


def parse_answer(
    path: str, *, status: int, content_type: str, content_encoding: str, body: bytes, complete: bool
) -> Outcome:
    """The outcome of one request to `path`.

    `complete` says whether the body ended as its framing promised. Whether it is a stream is decided by its
    content type and, where that is wrong, by how it begins.
    """
    endpoint = endpoint_of(path)
    if endpoint is None:
        return Fault(kind=FaultKind.UNREADABLE, status=status, detail=f"{excerpt(path)} generates nothing")
    try:
        decoded = decode(body, content_encoding, complete=complete)
    except Undecodable as error:
        unreadable = Fault(kind=FaultKind.UNREADABLE, status=status, detail=excerpt(str(error)))
        return _by_status(status) or unreadable
    refused = _by_status(status, decoded)
    if refused is not None:
        return refused
    reader = _READERS[endpoint]()
    try:
        if _is_stream(content_type, decoded):
            return _streamed(reader, status, decoded, complete)
        return _whole(reader, status, decoded, complete)
    except WrongShape as error:
        return Fault(kind=FaultKind.UNREADABLE, status=status, detail=excerpt(str(error)))


def _by_status(status: int, body: bytes = b"") -> Fault | None:
    if 200 <= status < 300:
        return None
    kinds = {429: FaultKind.OVERLOADED, 503: FaultKind.OVERLOADED}
    by_class = {4: FaultKind.REJECTED, 5: FaultKind.SERVER_ERROR}
    found = kinds.get(status) or by_class.get(status // 100, FaultKind.UNREADABLE)
    return Fault(kind=found, status=status, detail=_error_detail(body[:65536].decode("utf-8", "replace")))


def _error_detail(written: str) -> str:
    try:
        error = read_json(written)
    except WrongShape:
        return excerpt(written)
    if message := error_message(error):
        return message
    return told(error) if isinstance(error, dict) and error.get("message") else excerpt(written)


def _is_stream(content_type: str, body: bytes) -> bool:
    start = body[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if content_type.partition(";")[0].strip().lower() == "text/event-stream":
        return not start.startswith(b"{")
    return start.startswith(_FIELD_STARTS)


def _whole(reader: AnswerReader, status: int, body: bytes, complete: bool) -> Outcome:
    try:
        value = read_json(body.decode("utf-8", "replace"))
    except WrongShape:
        if complete:
            raise
        return Fault(kind=FaultKind.CUT_OFF, status=status, detail=f"ended after {len(body)} bytes")
    if not isinstance(value, dict):
        raise WrongShape(f"the answer is {kind(value)}, not an object")
    fault = _error_within(status, value)
    if fault is not None:
        return fault
    reader.add_body(value)
    return _failed(reader, status) or _finished(reader.answer())


def _streamed(reader: AnswerReader, status: int, body: bytes, complete: bool) -> Outcome:
    done = False
    some = False
    for event in events(body, complete=complete):
        written = event.data.strip()
        if not written:
            continue
        if written == "[DONE]":
            done = True
            break  # whatever follows is not the answer
        some = True
        if event.type == "error":
            return Fault(kind=FaultKind.STREAM_ERROR, status=status, detail=_error_detail(written))
        value = read_json(event.data)
        if not isinstance(value, dict):
            raise WrongShape(f"an event is {kind(value)}, not an object")
        fault = _error_within(status, value)
        if fault is not None:
            return fault
        reader.add_event(value)
        if value.get("type") in _LAST_EVENTS:
            break
    failed = _failed(reader, status)
    if failed is not None:
        return failed
    if not reader.ended and not (done and some):
        how = "was closed" if complete else "broke off"
        return Fault(
            kind=FaultKind.CUT_OFF,
            status=status,
            detail=f"the stream {how} after {len(body)} bytes, unfinished",
        )
    return _finished(reader.answer())


def _error_within(status: int, value: Mapping[str, Json]) -> Fault | None:
    """An error that came under a success status, streamed or not: the engine failed while it generated."""
    message = error_message(value)
    return None if message is None else Fault(kind=FaultKind.STREAM_ERROR, status=status, detail=message)


def _failed(reader: AnswerReader, status: int) -> Fault | None:
    if reader.failure is None:
        return None
    return Fault(kind=FaultKind.STREAM_ERROR, status=status, detail=reader.failure)


def _finished(answer: Answer) -> Outcome:
    return fault_by_finish(answer.finish_reason) or answer
