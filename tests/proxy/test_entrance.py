"""TLS for clients: what a handshake may cost, what a certificate's change does, how an answer ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from service.fleet import Ladder
from service.proxy.config import ClientLimits, ListenerTls
from service.proxy.processes import entrance as module
from service.proxy.processes.certificates import read_tls
from service.proxy.processes.entrance import Entrance
from tests.authority import Authority, Pair
from tests.patience import PATIENCE
from tests.proxy.raw_client import RawClient, post
from tests.proxy.scripted import CHUNKED, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


class Standing:
    """A proxy that clients reach by TLS."""

    def __init__(self, proxy: Proxy, entrance: Entrance, port: int) -> None:
        self.proxy = proxy
        self.entrance = entrance
        self.port = port

    async def connect(self, context: ssl.SSLContext) -> RawClient:
        opened = await asyncio.open_connection("localhost", self.port, ssl=context, family=socket.AF_INET)
        self.proxy.clients.append(RawClient(*opened))
        return self.proxy.clients[-1]

    async def connect_plainly(self) -> RawClient:
        self.proxy.clients.append(RawClient(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self.proxy.clients[-1]

    def outcomes(self) -> dict[str, int]:
        """Handshakes by how they ended."""
        return {
            dict(labels)["outcome"]: count
            for (name, labels), count in self.proxy.plane.meters.counters.items()
            if name == "tls_handshakes"
        }


StartTls = Callable[..., Awaitable[Standing]]


def settings_of(pair: Pair, client_ca: Path | None = None) -> ListenerTls:
    return read_tls(pair.certificate, pair.key, client_ca)


@pytest.fixture
async def start_tls(start_proxy: StartProxy, caplog: pytest.LogCaptureFixture) -> AsyncIterator[StartTls]:
    async with contextlib.AsyncExitStack() as stack:

        async def start(
            settings: ListenerTls, *ladders: Ladder, send_buffer: int | None = None, **changes: object
        ) -> Standing:
            proxy = await start_proxy(*ladders, **changes)
            entrance = Entrance(proxy.plane, settings)
            listener = socket.socket()
            if send_buffer is not None:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
            listener.bind(("127.0.0.1", 0))
            server = await asyncio.get_running_loop().create_server(entrance, sock=listener)

            async def stop() -> None:
                server.close()
                entrance.close()

            stack.push_async_callback(stop)
            return Standing(proxy, entrance, server.sockets[0].getsockname()[1])

        yield start
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == [], "noise in the log"


async def test_a_client_is_answered_over_tls_and_its_connection_is_kept(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    client = await standing.connect(authority.client_context())
    for _ in range(3):
        answered = await client.ask(post())
        assert (answered.status, answered.body) == (200, b"{}")
    assert client.writer.get_extra_info("ssl_object").version() == "TLSv1.3"
    assert standing.outcomes() == {"done": 1}


async def test_pipelined_requests_and_large_bodies_pass_both_ways(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    large = b"x" * 3_000_000

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(received.body) + received.body)

    backend = await start_backend(script)
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    client = await standing.connect(authority.client_context())
    bodies = [b'{"model":"m","n":"%b"}' % part for part in (b"a", large, b"b")]
    sending = asyncio.get_running_loop().create_task(client.send(b"".join(post(body) for body in bodies)))
    assert [(await client.answer()).body for _ in bodies] == bodies
    await sending


async def test_plain_http_on_the_tls_port_is_told_so_in_the_clear_and_counted(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    large = post(b'{"model":"m","x":"' + b"x" * 200_000 + b'"}')
    for request in (post(), large, b"GET"):
        client = await standing.connect_plainly()
        await client.send(request)
        answered = await client.answer()
        assert (answered.status, answered.is_whole) == (400, True)
        assert answered.header(b"x-tiergate-error") == [b"plain_http"]
        assert answered.header(b"connection") == [b"close"]
        assert answered.header(b"x-request-id") != []
        assert b"https://" in answered.body
        assert await client.rest() == b""
        client.close()
    client = await standing.connect_plainly()
    await client.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await client.rest()).endswith(b"\r\n\r\n")
    client.close()
    await eventually(lambda: standing.outcomes() == {"plain_http": 4})
    assert backend.requests == []
    assert not standing.proxy.plane.clients


async def test_who_speaks_plain_http_and_stays_is_ended(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    client = await standing.connect_plainly()
    await client.send(post())
    assert (await client.answer()).status == 400
    # Its own side stays open, and it goes on sending.
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            while standing.outcomes() != {"plain_http": 1}:
                await client.send(b"x" * 1000)
                await asyncio.sleep(0.05)
    assert standing.outcomes() == {"plain_http": 1}
    assert not standing.entrance._handshakes


async def test_a_handshake_in_small_pieces_is_done(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    plain = await standing.connect_plainly()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    shaking = authority.client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            shaking.do_handshake()
            break
        except ssl.SSLWantReadError:
            for each in outgoing.read():
                await plain.send(bytes((each,)))
                await asyncio.sleep(0)
            incoming.write(await plain.reader.read(65536))
    shaking.write(post(headers=[b"Connection: close"]))
    await plain.send(outgoing.read())
    await eventually(lambda: len(backend.requests) == 1 and standing.outcomes() == {"done": 1})


async def test_a_client_that_does_not_trust_us_or_leaves_is_counted(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))

    def distrust() -> None:
        with (
            socket.create_connection(("127.0.0.1", standing.port), timeout=PATIENCE) as opened,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            ssl.create_default_context().wrap_socket(opened, server_hostname="localhost")

    await asyncio.to_thread(distrust)
    await eventually(lambda: standing.outcomes() == {"failed": 1})
    client = await standing.connect_plainly()
    await client.send(b"\x16\x03\x01")
    client.close()
    await eventually(lambda: standing.outcomes() == {"failed": 1, "left": 1})
    client = await standing.connect_plainly()
    client.reset()
    await eventually(lambda: standing.outcomes() == {"failed": 1, "left": 2})


async def test_a_handshake_that_never_ends_is_ended(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(
        settings_of(authority.issue("proxy")), ladder(backend.url), clients=ClientLimits(head=0.2)
    )
    silent, slow = await standing.connect_plainly(), await standing.connect_plainly()
    await slow.send(b"\x16\x03\x01\x02")
    assert await silent.rest() in (b"", b"<reset>")
    assert await slow.rest() in (b"", b"<reset>")
    await eventually(lambda: standing.outcomes() == {"timeout": 2})


async def test_too_many_handshakes_cost_the_oldest_its_place_and_clients_nothing(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    idle = [await standing.connect_plainly() for _ in range(module.MOST_HANDSHAKES + 20)]
    client = await standing.connect(authority.client_context())
    assert (await client.ask(post())).status == 200
    await eventually(lambda: standing.outcomes().get("crowded_out", 0) >= 20)
    assert standing.outcomes()["done"] == 1
    for each in idle:
        each.close()
    await eventually(lambda: sum(standing.outcomes().values()) == module.MOST_HANDSHAKES + 21)


async def test_with_client_authorities_only_their_clients_are_answered(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls, tmp_path: Path
) -> None:
    backend = await start_backend()
    standing = await start_tls(settings_of(authority.issue("proxy"), authority.file), ladder(backend.url))
    mine = await standing.connect(authority.client_context(authority.issue("client")))
    assert (await mine.ask(post())).status == 200
    stranger = Authority(tmp_path / "other").issue("client")
    for context in (authority.client_context(), authority.client_context(stranger)):
        # TLS 1.3 tells a client only after its own handshake.
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            refused = await standing.connect(context)
            await refused.send(post())
            assert await refused.reader.read() == b""
    await eventually(lambda: standing.outcomes() == {"done": 1, "client_certificate": 2})
    assert len(backend.requests) == 1


async def test_a_new_certificate_is_for_new_clients_and_a_stream_goes_on(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    go_on = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"5\r\nfirst\r\n")
        await go_on.wait()
        await peer.send(b"4\r\nlast\r\n0\r\n\r\n")

    backend = await start_backend(script)
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))

    def serial(client: RawClient) -> str:
        return str(client.writer.get_extra_info("ssl_object").getpeercert()["serialNumber"])

    streaming = await standing.connect(authority.client_context())
    await streaming.send(post())
    await streaming.reader.readuntil(b"first\r\n")
    standing.entrance.adopt(settings_of(authority.issue("proxy")))
    newer = await standing.connect(authority.client_context())
    assert serial(newer) != serial(streaming)
    go_on.set()
    assert await streaming.reader.readuntil(b"0\r\n\r\n") == b"4\r\nlast\r\n0\r\n\r\n"
    assert (await newer.ask(post())).is_whole


async def test_a_broken_answer_is_seen_by_a_tls_client(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    framing = {
        b"chunked": CHUNKED + b"5\r\nfirst\r\n",
        b"length": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfirst",
    }

    async def script(received: Received, peer: Peer) -> None:
        [how] = received.header(b"x-how")
        await peer.send(framing[how])
        peer.reset()

    backend = await start_backend(script)
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    for how in framing:
        client = await standing.connect(authority.client_context())
        answered = await client.ask(post(headers=[b"x-how: " + how]))
        assert not answered.is_whole, how
        assert answered.body == b"first"


async def test_an_answer_that_only_ends_with_its_connection_never_ends_cleanly_when_broken(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    """To HTTP/1.0 a chunked answer goes without framing: TLS's own end is all that says it is whole."""
    breaks = True

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"5\r\nfirst\r\n")
        if breaks:
            peer.reset()
        else:
            await peer.send(b"0\r\n\r\n")

    backend = await start_backend(script)
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url))
    request = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 13\r\n\r\n" + b'{"model":"m"}'

    def ask() -> bytes:
        with (
            socket.create_connection(("127.0.0.1", standing.port), timeout=PATIENCE) as opened,
            authority.client_context().wrap_socket(
                opened, server_hostname="localhost", suppress_ragged_eofs=False
            ) as client,
        ):
            client.sendall(request)
            received = b""
            while part := client.recv(1000):
                received += part
            return received

    with pytest.raises((ssl.SSLEOFError, ConnectionError)):
        await asyncio.to_thread(ask)
    breaks = False
    assert (await asyncio.to_thread(ask)).endswith(b"\r\n\r\nfirst")


