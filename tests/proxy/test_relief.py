"""A full tier's requests go below where that is wanted, and short prompts do not wait behind long ones."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from service.fleet import Fallback, Ladder, Limits, Priority, Route
from service.proxy.entry.guards import exceeds
from service.proxy.traffic.telling import snapshot
from tests.proxy.raw_client import get, post
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder
from tests.proxy.test_crowd import Clients, Till, adopted, bounded, count, waiting
from tests.proxy.test_kv_guard import Engine, guarded, page, server_of, told

OVERFLOW = Fallback.RUNG_BELOW


def spilling(model: Ladder, **limits: object) -> Ladder:
    return replace(model, limits=replace(Limits(), fallback=OVERFLOW, **limits))  # type: ignore[arg-type]


async def test_what_finds_its_tier_full_goes_to_a_free_place_below_and_else_waits(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    below, above = Till(), Till()
    urls = [(await start_backend(each)).url for each in (below, above)]
    proxy = await start_proxy(spilling(bounded(ladder(*urls), 1, 1)))
    proxy.store.publish(Route.only("m", "t1", version=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3")
        await above.until_there("1")
        await below.until_there("2")
        assert waiting(proxy) == 1
        below.answer("2")
        await below.until_there("3")
        assert (await clients.asked["2"]).header(b"x-tiergate-fallback-from") == [b"t1"]
        below.answer("3")
        above.answer("1")
    pair = {"from": "t1", "to": "t0"}
    assert count(proxy, "overflows", model="m", **pair) == 2
    assert count(proxy, "fallbacks", model="m", **pair) == 0
    assert (await clients.asked["1"]).header(b"x-tiergate-fallback-from") == []


async def test_a_rung_above_is_nobody_s_relief(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    """Nobody approved it."""
    baseline, above = Till(), Till()
    urls = [(await start_backend(each)).url for each in (baseline, above)]
    proxy = await start_proxy(spilling(bounded(ladder(*urls), 1, 5)))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        assert waiting(proxy) == 1
        baseline.answer("1")
        await baseline.until_there("2")
        baseline.answer("2")
    assert above.came == []


async def test_the_next_rung_with_a_place_is_the_least_aggressive_last(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    tills = [Till(), Till(), Till()]
    urls = [(await start_backend(each)).url for each in tills]
    proxy = await start_proxy(spilling(bounded(ladder(*urls), 1, 1, 1)))
    proxy.store.publish(Route.only("m", "t2", version=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3", "4")
        assert [till.came for till in tills] == [["3"], ["2"], ["1"]]
        tills[1].answer("2")
        await tills[1].until_there("4")
        for till, name in zip(tills, ("3", "4", "1"), strict=True):
            till.answer(name)


async def test_a_full_cache_sends_new_prompts_below_until_it_has_room(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    below, above = Engine(), Engine()
    below.always = page(0.1, 1.0)
    urls = [(await start_backend(each)).url for each in (below, above)]
    proxy = await start_proxy(guarded(ladder(*urls), fallback=OVERFLOW))
    server = server_of(proxy, "t1")
    proxy.store.publish(Route.only("m", "t1", version=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await told(proxy, above, server, 0.95)
        await clients.ask("1")
        await below.until_there("1")
        await told(proxy, above, server, 0.1)
        await clients.ask("2")
        await above.until_there("2")
        below.answer("1")
        above.answer("2")
    assert (below.came, above.came) == (["1"], ["2"])


async def test_the_limit_of_a_model_holds_over_all_its_rungs(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    below, above = Till(), Till()
    urls = [(await start_backend(each)).url for each in (below, above)]
    proxy = await start_proxy(spilling(bounded(ladder(*urls), 9, 1), concurrency=2))
    proxy.store.publish(Route.only("m", "t1", version=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3")
        assert (above.came, below.came, waiting(proxy)) == (["1"], ["2"], 1)
        above.answer("1")
        await above.until_there("3")
        above.answer("3")
        below.answer("2")


async def test_a_reload_takes_it_away_and_a_rung_that_is_down_is_no_relief(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    below, above = Till(), Till()
    urls = [(await start_backend(each)).url for each in (below, above)]
    model = bounded(ladder(*urls), 1, 1)
    proxy = await start_proxy(spilling(model))
    proxy.store.publish(Route.only("m", "t1", version=1))
    snapshot(proxy.plane)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        proxy.plane.servers.of("m", "t0")[0].failed(0.0, surely=True)
        proxy.keep_out()
        await clients.ask("2")
        assert waiting(proxy) == 1
        adopted(proxy, ladders={"m": model})
        proxy.plane.servers.of("m", "t0")[0].answered()
        await clients.ask("3")
        assert waiting(proxy) == 2
        for name in "123":
            await above.until_there(name)
            above.answer(name)
    assert below.came == []


async def test_questions_of_other_kinds_go_where_they_went(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    below, above = Till(), Till()
    urls = [(await start_backend(each)).url for each in (below, above)]
    proxy = await start_proxy(spilling(bounded(ladder(*urls), 1, 1)))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        assert (await proxy.ask(get(b"/version"))).status == 200
        await below.until_there("1")
        below.answer("1")


def prompt(name: str, tokens: int, key: str = "") -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": "word" * tokens}], "user": name}
    return post(json.dumps(body).encode(), headers=[b"Authorization: Bearer " + key.encode()] if key else [])


class Prompts(Clients):
    """Long ones have upper-case names."""

    async def ask(self, *names: str, model: str = "m", key: str = "") -> None:
        for name in names:
            before = len(self.proxy.plane.relays)
            asked = prompt(name, 500 if name[0].isupper() else 20, key or name[0])
            self.asked[name] = self.group.create_task(self.proxy.ask(asked))
            await eventually(lambda before=before: len(self.proxy.plane.relays) > before)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("priority", "order"),
    [
        (None, ["A1", "b1", "C1", "d1", "e1", "f1", "g1"]),
        (Priority(short=100, ahead=2), ["b1", "d1", "A1", "e1", "f1", "C1", "g1"]),
        (Priority(short=100, ahead=99), ["b1", "d1", "e1", "f1", "g1", "A1", "C1"]),
        (Priority(short=1000, ahead=1), ["A1", "b1", "C1", "d1", "e1", "f1", "g1"]),
    ],
)
async def test_short_prompts_go_first_and_long_ones_have_their_turn(
    priority: Priority | None, order: list[str], start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    model = bounded(ladder((await start_backend(till)).url), 1)
    proxy = await start_proxy(replace(model, limits=replace(Limits(), priority=priority)))
    async with asyncio.TaskGroup() as group:
        clients = Prompts(proxy, group)
        await clients.ask("z0")
        await till.until_there("z0")
        await clients.ask("A1", "b1", "C1", "d1", "e1", "f1", "g1")
        assert waiting(proxy) == 7
        for name in ("z0", *order):
            await till.until_there(name)
            till.answer(name)
    assert till.came == ["z0", *order]


@pytest.mark.parametrize(
    ("plain", "long"),
    [
        (b'{"messages": []}', False),
        (json.dumps({"prompt": "word" * 100}).encode(), False),
        (json.dumps({"prompt": "word" * 101}).encode(), True),
        (json.dumps({"prompt": list(range(101))}).encode(), True),
        (json.dumps({"prompt": "x", "image": "y" * 300, "messages": []}).encode(), False),
        (b"\xff" * 300, True),
        (b"[" + b"1," * 300 + b"1]", True),
        (None, True),
        (json.dumps({"prompt": "x", "image": "y" * 200_000}).encode(), False),
        (json.dumps({"prompt": "x", "image": "y" * 300_000}).encode(), True),
    ],
)
def test_what_cannot_be_read_or_is_large_counts_as_long_and_what_is_small_is_not_read(
    plain: bytes | None, long: bool
) -> None:
    assert exceeds(plain, 100) is long
