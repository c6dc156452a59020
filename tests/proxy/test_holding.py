"""Request bodies are held within a budget, and every byte of it comes back."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.fleet import Limits
from service.proxy.config import AccessLogPlan, ClientLimits, Mirroring
from service.proxy.http.errors import Refusal
from service.proxy.http.holding import LEAST_RATE, SMALL_BODY, Bodies, Holding
from service.proxy.http.requests import Inbound, RequestReader
from service.proxy.processes.adoption import adopt
from service.proxy.processes.entrance import Entrance
from service.proxy.traffic.downstream import READ_AHEAD_BYTES
from service.proxy.traffic.health import Watches
from service.proxy.traffic.telling import snapshot
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder

KIB = 1024
KEPT = Mirroring(sample=1.0, salt=b"salt")
NOT_KEPT = Mirroring(sample=0.0, salt=b"salt")


def body(size: int, model: str = "m") -> bytes:
    start = b'{"model":"%b","messages":[],"user":"' % model.encode()
    return start + b"x" * (size - len(start) - 2) + b'"}'


def reader(budget: Bodies, max_body: int = 1024 * KIB) -> RequestReader:
    return RequestReader(max_head=KIB, max_body=max_body, conversation_header=b"x", bodies=budget)


def test_small_bodies_hold_nothing_and_others_all_they_have() -> None:
    budget = Bodies(1000 * KIB)
    one = reader(budget)
    one.feed(post(body(SMALL_BODY)))
    assert budget.used == 0
    one.feed(post(body(SMALL_BODY + 1)))
    assert budget.used == SMALL_BODY + 1
    one.feed(post(body(SMALL_BODY)))
    small, large, after = one.ready
    assert isinstance(small, Inbound)
    assert isinstance(large, Inbound)
    assert isinstance(after, Inbound)
    assert (small.held, large.held, after.held) == (0, SMALL_BODY + 1, 0)
    one.let_go(large)
    one.let_go(large)
    assert budget.used == 0
    one.close()
    assert budget.used == 0


def test_bytes_are_held_as_they_arrive_and_not_as_announced() -> None:
    budget = Bodies(1000 * KIB)
    one = reader(budget)
    one.feed(post(body(900 * KIB))[: 100 * KIB])
    assert 90 * KIB < budget.used <= 100 * KIB
    one.close()
    assert budget.used == 0


def test_what_would_go_beyond_the_budget_is_refused_and_holds_nothing() -> None:
    budget = Bodies(200 * KIB)
    first, second = reader(budget), reader(budget)
    first.feed(post(body(150 * KIB))[:-1])
    second.feed(post(body(100 * KIB)))
    (refusal,) = second.ready
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code, refusal.retry_after) == (503, "busy", 1)
    assert budget.used < 151 * KIB
    first.feed(b"}")
    assert isinstance(first.ready[0], Inbound)
    first.close()
    second.close()
    assert budget.used == 0


def test_a_body_above_its_own_limit_is_413_however_full_the_budget_is() -> None:
    one = reader(Bodies(0), max_body=10 * KIB)
    one.feed(post(body(11 * KIB)))
    (refusal,) = one.ready
    assert isinstance(refusal, Refusal)
    assert refusal.status == 413
    one.close()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(40, 300 * KIB), max_size=6),
    st.lists(st.integers(1, 100 * KIB), max_size=12),
    st.booleans(),
    st.integers(0, 600 * KIB),
    st.randoms(use_true_random=False),
)
def test_whatever_arrives_the_budget_is_kept_and_comes_back(
    sizes: list[int], cuts: list[int], chunked: bool, limit: int, chance: random.Random
) -> None:
    budget = Bodies(limit)
    one = reader(budget)
    stream = b"".join(map(_chunked if chunked else post, map(body, sizes)))
    at = 0
    for cut in [*cuts, len(stream)]:
        one.feed(stream[at : at + cut])
        at += cut
        assert 0 <= budget.used <= limit
        assert budget.used <= one.bytes_read
        if one.ready and chance.random() < 0.5:
            taken = one.ready.popleft()
            if isinstance(taken, Inbound):
                assert taken.held in (0, len(taken.body))
                one.let_go(taken)
    one.close()
    assert budget.used == 0


def _chunked(content: bytes) -> bytes:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [content[at : at + 50_000] for at in range(0, len(content), 50_000)]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def test_a_connection_without_a_budget_holds_nothing() -> None:
    holding = Holding(None)
    assert holding.grow(10**9, lambda _: None) is None
    assert holding.hand_over() == 0
    holding.close()


def test_half_a_body_that_brings_nothing_more_gives_way_when_its_room_is_wanted() -> None:
    budget = Bodies(300 * KIB)
    silent, other = reader(budget), reader(budget)
    silent.feed(post(body(250 * KIB))[:-1])
    other.feed(post(body(100 * KIB)))
    assert isinstance(other.ready.popleft(), Refusal)  # it may still be on its way
    assert not silent.ready
    budget.patience = 0.01
    time.sleep(0.02)
    small, large = reader(budget), reader(budget)
    small.feed(post(body(SMALL_BODY)))
    assert not silent.ready  # nobody wants its room
    large.feed(post(body(100 * KIB)))
    assert isinstance(large.ready[0], Inbound)
    (refusal,) = silent.ready
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code, refusal.retry_after) == (503, "busy", 1)
    assert budget.used == 100 * KIB
    silent.feed(b"}")
    assert len(silent.ready) == 1
    for each in (silent, other, small, large):
        each.close()
    assert (budget.used, budget.half_read) == (0, {})


@pytest.mark.parametrize(("rate", "gives_way"), [(LEAST_RATE // 4, True), (4 * LEAST_RATE, False)])
def test_a_slow_body_gives_way_however_fast_it_began_and_others_do_not(rate: int, gives_way: bool) -> None:
    budget = Bodies(3000 * KIB, patience=0.5)
    one, other = reader(budget, 4000 * KIB), reader(budget, 4000 * KIB)
    sent = post(body(3900 * KIB))
    one.feed(sent[: 500 * KIB])
    at, began = 500 * KIB, time.monotonic()
    while time.monotonic() < began + 1.5:
        time.sleep(0.01)
        # The end of a loop: nothing may come between a part and who wants its room.
        upto = 500 * KIB + int((time.monotonic() - began) * rate)
        one.feed(sent[at:upto])
        at = upto
    other.feed(post(body(2800 * KIB)))
    assert isinstance(other.ready[0], Inbound) is gives_way
    assert bool(one.ready) is gives_way
    one.close()
    other.close()


def test_no_more_bodies_give_way_than_are_needed_and_whole_ones_never() -> None:
    budget = Bodies(500 * KIB, patience=0.01)
    halves = [reader(budget) for _ in range(3)]
    whole, wanting = reader(budget), reader(budget)
    whole.feed(post(body(100 * KIB)))
    for each in halves:
        each.feed(post(body(140 * KIB))[: 120 * KIB])
    time.sleep(0.02)
    wanting.feed(post(body(150 * KIB)))
    assert [len(each.ready) for each in halves] == [1, 0, 0]
    assert isinstance(wanting.ready[0], Inbound)
    assert isinstance(whole.ready[0], Inbound)
    for each in (*halves, whole, wanting):
        each.close()
    assert budget.used == 0


# -- through the proxy ---------------------------------------------------------------------------------


class Backend:
    """Takes requests and answers when told to."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.may_end = asyncio.Event()
        self.bodies: list[int] = []

    async def __call__(self, received: Received, peer: Peer) -> None:
        self.bodies.append(len(received.body))
        await self.may_answer.wait()
        head, _, content = OK.partition(b"\r\n\r\n")
        await peer.send(head + b"\r\n\r\n")
        await self.may_end.wait()
        await peer.send(content)


