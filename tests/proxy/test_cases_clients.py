"""What clients do to a proxy: leave at any moment, close one half, stop reading; and backends that close."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from random import Random

import pytest

from service.proxy.config import Timeouts
from service.store.redis.capture import Ending
from tests.patience import PATIENCE
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder


async def nothing_is_left(proxy: Proxy) -> None:
    """No connection, no relay, no request under way, no byte of the budget, once all has been shipped."""
    plane = proxy.plane
    await eventually(lambda: not plane.relays and not plane.clients)
    await eventually(lambda: all(server.outstanding == 0 for server in plane.servers))
    await eventually(lambda: plane.budget.used == 0)


# -- leaving -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["waiting", "streaming", "not streaming"])
async def test_half_of_the_clients_leave_at_random_and_take_their_requests_with_them(
    kind: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Cancelled within 100 ms, beside what any connection's end takes to be seen on this machine."""
    chance = Random(kind)
    count = 120
    left: dict[bytes, float] = {}
    noticed: dict[bytes, float] = {}
    bare: dict[bytes, float] = {}

    async def script(received: Received, peer: Peer) -> None:
        number = received.header(b"x-number")[0]
        if kind == "streaming":
            await peer.send(CHUNKED)
        elif kind == "not streaming":
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n")
        leaves = int(number) % 2 == 1
        gone = asyncio.get_running_loop().create_task(peer.gone(PATIENCE if leaves else 0.3))
        if kind != "waiting":
            for step in range(9 if leaves else 10):
                if gone.done() and gone.result():
                    break
                part = b"%04d" % step
                with contextlib.suppress(ConnectionError, RuntimeError):  # gone meanwhile
                    await peer.send(b"4\r\n%b\r\n" % part if kind == "streaming" else part, pause=0.03)
        if await gone:
            noticed[number] = time.monotonic()
        elif kind == "streaming":
            await peer.send(b"0\r\n\r\n")
        elif kind == "waiting":
            await peer.send(OK)
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    tasks_before = len(asyncio.all_tasks())

    beside_there: set[bytes] = set()

    async def until_it_ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = (await reader.readline()).strip()
        beside_there.add(number)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        bare[number] = time.monotonic() - left[number]
        writer.close()

    beside = await asyncio.start_server(until_it_ends, "127.0.0.1", 0)

    async def come_and_go(number: int) -> None:
        client = await proxy.connect()
        await client.send(post(headers=[b"x-number: %d" % number]))
        if number % 2:
            await eventually(
                lambda: any(each.header(b"x-number") == [b"%d" % number] for each in backend.requests)
            )
            _, writer = await asyncio.open_connection(*beside.sockets[0].getsockname())
            writer.write(b"%d\n" % number)
            await eventually(lambda: b"%d" % number in beside_there)
            await asyncio.sleep(chance.random() * 0.2)
            left[b"%d" % number] = time.monotonic()
            client.reset() if chance.random() < 0.5 else client.abort()
            writer.transport.abort()
        else:
            assert (await client.answer()).is_whole
            client.close()

    async with beside:
        await asyncio.gather(*(come_and_go(number) for number in range(count)))
        await eventually(lambda: noticed.keys() >= left.keys() <= bare.keys())
    took = [noticed[number] - left[number] for number in left]
    nine_of_ten, of_bare_ones = (statistics.quantiles(each, n=10)[-1] for each in (took, bare.values()))
    print(f"cancelled: nine of ten after {nine_of_ten:.4f} s, the last after {max(took):.4f} s")
    assert nine_of_ten < 0.1 + 5 * of_bare_ones
    assert max(took) < 1.0 + 5 * max(bare.values())
    await nothing_is_left(proxy)
    captures = await proxy.captures(count)
    endings = [capture.ending for capture in captures]
    assert endings.count(Ending.CENSORED) == count // 2
    assert endings.count(Ending.COMPLETE) == count // 2
    ledger = proxy.ledger
    assert ledger["seen|m"] == ledger["sampled|m"] == ledger["shipped|m"] == count
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks_before)


async def test_a_client_that_leaves_with_requests_waiting_has_none_of_them_sent(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post() * 5)
    await eventually(lambda: bool(backend.requests))
    client.abort()
    await nothing_is_left(proxy)
    assert len(backend.requests) == 1
    assert proxy.ledger["seen|m"] == 1


