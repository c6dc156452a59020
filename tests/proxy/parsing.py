"""Both parsers as the proxy uses them, and h11 as the independent one: bytes in, comparable outlines out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import h11

from service.proxy.http.answer_heads import AnswerHead
from service.proxy.http.answers import AnswerReader, AnswerUnreadable
from service.proxy.http.errors import Refusal
from service.proxy.http.known import KnownHead
from service.proxy.http.requests import Inbound, RequestReader

MAX_HEAD = 64 * 1024
MAX_BODY = 1024 * 1024


def new_request_reader() -> RequestReader:
    return RequestReader(max_head=MAX_HEAD, max_body=MAX_BODY, conversation_header=b"x-conversation-id")


def segments(received: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """The bytes in segments, none of them empty."""
    edges = sorted({0, len(received), *(cut for cut in cuts if 0 < cut < len(received))})
    for start, end in itertools.pairwise(edges):
        yield received[start:end]


class RequestOutline(NamedTuple):
    """What a request means, or why it is refused: `refused` is status and code."""

    method: bytes = b""
    target: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """But for Content-Length, which the length of the body says."""
    body: bytes = b""
    keep_alive: bool = False
    http10: bool = False
    expects_continue: bool = False
    refused: tuple[int, str] | None = None
    message: str = ""


def read_requests(received: bytes, cuts: Iterable[int] = ()) -> list[Inbound | Refusal]:
    """What a new connection reads."""
    reader = new_request_reader()
    for segment in segments(received, cuts):
        reader.feed(segment)
    ready = list(reader.ready)
    reader.close()
    return ready


def outline_of(read: Inbound | Refusal) -> RequestOutline:
    if isinstance(read, Refusal):
        return RequestOutline(refused=(int(read.status), read.code), message=read.message)
    head = read.head
    return RequestOutline(
        method=head.method,
        target=head.target,
        headers=tuple(pair for pair in head.headers if pair[0].lower() != b"content-length"),
        body=bytes(read.body),
        keep_alive=read.keep_alive,
        http10=head.http10,
        expects_continue=head.expects_continue,
    )


def outlines(received: bytes, cuts: Iterable[int] = ()) -> list[RequestOutline]:
    return [outline_of(each) for each in read_requests(received, cuts)]


class Independent(NamedTuple):
    """What h11 makes of a connection's bytes: the messages, and why there are no more."""

    requests: list[tuple[bytes, bytes, bytes]]
    """Method, target, body."""
    end: str
    """`waits`, `closed`, or what is wrong."""
    leftover: bytes


def h11_requests(received: bytes) -> Independent:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_BODY)
    found: list[tuple[bytes, bytes, bytes]] = []
    method = target = body = b""
    try:
        connection.receive_data(received)
        while True:
            each = connection.next_event()
            if isinstance(each, h11.Request):
                method, target, body = each.method, each.target, b""
            elif isinstance(each, h11.Data):
                body += bytes(each.data)
            elif isinstance(each, h11.EndOfMessage):
                found.append((method, target, body))
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                if connection.our_state is h11.SWITCHED_PROTOCOL:  # CONNECT
                    return Independent(found, "closed", connection.trailing_data[0])
                connection.send(h11.EndOfMessage())
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return Independent(found, "closed", connection.trailing_data[0])
                connection.start_next_cycle()
            else:
                end = "waits" if each is h11.NEED_DATA else "closed"
                return Independent(found, end, connection.trailing_data[0])
    except h11.RemoteProtocolError as error:
        return Independent(found, f"refused: {error}", b"")


class AnswerOutline(NamedTuple):
    """What a client gets to see of an answer, and whether its connection may be used again."""

    end: str
    """`complete`, `ends with the connection`, `unfinished` or `unreadable`."""
    status: int = 0
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    trailers: tuple[tuple[bytes, bytes], ...] = ()
    interims: tuple[bytes, ...] = ()
    reusable: bool = False
    why: str = ""
    """What is unreadable about it."""
    for_client: bytes = b""
    """The whole answer as an HTTP/1.1 client gets it, when it is whole."""


Known = KnownHead[AnswerHead]


def read_answer(
    received: bytes, cuts: Iterable[int] = (), *, for_head: bool = False, known: Known | None = None
) -> AnswerOutline:
    """Fed as the relay feeds it: nothing more once it is complete or unreadable."""
    return _read_answer(received, cuts, for_head, known)[0]


def head_learnt_from(received: bytes) -> Known | None:
    """The head that the next answer of this backend is compared with."""
    return _read_answer(received, (), False, None)[1]


def _read_answer(
    received: bytes, cuts: Iterable[int], for_head: bool, known: Known | None
) -> tuple[AnswerOutline, Known | None]:
    reader = AnswerReader(for_head=for_head, known=known)
    body, interims, left, why = b"", [], len(received), ""
    for segment in segments(received, cuts):
        left -= len(segment)
        try:
            reader.feed(segment)
        except AnswerUnreadable as error:
            why = str(error)
        interims += reader.interims
        reader.interims.clear()
        body += reader.take()
        if why or reader.complete:
            break
    if why:
        end = "unreadable"
    elif reader.complete:
        end = "complete"
    else:
        end = "ends with the connection" if reader.end_of_file() else "unfinished"
    head = reader.head
    if head is None:
        reader.close()
        return AnswerOutline(end, interims=tuple(interims), why=why), reader.known
    for_client = b""
    if end in ("complete", "ends with the connection"):
        for_client, chunked = head.for_client(
            http10=False, keep_alive=True, marks=b"x-mark: 1\r\n", length=reader.length, request_id=b"r"
        )
        if chunked:
            for_client += (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + reader.last_chunk()
        else:
            for_client += body
    headers = tuple(
        (name, reader.length if low == b"content-length" and reader.length is not None else value)
        for (name, value), low in zip(head.headers, head.names, strict=True)
    )
    outline = AnswerOutline(
        end=end,
        status=head.status,
        headers=headers,
        body=body,
        trailers=tuple(reader.trailers) if reader.complete and not for_head else (),
        interims=tuple(interims),
        # Bytes that come later end an idle connection too.
        reusable=end == "complete" and head.keep_alive and not reader.leftover and not left,
        why=why,
        for_client=for_client,
    )
    reader.close()
    return outline, reader.known


def h11_answer(received: bytes, *, for_head: bool = False) -> AnswerOutline:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_BODY)
    connection.send(h11.Request(method="HEAD" if for_head else "GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    answer: h11.Response | None = None
    body, end, why = b"", "unfinished", ""
    trailers: list[tuple[bytes, bytes]] = []
    try:
        connection.receive_data(received)
        while True:
            each = connection.next_event()
            if isinstance(each, h11.Response):
                answer = each
            elif isinstance(each, h11.Data):
                body += bytes(each.data)
            elif isinstance(each, h11.EndOfMessage):
                end, trailers = "complete", list(each.headers)
                break
            elif not isinstance(each, h11.InformationalResponse):
                break
        if end == "unfinished" and answer is not None:
            connection.receive_data(b"")
            if isinstance(connection.next_event(), h11.EndOfMessage):
                end = "ends with the connection"
    except h11.RemoteProtocolError as error:
        if "without sending complete message body" not in str(error):
            end, why = "unreadable", str(error)
    if answer is None:
        return AnswerOutline(end, why=why)
    return AnswerOutline(
        end=end,
        status=answer.status_code,
        headers=tuple(answer.headers),
        body=body,
        trailers=tuple(trailers),
        why=why,
    )