async def test_a_slow_client_gets_all_of_an_answer_that_closes_the_connection(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    """The loop gives TLS two seconds to say goodbye, which is not the time to send what is left."""
    body = b"y" * 400_000

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body), body)

    backend = await start_backend(script)
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url), send_buffer=8192)

    def read_slowly() -> int:
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.settimeout(PATIENCE)
        opened.connect(("127.0.0.1", standing.port))
        with (
            opened,
            authority.client_context().wrap_socket(
                opened, server_hostname="localhost", suppress_ragged_eofs=False
            ) as client,
        ):
            client.sendall(post(headers=[b"Connection: close"]))

            time.sleep(3.0)
            count = 0
            while part := client.recv(65536):
                count += len(part)
            return count

    assert await asyncio.to_thread(read_slowly) > len(body)
    await eventually(lambda: not standing.proxy.plane.clients)


async def test_half_close_is_not_offered_over_tls_and_makes_no_noise(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        assert await peer.gone(), "who has said goodbye in TLS waits for nothing"

    backend = await start_backend(script)
    standing = await start_tls(settings_of(authority.issue("proxy")), ladder(backend.url), half_close=True)

    def leave() -> None:
        with (
            socket.create_connection(("127.0.0.1", standing.port), timeout=PATIENCE) as opened,
            authority.client_context().wrap_socket(opened, server_hostname="localhost") as client,
        ):
            client.sendall(post())
            with contextlib.suppress(OSError):
                client.unwrap()

    await asyncio.to_thread(leave)
    plane = standing.proxy.plane
    await eventually(lambda: bool(standing.outcomes()) and not plane.relays and not plane.clients)


async def test_a_drain_does_not_wait_for_idle_clients_to_say_goodbye(
    authority: Authority, start_backend: StartBackend, start_tls: StartTls
) -> None:
    backend = await start_backend()
    standing = await start_tls(
        settings_of(authority.issue("proxy")), ladder(backend.url), drain_seconds=1000.0
    )
    idle = await standing.connect(authority.client_context())
    assert (await idle.ask(post())).status == 200
    idle.writer.transport.pause_reading()  # as a pool of connections does
    shaking = await standing.connect_plainly()
    await eventually(lambda: len(standing.entrance._handshakes) == 1)
    standing.entrance.close()
    async with asyncio.timeout(PATIENCE):
        await standing.proxy.plane.drain()
    assert await shaking.rest() in (b"", b"<reset>")