@pytest.mark.parametrize("sent", [b"POST /v1/x HT", post()[:-3], b"POST /v1/x HTTP/1.1\r\nHost: a\r\n"])
@pytest.mark.parametrize("how", ["eof", "reset"])
async def test_a_client_that_leaves_within_its_request_costs_nothing(
    sent: bytes, how: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(sent)
    await eventually(lambda: bool(proxy.plane.clients))
    if how == "eof":
        client.writer.write_eof()
        assert await client.rest() == b""
        client.close()
    else:
        client.reset()
    await nothing_is_left(proxy)
    assert not backend.requests


# -- half-close ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [False, True])
async def test_half_close_in_the_middle_of_a_stream(
    allowed: bool, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    go_on = asyncio.Event()
    cancelled: list[bool] = []

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"2\r\nab\r\n")
        await go_on.wait()
        cancelled.append(await peer.gone(0.2 if allowed else PATIENCE))
        await peer.send(b"2\r\ncd\r\n0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), half_close=allowed)
    client = await proxy.connect()
    await client.send(post())
    await client.reader.readuntil(b"ab\r\n")
    client.writer.write_eof()
    go_on.set()
    rest = await client.rest()
    assert rest == (b"2\r\ncd\r\n0\r\n\r\n" if allowed else b"") or (not allowed and rest == b"<reset>")
    assert cancelled == [not allowed]
    client.close()
    [capture] = await proxy.captures(1)
    assert capture.ending is (Ending.COMPLETE if allowed else Ending.CENSORED)
    await nothing_is_left(proxy)


async def test_half_close_behind_pipelined_requests_gets_all_their_answers_when_allowed(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), half_close=True)
    client = await proxy.connect()
    await client.send(post() * 5 + get(b"/v1/models"))
    client.writer.write_eof()
    for _ in range(6):
        assert (await client.answer()).status == 200
    assert await client.rest() == b""
    client.close()
    assert len(backend.requests) == 5


# -- slow readers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_many_clients_that_do_not_read_hold_little_each(
    framing: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    count, total = 20, 30_000_000
    part = b"data: " + b"x" * 1000 + b"\n\n"

    async def script(received: Received, peer: Peer) -> None:
        if framing == "length":
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        else:
            await peer.send(CHUNKED)
        many = (b"%x\r\n%b\r\n" % (len(part), part) if framing == "chunks" else part) * 64
        while True:
            await peer.send(many)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    clients = [await proxy.connect() for _ in range(count)]
    for client in clients:
        client.writer.transport.pause_reading()
        await client.send(post())
    await eventually(lambda: len(backend.requests) == count)
    held, before = 0, -1
    while held != before:
        before = held
        await asyncio.sleep(0.2)
        held = sum(each._transport.get_write_buffer_size() for each in proxy.plane.clients)
    assert len(proxy.plane.clients) == count
    assert held < count * 600_000
    # And the recorder's copies are bounded by what one exchange may have, and all of them by the budget.
    assert proxy.plane.budget.used <= proxy.plane.budget.limit
    for client in clients:
        client.abort()
    await nothing_is_left(proxy)


async def test_a_reader_that_stops_for_longer_than_a_backend_may_gets_every_byte(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """A pause of the client's is not a silence of the backend's, however long."""
    total = 12_000_000

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        for at in range(0, total, 100_000):
            await peer.send(b"%08d" % at + b"x" * 99_992)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), timeouts=Timeouts(idle=1.0))
    client = await proxy.connect()
    await client.send(post())
    client.writer.transport.pause_reading()
    await asyncio.sleep(2.5)
    client.writer.transport.resume_reading()
    answered = await client.answer()
    assert answered.is_whole
    assert answered.body == b"".join(b"%08d" % at + b"x" * 99_992 for at in range(0, total, 100_000))
    client.close()


# -- keep-alive ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["close", "reset"])
async def test_a_backend_that_closes_as_the_next_request_comes_costs_no_client_an_answer(
    ends: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Servers close idle connections after 5 s, say; here at any moment around the next request."""
    chance = Random(ends)

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(OK, pause=chance.random() * 0.004)
        peer.close() if ends == "close" else peer.reset()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))

    async def ask_on() -> None:
        client = await proxy.connect()
        for _ in range(60):
            answered = await client.ask(post())
            assert (answered.status, answered.body) == (200, b"{}")
            await asyncio.sleep(chance.random() * 0.004)
        client.close()

    await asyncio.gather(*(ask_on() for _ in range(4)))
    [server] = proxy.plane.servers
    assert not server.is_ejected
    await nothing_is_left(proxy)


async def test_a_request_that_must_not_be_repeated_is_sent_once_whatever_the_backend_closes(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    chance = Random(3)

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(OK, pause=chance.random() * 0.003)
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for number in range(80):
        once = b'{"model":"m","background":true}'
        answered = await client.ask(post(once, path=b"/v1/responses", headers=[b"x-number: %d" % number]))
        assert answered.status == 200
        assert (await client.ask(post())).status == 200  # leaves a connection that is about to close
    client.close()
    numbers = [each.header(b"x-number")[0] for each in backend.requests if each.header(b"x-number")]
    assert numbers == [b"%d" % number for number in range(80)]


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("more", [post() * 40, post(b"x" * 1_500_000)], ids=["pipelined", "body"])
async def test_a_client_that_leaves_while_it_is_read_no_further_is_noticed(
    how: str, more: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post())
    await eventually(lambda: bool(backend.requests))
    await client.send(more)
    await asyncio.sleep(0.3)
    if how == "close":
        client.close()
    else:
        client.reset()
    await nothing_is_left(proxy)
    assert not backend.failures


async def test_answers_of_our_own_wait_for_their_reader_and_for_everybody_else(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """A client that pipelines questions and reads nothing is read no further, and holds nobody up."""
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    rude = await proxy.connect()
    flood = get(b"/v1/models") * 2000
    sent, most = 0, 64_000_000
    with contextlib.suppress(TimeoutError):
        while sent < most:
            rude.writer.write(flood)
            async with asyncio.timeout(1.0):
                await rude.writer.drain()
            sent += len(flood)
    assert sent < most, "so many bytes of questions were read"
    [connection] = proxy.plane.clients
    assert len(connection._waiting) <= 8000  # of one read, and not of many
    assert connection._transport.get_write_buffer_size() < 1024 * 1024
    assert (await proxy.ask(post())).status == 200
    answered = asyncio.get_running_loop().create_task(rude.reader.readexactly(3_000_000))
    await asyncio.wait_for(answered, PATIENCE)  # who reads again is answered again
    rude.reset()
    await nothing_is_left(proxy)