@pytest.mark.parametrize("mirroring", [KEPT, NOT_KEPT])
async def test_a_body_is_held_until_its_answer_begins(
    mirroring: Mirroring, start_backend: StartBackend, start_proxy: StartProxy, tmp_path: object
) -> None:
    backend = Backend()
    proxy = await start_proxy(
        ladder((await start_backend(backend)).url),
        mirroring=mirroring,
        access_log=AccessLogPlan(to=f"{tmp_path}/access.log", sample=1.0),
    )
    client = await proxy.connect()
    await client.send(post(body(300 * KIB)))
    await eventually(lambda: backend.bodies == [300 * KIB])
    assert proxy.plane.bodies.used == 300 * KIB
    assert [
        each for each in snapshot(proxy.plane)["meters"]["gauges"] if each[0] == "request_buffer_bytes"
    ] == [["request_buffer_bytes", (), 300 * KIB]]
    backend.may_answer.set()
    await eventually(lambda: proxy.plane.bodies.used == 0)
    (relay,) = proxy.plane.relays
    assert (relay.inbound.body == b"") is (mirroring is NOT_KEPT)
    backend.may_end.set()
    assert (await client.answer()).status == 200
    client.close()
    if mirroring is KEPT:
        assert [len(each.request_body) for each in await proxy.captures(1)] == [300 * KIB]
    await proxy.plane.drain()
    assert proxy.plane.meters.request_bytes == 300 * KIB
    with open(f"{tmp_path}/access.log", encoding="utf-8") as lines:  # noqa: ASYNC230 - it is written already
        assert [json.loads(line)["bytes_in"] for line in lines] == [300 * KIB]


