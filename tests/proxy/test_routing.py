"""Which tier answers: weights, stickiness, changes of route, rungs that are down, and restarts."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from service.fleet import Route
from service.proxy.entry.admission import anchor_of, percent_of
from service.proxy.traffic.routing import RouteBook, is_split, rungs_down, tier_at
from tests.ports import free_port
from tests.proxy.raw_client import post
from tests.proxy.scripted import CHUNKED, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, ladder

THREE = ladder("http://a", "http://b", "http://c")


def test_a_ramp_moves_nobody_back() -> None:
    """Who was on the new tier at 5 % is on it at 25 % and at 100 %."""
    ramp = [{"t0": 95, "t1": 5}, {"t0": 75, "t1": 25}, {"t0": 0, "t1": 100}]
    before: set[int] = set()
    for weights, share in zip(ramp, (5, 25, 100), strict=True):
        route = Route(model="m", weights=weights)
        on_it = {percent for percent in range(100) if tier_at(route, THREE, percent).name == "t1"}
        assert len(on_it) == share
        assert before <= on_it
        before = on_it


def test_weights_are_shares_of_keys() -> None:
    route = Route(model="m", weights={"t0": 50, "t1": 30, "t2": 20})
    counts = Counter(tier_at(route, THREE, percent_of(b"s", b"%d" % key)).name for key in range(10_000))
    assert counts["t0"] == pytest.approx(5000, abs=250)
    assert counts["t1"] == pytest.approx(3000, abs=230)
    assert is_split(route)
    assert not is_split(Route(model="m", weights={"t0": 0, "t1": 100}))


def test_rungs_go_down_to_the_baseline() -> None:
    assert [tier.name for tier in rungs_down(THREE, THREE.tiers[2])] == ["t2", "t1", "t0"]
    assert [tier.name for tier in rungs_down(THREE, THREE.baseline)] == ["t0"]


def test_routes_start_at_the_baseline_and_survive_a_restart(tmp_path: Path) -> None:
    book = RouteBook({"m": THREE}, tmp_path)
    assert book["m"].serving == "t0"
    assert book.follow(Route.only("m", "t1", version=3))
    again = RouteBook({"m": THREE}, tmp_path)
    assert again["m"] == Route.only("m", "t1", version=3)
    assert again.serving["m"].name == "t1"


def test_old_and_unknown_routes_are_not_followed(tmp_path: Path) -> None:
    book = RouteBook({"m": THREE}, tmp_path)
    assert book.follow(Route.only("m", "t1", version=3))
    assert not book.follow(Route.only("m", "t0", version=2))
    assert not book.follow(Route.only("m", "t9", version=4))
    assert not book.follow(Route.only("other", "t0", version=4))
    assert book["m"].version == 3


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"routes":[{}]}', '{"routes":[{"model":"m","weights":{"t1":7}}]}']
)
def test_an_unreadable_memory_starts_at_the_baseline(tmp_path: Path, text: str) -> None:
    (tmp_path / "routes.json").write_text(text)
    assert RouteBook({"m": THREE}, tmp_path)["m"].serving == "t0"


def test_a_tier_that_left_the_configuration_is_not_remembered(tmp_path: Path) -> None:
    RouteBook({"m": THREE}, tmp_path).follow(Route.only("m", "t2", version=1))
    assert RouteBook({"m": ladder("http://a", "http://b")}, tmp_path)["m"].serving == "t0"


def test_a_state_directory_that_cannot_be_written_stops_no_route(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    book = RouteBook({"m": THREE}, tmp_path / "file")
    assert book.follow(Route.only("m", "t1", version=1))
    assert book["m"].serving == "t1"


def test_the_anchor_is_what_a_conversation_s_turns_share() -> None:
    first = {"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}
    second = {"temperature": 1, "messages": [*first["messages"], {"role": "assistant", "content": "a"}]}
    other = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "z"}]}
    anchors = [anchor_of(json.dumps(body).encode()) for body in (first, second, other)]
    assert anchors[0] == anchors[1] != anchors[2]
    assert anchor_of(b"{}") is anchor_of(b"no json") is anchor_of(b'{"messages":7}') is None


def issued(tier: str, version: int, at: float) -> Route:
    return Route(model="m", weights={tier: 100}, version=version, issued_at=at)


def test_a_database_made_anew_is_followed_though_its_versions_begin_again(tmp_path: Path) -> None:
    assert RouteBook({"m": THREE}, tmp_path).follow(issued("t1", 700, at=1000.0))
    book = RouteBook({"m": THREE}, tmp_path)
    assert book["m"].issued_at == 1000.0
    assert not book.follow(issued("t2", 701, at=999.0))
    assert book.follow(issued("t2", 1, at=1001.0))
    assert book["m"].serving == "t2"


def test_a_huge_version_without_a_time_gives_way_to_whatever_is_issued(tmp_path: Path) -> None:
    book = RouteBook({"m": THREE}, tmp_path)
    assert book.follow(Route.only("m", "t1", version=10**15))
    assert book.follow(issued("t2", 1, at=1001.0))


def test_one_remembered_route_that_cannot_be_costs_no_other(tmp_path: Path) -> None:
    other = replace(THREE, model="n")
    remembered = [
        {"model": "m", "weights": {"t1": 100}, "version": 10**18},
        {"model": "n", "weights": {"t1": 100}, "version": 3},
    ]
    (tmp_path / "routes.json").write_text(json.dumps({"routes": remembered}))
    book = RouteBook({"m": THREE, "n": other}, tmp_path)
    assert (book["m"].serving, book["n"].serving) == ("t0", "t1")


async def test_a_route_change_takes_effect_and_streams_end_where_they_began(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    go_on = asyncio.Event()

    async def slow(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"3\r\nold\r\n")
        await go_on.wait()
        await peer.send(b"3\r\nold\r\n0\r\n\r\n")

    old, new = await start_backend(slow), await start_backend()
    proxy = await start_proxy(ladder(old.url, new.url))
    streams = [await proxy.connect() for _ in range(50)]
    for stream in streams:
        await stream.send(post())
        await stream.reader.readuntil(b"old\r\n")
    proxy.store.publish(Route.only("m", "t1", version=1))
    answered = await proxy.ask(post())
    assert answered.header(b"x-tiergate-tier") == [b"t1"]
    go_on.set()
    for stream in streams:
        assert await stream.reader.readexactly(13) == b"3\r\nold\r\n0\r\n\r\n"
    proxy.store.publish(Route.only("m", "t0", version=2))
    assert (await proxy.ask(post())).header(b"x-tiergate-tier") == [b"t0"]


async def test_a_split_route_sticks_to_conversations(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    one, two = await start_backend(), await start_backend()
    proxy = await start_proxy(ladder(one.url, two.url))
    proxy.store.publish(Route(model="m", weights={"t0": 50, "t1": 50}, version=1))
    tiers: dict[int, set[bytes]] = {}
    client = await proxy.connect()
    for turn in range(3):
        for number in range(40):
            turns = [{"role": "user", "content": f"question {number}"}]
            turns += [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}] * turn
            answered = await client.ask(post(json.dumps({"model": "m", "messages": turns}).encode()))
            tiers.setdefault(number, set()).update(answered.header(b"x-tiergate-tier"))
    assert all(len(seen) == 1 for seen in tiers.values())
    counts = Counter(tier for seen in tiers.values() for tier in seen)
    assert min(counts.values()) >= 8


def test_a_reload_keeps_routes_and_takes_one_that_came_too_early(tmp_path: Path) -> None:
    book = RouteBook({"m": ladder("http://a", "http://b")}, tmp_path)
    assert book.follow(Route.only("m", "t1", version=3))
    assert not book.follow(Route.only("m", "t2", version=4)), "not configured yet"
    assert not book.follow(Route.only("n", "t1", version=1)), "neither is its model"
    assert book.serving["m"].name == "t1"
    book.adopt({"m": THREE, "n": ladder("http://d", "http://e", model="n")})
    assert book["m"] == Route.only("m", "t2", version=4)
    assert book["n"] == Route.only("n", "t1", version=1)
    assert {model: tier.name for model, tier in book.serving.items()} == {"m": "t2", "n": "t1"}


def test_a_route_whose_tier_is_gone_gives_way_to_the_baseline_until_it_is_back(tmp_path: Path) -> None:
    book = RouteBook({"m": THREE}, tmp_path)
    book.follow(Route(model="m", weights={"t1": 50, "t2": 50}, version=1))
    assert book.split == {"m"}
    book.adopt({"m": ladder("http://a", "http://b")})
    assert (book.serving["m"].name, book.split) == ("t0", frozenset())
    assert book.tier_at("m", 0).backends[0].url == "http://a"
    book.adopt({"m": THREE})
    assert (book["m"].weights, book.split) == ({"t1": 50, "t2": 50}, {"m"})


def test_a_reload_serves_by_its_own_tiers(tmp_path: Path) -> None:
    book = RouteBook({"m": THREE}, tmp_path)
    book.follow(Route.only("m", "t1", version=1))
    book.adopt({"m": ladder("http://a", "http://other")})
    assert book.serving["m"].backends[0].url == "http://other"
    assert book.tier_at("m", 50).backends[0].url == "http://other"


async def test_a_tier_that_is_down_is_replaced_by_the_rung_below_and_it_says_so(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    baseline = await start_backend()
    proxy = await start_proxy(
        ladder(baseline.url, f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}")
    )
    proxy.store.publish(Route.only("m", "t2", version=1))
    for _ in range(3):
        answered = await proxy.ask(post())
        assert answered.status == 200
        assert answered.header(b"x-tiergate-tier") == [b"t0"]
        assert answered.header(b"x-tiergate-fallback-from") == [b"t2"]
    assert [capture.tier for capture in await proxy.captures(3)] == ["t0"] * 3
    assert sum(value for (name, _), value in proxy.plane.meters.counters.items() if name == "fallbacks") >= 3


async def test_nothing_falls_up(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    """A tier above the serving one has no approval, whoever is down."""
    above = await start_backend()
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{free_port()}", above.url))
    assert [(await proxy.ask(post())).status for _ in range(2)] == [503, 503]
    assert not above.requests
