"""Headers in both directions: kept as they were sent, dropped where they end, refused where they lie."""

from __future__ import annotations

import pytest

from tests.proxy.raw_client import get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, ladder

MANY = [(b"X-Many-%03d" % number, b"v" * 150) for number in range(200)]
ODD = [
    (b"x-A", b"1"),
    (b"X-a", b"2"),
    (b"x-a", b""),
    (b"X_Under", b"3"),
    (b"!#$%&'*+-.^_`|~", b"4"),
    (b"X-Latin", b"caf\xe9"),
    (b"X-Utf", "你好🌏".encode()),
    (b"X-Quoted", b'"a, b"; c="\\"'),
    (b"X-Tab", b"a\tb"),
    (b"Set-Cookie", b"a=1, b; Path=/"),
    (b"Set-Cookie", b"b=2"),
    (b"set-cookie", b"c=3"),
    (b"WWW-Authenticate", b"Basic"),
    (b"WWW-Authenticate", b"Bearer"),
]


@pytest.mark.parametrize("headers", [ODD, MANY, [(b"X-Long", b"z" * 60_000)]], ids=["odd", "many", "long"])
async def test_headers_pass_in_both_directions_in_order_case_and_number(
    headers: list[tuple[bytes, bytes]], start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\n%bContent-Length: 2\r\n\r\n{}" % lines)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(3):  # and when both heads are known
        answered = await client.ask(post(headers=[line for line in lines.split(b"\r\n") if line]))
        assert [pair for pair in backend.last.headers if pair in headers] == headers
        assert [pair for pair in answered.headers if pair in headers] == headers
    client.close()
    assert len(backend.requests) == 3


@pytest.mark.parametrize(
    "connection",
    [
        [b"Connection: x-foo, X-Bar"],
        [b"Connection: X-FOO", b"connection: keep-alive", b"Connection:x-bar"],
        [b"Connection: ,x-foo ,, x-bar\t, keep-alive"],
    ],
)
async def test_what_connection_lists_goes_no_further_in_either_direction(
    connection: list[bytes], start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    hops = [*connection, b"X-Foo: 1", b"x-bar: 2", b"X-Stays: 3", b"Keep-Alive: timeout=5"]

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"\r\n".join([b"HTTP/1.1 200 OK", *hops, b"Content-Length: 2", b"", b"{}"]))

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(3):
        answered = await client.ask(post(headers=hops))
        for headers in (backend.last.headers, answered.headers):
            names = {name.lower() for name, _ in headers}
            assert b"x-stays" in names
            assert not {b"x-foo", b"x-bar", b"keep-alive", b"connection"} & names
    client.close()
    assert backend.connections == 1, "a list of headers does not end a connection"


@pytest.mark.parametrize(
    "close", [b"Connection: close", b"Connection: x-a, Close", b"connection: keep-alive, close"]
)
async def test_close_on_one_side_is_no_close_on_the_other(
    close: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: 2\r\n\r\n{}" % close)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(3):
        answered = await client.ask(post())
        assert (answered.body, answered.header(b"connection")) == (b"{}", [])
    assert backend.connections == 3
    answered = await client.ask(post(headers=[close]))
    assert answered.header(b"connection") == [b"close"]
    assert await client.rest() == b""
    assert not backend.last.header(b"connection"), "the backend may keep its own connection"
    client.close()


@pytest.mark.parametrize(
    "target", [b"http://elsewhere:1/v1/x?a", b"HTTP://proxy/v1/x?a", b"https://[::1]/v1/x?a", b"/v1/x?a"]
)
async def test_whatever_host_a_request_names_its_backend_gets_its_own(
    target: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """RFC 9112, 3.2.2: the authority of an absolute target outranks Host; neither is passed on."""
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    assert (await proxy.ask(get(target))).status == 200
    assert backend.last.line == b"GET /v1/x?a HTTP/1.1"
    assert backend.last.header(b"host") == [f"127.0.0.1:{backend.port}".encode()]


@pytest.mark.parametrize(
    "interim",
    [
        b"HTTP/1.1 104 X\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 199 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 103 X\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_an_interim_answer_with_a_body_never_becomes_part_of_the_answer(
    interim: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(interim + OK)
        await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (502, b"bad_answer")


async def test_interim_answers_pass_at_once_and_before_the_answer_in_a_read_of_its_own(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(*(hint[at : at + 5] for at in range(0, len(hint), 5)), pause=0.002)
        await peer.send(hint)
        await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(3):
        answered = await client.ask(post())
        assert (answered.interims, answered.body) == ([hint, hint], b"{}")
    client.close()


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
@pytest.mark.parametrize(
    "lie", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"\r\nhello"]
)
async def test_bytes_behind_an_answer_without_a_body_are_nobody_s(
    status: bytes, lie: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 %b\r\nETag: x\r\n%b" % (status, lie) if len(backend.requests) % 2 else OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(3):
        answered = await client.ask(post())
        assert (answered.status, answered.body) == (int(status[:3]), b"")
        assert not answered.header(b"transfer-encoding")
        assert (await client.ask(post())).body == b"{}"
    client.close()


@pytest.mark.parametrize("first", ["whole", "head alone"])
async def test_an_answer_to_head_says_what_get_would_have_and_leaves_the_connection_in_step(
    first: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Also when GET has been asked before, so that the backend's head is known, length and all."""

    async def script(received: Received, peer: Peer) -> None:
        is_head = received.line.startswith(b"HEAD")
        await peer.send(OK.removesuffix(b"{}") if is_head and first == "head alone" else OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(4):
        assert (await client.ask(get(b"/v1/x"))).body == b"{}"
        answered = await client.ask(b"HEAD /v1/x HTTP/1.1\r\nHost: proxy\r\n\r\n", to_head=True)
        assert answered.header(b"content-length") == [b"2"]
    client.close()


async def test_a_backend_that_changes_its_head_is_believed_each_time(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Heads met before need no parsing; one that is nearly the same must not be taken for it."""
    bodies = [b"a", b"{}", b"x" * 12, b"", b"{}"]
    head = b"HTTP/1.1 200 OK\r\nX-Version: 1\r\nContent-Length: %d\r\n"
    answers = [
        *((head % len(body) + b"\r\n" + body, 200, b"1", body) for body in bodies),
        (head.replace(b"1\r\nC", b"2\r\nC") % 1 + b"\r\nb", 200, b"2", b"b"),
        (head.replace(b"200 OK", b"500 No") % 1 + b"\r\nc", 500, b"1", b"c"),
        (head % 3 + b"X-More: 1\r\n\r\nddd", 200, b"1", b"ddd"),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nX-Version: 1\r\n\r\n") + b"1\r\ne\r\n0\r\n\r\n", 200, b"1", b"e"),
        (head.replace(b"Length", b"LENGTH") % 1 + b"\r\nf", 200, b"1", b"f"),
        (head % 1 + b"Connection: close\r\n\r\ng", 200, b"1", b"g"),
    ]
    turn = [0]

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(answers[turn[0] % len(answers)][0])

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for turn[0] in [
        *range(len(answers)),
        *(number for each in range(len(answers)) for number in (each, 0, each)),
    ]:
        _, status, version, body = answers[turn[0]]
        answered = await client.ask(post())
        assert (answered.status, answered.header(b"x-version"), answered.body) == (status, [version], body)
        assert answered.is_whole
    client.close()
    captures = await proxy.captures(len(backend.requests))
    assert len(captures) == len(backend.requests)


async def test_a_client_that_changes_its_head_is_believed_each_time(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url, backend.url), ladder(backend.url, model="n"))
    requests = [
        post(b'{"model":"m"}', headers=[b"X-Request-Id: 1"]),
        post(b'{"model":"m","x":1}', headers=[b"X-Request-Id: 1"]),
        post(b'{"model":"n"}', headers=[b"X-Request-Id: 1"]),
        post(b'{"model":"m"}', headers=[b"X-Request-Id: 2"]),
        post(b'{"model":"m"}', headers=[b"X-Request-Id: 1", b"X-Tiergate-Shadow: off"]),
        post(b'{"model":"m"}', path=b"/v1/completions", headers=[b"X-Request-Id: 1"]),
        post(b"", headers=[b"X-Request-Id: 1"]),
    ]
    client = await proxy.connect()
    order = [0, 0, 0, 1, 2, 1, 3, 3, 3, 4, 4, 4, 0, 5, 5, 5, 6, 6, 6, 0, 2]
    for number in order:
        answered = await client.ask(requests[number])
        head, _, body = requests[number].partition(b"\r\n\r\n")
        assert answered.status == (400 if number == 6 else 200)
        if number != 6:
            assert backend.last.body == body
            assert backend.last.line == head.split(b"\r\n")[0]
            assert backend.last.header(b"x-request-id") == answered.header(b"x-request-id")
            assert b"X-Request-Id: %b" % backend.last.header(b"x-request-id")[0] in head
    client.close()
    assert proxy.ledger["skipped|m|opted_out"] == order.count(4)
    assert proxy.ledger["seen|n"] == order.count(2)