async def test_one_too_many_is_told_to_come_again_and_may(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = Backend()
    backend.may_end.set()
    proxy = await start_proxy(
        ladder((await start_backend(backend)).url), clients=ClientLimits(buffered=500 * KIB)
    )
    first = await proxy.connect()
    await first.send(post(body(400 * KIB)))
    await eventually(lambda: backend.bodies == [400 * KIB])
    refused = await proxy.ask(post(body(200 * KIB)))
    assert (refused.status, refused.error, refused.header(b"retry-after")) == (503, b"busy", [b"1"])
    assert json.loads(refused.body)["error"]["type"] == "server_error"
    backend.may_answer.set()
    assert (await first.answer()).status == 200
    assert (await proxy.ask(post(body(200 * KIB)))).status == 200
    assert (await proxy.ask(post())).status == 200
    first.close()
    assert proxy.plane.bodies.used == 0


async def test_half_a_body_that_never_ends_gives_back_what_it_held(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    leaving = await proxy.connect()
    await leaving.send(post(body(900 * KIB))[: 600 * KIB])
    await eventually(lambda: proxy.plane.bodies.used > 500 * KIB)
    leaving.abort()
    await eventually(lambda: proxy.plane.bodies.used == 0)


async def test_slow_uploads_keep_nobody_out(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    proxy = await start_proxy(
        ladder((await start_backend()).url), clients=ClientLimits(buffered=600 * KIB, body=30.0)
    )
    slow = [await proxy.connect() for _ in range(2)]
    for client in slow:
        await client.send(post(body(290 * KIB))[:-20])
    await eventually(lambda: proxy.plane.bodies.used > 570 * KIB)
    assert (await proxy.ask(post(body(100 * KIB)))).status == 503
    proxy.plane.bodies.patience = 0.2
    for _ in range(10):
        for client in slow:
            await client.send(b"x")
        await asyncio.sleep(0.05)
    assert (await proxy.ask(post(body(100 * KIB)))).status == 200
    refused = await slow[0].answer()  # without another byte from it
    assert (refused.status, refused.error) == (503, b"busy")
    assert await slow[0].rest() == b""
    assert (await slow[1].ask(b'xxxxxxxx"}')).status == 200
    for client in slow:
        client.close()
    assert proxy.plane.bodies.used == 0


async def test_a_body_read_ahead_gives_way_too_and_is_told_so_after_the_answer_before_it(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = Backend()
    backend.may_end.set()
    proxy = await start_proxy(
        ladder((await start_backend(backend)).url), clients=ClientLimits(buffered=300 * KIB)
    )
    proxy.plane.bodies.patience = 0.1
    ahead = await proxy.connect()
    await ahead.send(post() + post(body(290 * KIB))[: 250 * KIB])
    await eventually(lambda: proxy.plane.bodies.used > SMALL_BODY)
    held = proxy.plane.bodies.used
    await asyncio.sleep(0.2)
    wanting = await proxy.connect()
    await wanting.send(post(body(299 * KIB)))
    await eventually(lambda: len(backend.bodies) == 2)
    assert held < proxy.plane.bodies.used == 299 * KIB
    backend.may_answer.set()
    assert (await ahead.answer()).status == 200
    assert (await ahead.answer()).error == b"busy"
    assert (await wanting.answer()).status == 200
    ahead.close()
    wanting.close()


async def test_a_body_byte_by_byte_is_not_waited_for(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url), clients=ClientLimits(body=1.0))
    crawling, steady = await proxy.connect(), await proxy.connect()
    content = body(60 * KIB)
    await crawling.send(post(content)[:200])
    refusal = asyncio.get_running_loop().create_task(crawling.answer())
    request = post(content)
    for at in range(0, len(request), 1000):  # 20 KiB a second at most, and several times `body`
        await steady.send(request[at : at + 1000], pause=0.05)
        if not refusal.done():
            crawling.writer.write(b"x")
    assert (await steady.answer()).status == 200
    refused = await refusal
    assert (refused.status, refused.error) == (408, b"request_timeout")
    for client in (crawling, steady):
        client.close()


async def test_little_is_read_ahead_of_a_connection_however_small_its_bodies(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = Backend()
    backend.may_end.set()
    proxy = await start_proxy(ladder((await start_backend(backend)).url))
    client = await proxy.connect()
    sending = asyncio.get_running_loop().create_task(client.send(*[post(body(60 * KIB))] * 30))
    await eventually(lambda: bool(backend.bodies))
    await asyncio.sleep(0.3)
    (connection,) = proxy.plane.clients
    one_read = 256 * KIB
    assert connection._reader.bytes_read <= READ_AHEAD_BYTES + one_read
    backend.may_answer.set()
    assert [(await client.answer()).status for _ in range(30)] == [200] * 30
    await sending
    client.close()


async def test_who_is_refused_holds_nothing(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    client = await proxy.connect()
    assert (await client.ask(post(body(300 * KIB, model="unknown")))).status == 404
    assert proxy.plane.bodies.used == 0
    assert (await client.ask(post(body(300 * KIB), path=b"/v1/models"))).status == 405
    assert proxy.plane.bodies.used == 0
    assert (await client.ask(get(b"/v1/models"))).status == 200
    client.close()


async def test_a_body_is_held_while_it_waits_for_its_turn(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = Backend()
    model = replace(ladder((await start_backend(backend)).url), limits=Limits(concurrency=1))
    proxy = await start_proxy(model)
    clients = [await proxy.connect() for _ in range(3)]
    for client in clients:
        await client.send(post(body(300 * KIB)))
    await eventually(lambda: proxy.plane.bodies.used == 900 * KIB)
    clients[2].abort()
    await eventually(lambda: proxy.plane.bodies.used <= 600 * KIB)
    backend.may_answer.set()
    backend.may_end.set()
    for client in clients[:2]:
        assert (await client.answer()).status == 200
        client.close()
    assert proxy.plane.bodies.used == 0


async def test_a_request_whose_backend_fails_is_sent_again_whole(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    sizes: list[int] = []

    async def hangs_up_once(received: Received, peer: Peer) -> None:
        sizes.append(len(received.body))
        if len(sizes) == 1:
            peer.close()
        else:
            await peer.send(OK)

    urls = [(await start_backend(hangs_up_once)).url for _ in range(2)]
    proxy = await start_proxy(ladder(urls), mirroring=NOT_KEPT)
    assert (await proxy.ask(post(body(300 * KIB)))).status == 200
    assert sizes == [300 * KIB] * 2
    assert proxy.plane.bodies.used == 0


async def test_a_reload_changes_the_budget(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    plane = proxy.plane
    config = replace(plane.config, clients=ClientLimits(buffered=100 * KIB))
    adopt(config, plane, Entrance(plane, None), Watches(plane))
    assert (await proxy.ask(post(body(300 * KIB)))).status == 503
    assert plane.bodies.used == 0
