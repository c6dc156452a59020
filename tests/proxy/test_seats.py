"""Who gives way when there is no room for another client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from service.proxy.config import ClientLimits, ListenerTls
from service.proxy.processes.adoption import adopt
from service.proxy.processes.entrance import Entrance
from service.proxy.processes.seats import MOST_TOLD, Seats
from service.proxy.traffic.health import Watches
from tests.authority import Authority
from tests.proxy.raw_client import RawClient, post
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder, turns
from tests.proxy.test_entrance import settings_of


class Guest:
    """Has been idle since then, until it begins something or is asked to leave."""

    def __init__(self, since: float | None) -> None:
        self.since = since
        self.has_left = False

    def idle_since(self) -> float | None:
        return None if self.has_left else self.since

    def make_way(self) -> None:
        self.has_left = True


def left(guests: list[Guest]) -> list[int]:
    return [number for number, guest in enumerate(guests) if guest.has_left]


def test_the_longest_idle_goes_first() -> None:
    guests = [Guest(3.0), Guest(None), Guest(1.0), Guest(2.0)]
    seats = Seats(lambda: guests)
    for expected in ([2], [2, 3], [0, 2, 3]):
        assert seats.make_room()
        assert left(guests) == expected
    assert not seats.make_room(), "the last one is busy"
    assert left(guests) == [0, 2, 3]


def test_whoever_begins_something_after_a_look_stays_and_so_does_who_has_been_idle_for_less_long() -> None:
    guests = [Guest(float(number)) for number in range(4)]
    seats = Seats(lambda: guests)
    assert seats.make_room()
    guests[1].since = None
    guests[2].since = 50.0  # it has had an answer meanwhile
    assert seats.make_room()
    assert left(guests) == [0, 3]
    assert seats.make_room()
    assert left(guests) == [0, 2, 3]


def test_many_clients_are_not_looked_through_for_each_one_that_comes() -> None:
    guests = [Guest(float(number)) for number in range(4000)]
    looks = 0

    def look() -> list[Guest]:
        nonlocal looks
        looks += 1
        return guests

    seats = Seats(look)
    for _ in range(1000):
        assert seats.make_room()
    assert left(guests) == list(range(1000))
    assert looks <= 4
    for guest in guests:
        guest.since = None
    assert not any(seats.make_room() for _ in range(1000))
    assert looks <= 6, "there is nobody to be found, and looking costs"


class Standing:
    """A proxy behind an entrance with two places."""

    def __init__(self, proxy: Proxy, entrance: Entrance, port: int) -> None:
        self.proxy = proxy
        self.entrance = entrance
        self.port = port
        self._clients: list[RawClient] = []

    async def knock(self) -> RawClient:
        self._clients.append(RawClient(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self._clients[-1]

    def counted(self, outcome: str) -> float:
        return self.proxy.plane.meters.counters["clients_crowded_out", (("outcome", outcome),)]

    def leave(self) -> None:
        for client in self._clients:
            client.abort()


Stand = Callable[..., Awaitable[Standing]]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
async def stand(start_backend: StartBackend, start_proxy: StartProxy) -> AsyncIterator[Stand]:
    async with contextlib.AsyncExitStack() as stack:

        async def start(settings: ListenerTls | None = None) -> Standing:
            backend = await start_backend()
            proxy = await start_proxy(ladder(backend.url), clients=ClientLimits(connections=2))
            entrance = Entrance(proxy.plane, settings)
            server = await asyncio.get_running_loop().create_server(entrance, "127.0.0.1", 0)
            standing = Standing(proxy, entrance, server.sockets[0].getsockname()[1])
            for end in (entrance.close, server.close, standing.leave):
                stack.callback(end)
            return standing

        yield start


async def test_who_is_between_two_requests_gives_way_and_who_is_within_one_does_not(
    stand: Stand,
) -> None:
    standing = await stand()
    first, second = await standing.knock(), await standing.knock()
    await first.send(b"POST /v1/chat/comp")
    assert (await second.ask(post())).status == 200
    third = await standing.knock()
    assert (await third.ask(post())).status == 200
    assert await second.reader.read() == b""
    assert (standing.counted("closed"), standing.counted("refused")) == (1, 0)
    await first.send(post()[len(b"POST /v1/chat/comp") :])
    assert (await first.answer()).status == 200


async def test_more_than_can_be_told_at_once_just_see_the_end(stand: Stand) -> None:
    standing = await stand()
    for _ in range(2):
        await (await standing.knock()).send(b"POST /v1/chat/comp")
    crowd = [await standing.knock() for _ in range(MOST_TOLD + 5)]
    answers = [await client.reader.read() for client in crowd]
    assert sum(b"too_many_connections" in answer for answer in answers) == MOST_TOLD
    assert answers.count(b"") == 5
    assert standing.counted("refused") == MOST_TOLD + 5
    for client in crowd:
        client.close()
    await turns()
    assert b"too_many_connections" in await (await standing.knock()).reader.read(), "they were told and left"


async def test_a_client_that_does_not_begin_its_handshake_gives_way(
    stand: Stand, authority: Authority
) -> None:
    standing = await stand(settings_of(authority.issue("proxy")))
    silent = [await standing.knock() for _ in range(2)]
    client = RawClient(
        *await asyncio.open_connection("127.0.0.1", standing.port, ssl=authority.client_context())
    )
    assert (await client.ask(post())).status == 200
    assert await silent[0].reader.read() == b""
    outcomes = standing.proxy.plane.meters.counters
    await eventually(lambda: outcomes["tls_handshakes", (("outcome", "crowded_out"),)] == 1)
    client.abort()


async def test_a_reload_takes_another_limit_at_once(stand: Stand) -> None:
    standing = await stand()
    plane = standing.proxy.plane
    assert plane.meters.gauges["client_limit", ()] == 2
    wanted = replace(plane.config, clients=ClientLimits(connections=3))
    adopt(wanted, plane, standing.entrance, Watches(plane))
    assert plane.meters.gauges["client_limit", ()] == 3
    clients = [await standing.knock() for _ in range(3)]
    assert [(await client.ask(post())).status for client in clients] == [200] * 3
    adopt(replace(wanted, clients=ClientLimits(connections=1)), plane, standing.entrance, Watches(plane))
    assert [(await client.ask(post())).status for client in clients] == [200] * 3, "whoever is in stays in"
