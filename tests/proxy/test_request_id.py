"""`X-Request-Id`: the client's where it is fit to be handed around, ours otherwise, the same everywhere."""

from __future__ import annotations

import json

import pytest

from tests.proxy.raw_client import get, post
from tests.proxy.scripted import Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, ladder

OURS = rb"[0-9a-f]{12}-[0-9a-f]+"


@pytest.mark.parametrize("name", [b"a", b"0" * 128, b"req_01HZ!#$%&'*+-.^_`|~/:=,;\"<>()[]{}@?\\"])
async def test_a_client_s_own_is_kept_and_forwarded(
    name: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(headers=[b"X-Request-ID:  " + name + b" "]))
    assert answered.header(b"x-request-id") == [name]
    assert backend.last.header(b"x-request-id") == [name]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"X-Request-Id:"],
        [b"X-Request-Id: " + b"a" * 129],
        [b"X-Request-Id: " + b"a" * 60_000],
        [b"X-Request-Id: a b"],
        [b"X-Request-Id: a\tb"],
        [b"X-Request-Id: na\xc3\xafve"],
        [b"X-Request-Id: a\x80b"],
        [b"X-Request-Id: a", b"X-Request-Id: b"],
        [b"X-Request-Id: a", b"x-request-id: a"],
    ],
    ids=["none", "empty", "129 characters", "60 KB", "a space", "a tab", "UTF-8", "Latin-1", "two", "twice"],
)
async def test_any_other_gives_way_to_one_of_ours_on_both_sides(
    lines: list[bytes], start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(headers=lines))
    assert answered.status == 200
    [told] = answered.header(b"x-request-id")
    assert told.isascii()
    assert len(told) < 40
    assert backend.last.header(b"x-request-id") == [told]
    [other] = (await proxy.ask(post(headers=lines))).header(b"x-request-id")
    assert other != told


async def test_a_control_character_ends_the_request(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    for name in (b"a\x1b[31mb", b"a\0b", b"a\x7fb"):
        answered = await proxy.ask(post(headers=[b"X-Request-Id: " + name]))
        if answered.status == 200:  # the parser lets DEL through
            assert answered.header(b"x-request-id") != [name]
        else:
            assert answered.status == 400
    assert all(b"\x1b" not in b"".join(each.header(b"x-request-id")) for each in backend.requests)


async def test_the_backend_s_own_goes_before(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nX-Request-Id: engine-1\r\nContent-Length: 0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(headers=[b"X-Request-Id: mine"]))
    assert answered.header(b"x-request-id") == [b"engine-1"]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (post(b'{"model":"x"}'), 404),
        (get(b"/admin"), 404),
        (get(b"/v1/models"), 200),
        (b"GET /v1/models HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00", 400),
    ],
    ids=["an unknown model", "an unknown path", "our own answer", "no Host", "no HTTP"],
)
async def test_answers_of_ours_have_one_too(
    request_bytes: bytes, status: int, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder("http://127.0.0.1:1"))
    answered = await proxy.ask(request_bytes)
    assert answered.status == status
    assert len(answered.header(b"x-request-id")) == 1


async def test_it_is_never_a_key_of_ours(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    """Clients repeat ids, by mistake or not; captures are told apart all the same."""
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    for _ in range(2):
        await proxy.ask(post(headers=[b"X-Request-Id: same"]))
    captures = await proxy.captures(2)
    assert len({capture.id for capture in captures}) == 2
    assert all("same" not in capture.id for capture in captures)
    assert json.loads(captures[0].request_body) == {"model": "m", "messages": []}
