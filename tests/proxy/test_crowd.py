"""Requests over a limit wait their turn, and are told when it will not come."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import replace

import pytest

from service.fleet import Backend, Ladder, Limits, Route
from service.proxy.config import AccessLogPlan, ProxyConfig, Timeouts
from service.proxy.processes.adoption import adopt
from service.proxy.processes.entrance import Entrance
from service.proxy.traffic.health import Watches
from service.proxy.traffic.telling import snapshot
from tests.patience import PATIENCE
from tests.proxy.raw_client import Answered, RawClient, get, post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder


class Till:
    """A backend's script: requests are answered when the test says so, by the name they carry."""

    def __init__(self) -> None:
        self.under_way: dict[str, asyncio.Future[bytes | None]] = {}
        self.came: list[str] = []
        self.most = 0

    async def __call__(self, received: Received, peer: Peer) -> None:
        if not received.body:
            await peer.send(OK)
            return
        name = json.loads(received.body)["user"]
        self.came.append(name)
        turn = self.under_way[name] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.under_way))
        try:
            answer = await turn
        finally:
            del self.under_way[name]
        if answer is None:
            peer.close()
        else:
            await peer.send(answer)

    def answer(self, *names: str, by: bytes | None = OK) -> None:
        for name in names:
            self.under_way[name].set_result(by)

    async def until_there(self, *names: str) -> None:
        await eventually(lambda: set(names) <= set(self.under_way))


def limited(model: Ladder, most: int | None = None, **limits: object) -> Ladder:
    return replace(model, limits=replace(Limits(), concurrency=most, **limits))  # type: ignore[arg-type]


def bounded(model: Ladder, *maxima: int | None) -> Ladder:
    """With maxima of the backends of each tier."""
    tiers = tuple(
        replace(tier, backends=tuple(replace(each, max_concurrency=most) for each in tier.backends))
        for tier, most in zip(model.tiers, maxima, strict=True)
    )
    return replace(model, tiers=tiers)


def request(name: str, model: str = "m", key: str = "") -> bytes:
    body = json.dumps({"model": model, "messages": [], "user": name}).encode()
    return post(body, headers=[b"Authorization: Bearer " + key.encode()] if key else [])


class Clients:
    """Many requests at once, each on a connection of its own."""

    def __init__(self, proxy: Proxy, group: asyncio.TaskGroup) -> None:
        self.proxy = proxy
        self.group = group
        self.asked: dict[str, asyncio.Task[Answered]] = {}

    async def ask(self, *names: str, model: str = "m", key: str = "") -> None:
        """In this order: the next is sent when the one before has got as far as it gets."""
        for name in names:
            before = len(self.proxy.plane.relays)
            self.asked[name] = self.group.create_task(self.proxy.ask(request(name, model, key)))
            await eventually(
                lambda name=name, before=before: (  # type: ignore[misc]
                    len(self.proxy.plane.relays) > before or self.asked[name].done()
                )
            )

    async def status(self, name: str) -> int:
        return (await self.asked[name]).status


def waiting(proxy: Proxy) -> int:
    crowd = proxy.plane.crowd
    return 0 if crowd is None else crowd.waiting


def count(proxy: Proxy, name: str, **labels: str) -> float:
    return proxy.plane.meters.counters[name, tuple(labels.items())]


def adopted(proxy: Proxy, **changes: object) -> ProxyConfig:
    """Take another configuration, as a reload does."""
    plane = proxy.plane
    config = replace(plane.config, **changes)  # type: ignore[arg-type]
    adopt(config, plane, Entrance(plane, None), Watches(plane))
    return config


async def test_without_limits_there_is_nothing_to_ask(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    assert proxy.plane.crowd is None
    assert (await proxy.ask(post())).status == 200


async def test_as_many_as_allowed_are_under_way_and_the_rest_follow_in_order(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 2))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3", "4", "5")
        await till.until_there("1", "2")
        assert waiting(proxy) == 3
        for ended, next_one in (("2", "3"), ("1", "4"), ("4", "5")):
            till.answer(ended)
            await till.until_there(next_one)
        till.answer("3", "5")
    assert {name: (await task).status for name, task in clients.asked.items()} == dict.fromkeys("12345", 200)
    assert till.came == list("12345")
    assert till.most == 2


async def test_tenants_take_turns(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("a1", "a2", "a3", "a4", key="a")
        await clients.ask("b1", "b2", key="b")
        for name in ("a1", "a2", "b1", "a3", "b2", "a4"):
            await till.until_there(name)
            till.answer(name)
    assert till.came == ["a1", "a2", "b1", "a3", "b2", "a4"]


async def test_one_more_than_the_queue_holds_is_turned_away_at_once(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1, queue=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3")
        refused = await clients.asked["3"]
        assert (refused.status, refused.reason) == (429, b"Too Many Requests")
        error = json.loads(refused.body)["error"]
        assert error.pop("message").startswith("m is busy.")
        assert error == {"type": "rate_limit_error", "param": None, "code": "too_many_requests"}
        assert refused.header(b"retry-after") == [b"1"]
        assert refused.error == b"too_many_requests"
        assert refused.header(b"x-request-id")
        await till.until_there("1")
        till.answer("1")
        await till.until_there("2")
        till.answer("2")
    assert till.came == ["1", "2"]
    assert count(proxy, "queue_refusals", model="m", reason="full") == 1
    assert count(proxy, "errors", code="too_many_requests") == 1


async def test_who_is_turned_away_may_ask_again_on_the_same_connection(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1, queue=0))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        await till.until_there("1")
        client = await proxy.connect()
        assert (await client.ask(request("2"))).status == 429
        assert (await client.ask(request("2"))).status == 429
        till.answer("1")
        assert await clients.status("1") == 200
        await client.send(request("2"))
        await till.until_there("2")
        till.answer("2")
        assert (await client.answer()).status == 200
        client.close()


async def test_who_waits_for_too_long_is_told(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1, queue_seconds=0.05))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        refused = await clients.asked["2"]
        assert (refused.status, refused.error) == (429, b"too_many_requests")
        assert "0.05 s" in json.loads(refused.body)["error"]["message"]
        assert waiting(proxy) == 0
        till.answer("1")
    assert till.came == ["1"]
    assert count(proxy, "queue_refusals", model="m", reason="timeout") == 1


async def test_waiting_counts_towards_no_timeout_of_a_backend(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(
        limited(ladder((await start_backend(till)).url), 1),
        timeouts=Timeouts(first_byte=3.0, idle=None, total=3.0),
    )
    names = "abcdefghijklmnop"
    turn = 0.0
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask(*names)
        for name in names:  # the last waits for 3.2 s and more, and has its turn for 0.2 s
            await till.until_there(name)
            await asyncio.sleep(0.2)
            last, turn = turn, time.monotonic()
            till.answer(name)
    whole = time.monotonic() - last
    assert [await clients.status(name) for name in names] == [200] * len(names)
    captures = {json.loads(each.request_body)["user"]: each for each in await proxy.captures(len(names))}
    assert (captures[names[-1]].total_seconds or 9.0) <= whole, "from its turn on"


async def test_a_client_that_leaves_the_queue_leaves_at_once_and_no_backend_hears_of_it(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        leaving = await proxy.connect()
        await leaving.send(request("2"))
        await eventually(lambda: waiting(proxy) == 1)
        await clients.ask("3")
        leaving.abort()
        await eventually(lambda: waiting(proxy) == 1)
        await till.until_there("1")
        till.answer("1")
        await till.until_there("3")
        till.answer("3")
    assert till.came == ["1", "3"]
    assert count(proxy, "client_disconnects", phase="queue") == 1
    await proxy.captures(2)
    assert proxy.ledger["seen|m"] == 3
    assert (proxy.ledger["skipped|m|refused"], proxy.ledger["sampled|m"]) == (1, 2)
    await eventually(lambda: proxy.plane.budget.used == 0)


async def test_the_ledger_has_a_place_for_everybody_who_was_turned_away(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1, queue=0))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3")
        assert [await clients.status(name) for name in "23"] == [429, 429]
        await till.until_there("1")
        till.answer("1")
    await proxy.captures(1)
    assert (proxy.ledger["seen|m"], proxy.ledger["skipped|m|refused"], proxy.ledger["sampled|m"]) == (3, 2, 1)


async def test_a_model_holds_up_no_other(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    till = Till()
    backend = await start_backend(till)
    proxy = await start_proxy(limited(ladder(backend.url), 1), ladder(backend.url, model="n"))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await clients.ask("3", "4", model="n")
        await till.until_there("1", "3", "4")
        till.answer("1", "3", "4")
        await till.until_there("2")
        till.answer("2")


async def test_questions_do_not_wait_behind_generations(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(bounded(limited(ladder((await start_backend(till)).url), 1), 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        assert (await proxy.ask(get(b"/health"))).status == 200
        assert waiting(proxy) == 1
        till.answer("1")
        await till.until_there("2")
        till.answer("2")


# -- backends that are full ----------------------------------------------------------------------------


async def test_a_backend_gets_no_more_than_it_takes_and_a_busy_tier_is_not_left(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    baseline, till = Till(), Till()
    model = ladder((await start_backend(baseline)).url, (await start_backend(till)).url)
    proxy = await start_proxy(bounded(model, None, 1))
    proxy.store.publish(Route.only("m", "t1", version=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        assert waiting(proxy) == 1
        till.answer("1")
        await till.until_there("2")
        till.answer("2")
    assert (baseline.came, till.came, till.most) == ([], ["1", "2"], 1)


async def test_who_waits_for_a_tier_that_goes_down_goes_to_the_rung_below(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    baseline, till = Till(), Till()
    backend = await start_backend(till)
    proxy = await start_proxy(bounded(ladder((await start_backend(baseline)).url, backend.url), None, 1))
    proxy.store.publish(Route.only("m", "t1", version=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3")
        await till.until_there("1")
        (server,) = proxy.plane.servers.of("m", "t1")
        proxy.plane.server_failed(server, "fell silent", surely=True)
        await baseline.until_there("2", "3")
        baseline.answer("2", "3")
        till.answer("1")
    assert (await clients.asked["2"]).header(b"x-tiergate-fallback-from") == [b"t1"]


async def test_a_request_that_a_backend_failed_waits_for_another_one(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    tills = [Till(), Till()]
    model = ladder([(await start_backend(till)).url for till in tills])
    proxy = await start_proxy(bounded(limited(model, queue=0), 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await eventually(lambda: all(till.under_way for till in tills))
        first = tills.index(next(till for till in tills if "1" in till.under_way))
        tills[first].answer("1", by=None)
        await eventually(lambda: waiting(proxy) == 1)
        tills[1 - first].answer("2")
        await tills[1 - first].until_there("1")
        tills[1 - first].answer("1")
    assert [await clients.status(name) for name in "12"] == [200, 200]


async def test_a_full_tier_does_not_hold_up_what_goes_to_another(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    baseline, till = Till(), Till()
    urls = (await start_backend(baseline)).url, (await start_backend(till)).url
    proxy = await start_proxy(bounded(ladder(*urls), None, 1))
    proxy.store.publish(Route.only("m", "t1", version=1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        proxy.store.publish(Route.only("m", "t0", version=2))
        await clients.ask("3")
        await baseline.until_there("3")
        assert waiting(proxy) == 1
        baseline.answer("3")
        till.answer("1")
        await till.until_there("2")
        till.answer("2")


# -- ends and changes ----------------------------------------------------------------------------------


async def test_a_drain_lets_those_who_wait_have_their_turn(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1), drain_seconds=PATIENCE)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3")
        await till.until_there("1")
        draining = group.create_task(proxy.plane.drain())
        for name in "123":
            await till.until_there(name)
            till.answer(name)
        await draining
    assert [await clients.status(name) for name in "123"] == [200] * 3
    assert proxy.store.ledger["sampled|m"] == 3


async def test_a_drain_that_ends_sends_no_more_to_backends(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1), drain_seconds=0.05)
    for name in "123":
        await (await proxy.connect()).send(request(name))
    await eventually(lambda: waiting(proxy) == 2)
    await till.until_there("1")
    await proxy.plane.drain()
    assert till.came == ["1"]
    ledger = proxy.store.ledger
    assert (ledger["seen|m"], ledger["skipped|m|refused"], ledger["sampled|m"]) == (3, 2, 1)
    for client in proxy.clients:
        assert await client.rest() in (b"", b"<reset>")


async def test_a_reload_that_allows_more_lets_them_go_on(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    model = ladder((await start_backend(till)).url)
    proxy = await start_proxy(limited(model, 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2", "3", "4")
        await till.until_there("1")
        adopted(proxy, ladders={"m": limited(model, 3)})
        await till.until_there("1", "2", "3")
        assert waiting(proxy) == 1
        adopted(proxy, ladders={"m": model})
        await till.until_there("4")
        assert proxy.plane.crowd is None
        till.answer("1", "2", "3", "4")


async def test_a_reload_that_allows_fewer_loses_nobody(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    model = ladder((await start_backend(till)).url)
    proxy = await start_proxy(model)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1", "2")
        adopted(proxy, ladders={"m": limited(model, 1)})
        await clients.ask("3", "4")
        assert waiting(proxy) == 2
        till.answer("1")
        assert await clients.status("1") == 200
        assert "3" not in till.under_way
        adopted(proxy, ladders={"m": limited(model, 1, queue=0)})
        for name in "234":
            await till.until_there(name)
            till.answer(name)
    assert [await clients.status(name) for name in "234"] == [200] * 3


async def test_who_waits_for_a_model_that_a_reload_takes_away_is_told(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    model = ladder((await start_backend(till)).url)
    proxy = await start_proxy(limited(model, 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        adopted(proxy, ladders={"n": replace(model, model="n")})
        assert await clients.status("2") == 503
        till.answer("1")
    assert await clients.status("1") == 200
    assert proxy.plane.crowd is None


async def test_a_maximum_of_a_backend_is_reloaded_too(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    till = Till()
    model = ladder((await start_backend(till)).url)
    proxy = await start_proxy(bounded(model, 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        adopted(proxy, ladders={"m": bounded(model, 2)})
        await till.until_there("2")
        till.answer("1", "2")


# -- what is seen of it --------------------------------------------------------------------------------


async def test_waiting_is_measured(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    till = Till()
    proxy = await start_proxy(limited(ladder((await start_backend(till)).url), 1))
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        gauges = {(name, *labels): value for name, labels, value in snapshot(proxy.plane)["meters"]["gauges"]}
        assert gauges["queued", ("model", "m")] == 1
        assert gauges["limited_in_flight", ("model", "m")] == 1
        assert gauges["concurrency_limit", ("model", "m")] == 1
        assert gauges["requests_in_flight",] == 1
        assert count(proxy, "queue_refusals", model="m", reason="full") == 0
        assert ("queue_refusals", (("model", "m"), ("reason", "timeout"))) in proxy.plane.meters.counters
        till.answer("1")
        await till.until_there("2")
        till.answer("2")
    assert sum(proxy.plane.meters.histograms["queue_seconds", (("model", "m"),)].counts) == 1


async def test_the_access_log_says_how_long_a_request_waited(
    start_backend: StartBackend, start_proxy: StartProxy, tmp_path: object
) -> None:
    till = Till()
    model = ladder((await start_backend(till)).url)
    proxy = await start_proxy(
        limited(model, 1, queue_seconds=None),
        access_log=AccessLogPlan(to=f"{tmp_path}/access.log", sample=1.0),
    )
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        await till.until_there("1")
        await asyncio.sleep(0.05)
        till.answer("1")
        await till.until_there("2")
        adopted(proxy, ladders={"m": limited(model, 1, queue_seconds=0.1)})
        await clients.ask("3")
        assert await clients.status("3") == 429
        till.answer("2")
    await proxy.plane.drain()
    with open(f"{tmp_path}/access.log", encoding="utf-8") as lines:  # noqa: ASYNC230 - it is written already
        first, refused, second = (json.loads(line) for line in lines)
    assert first["queue_ms"] is None
    assert second["queue_ms"] >= 50
    assert (refused["status"], refused["error"], refused["ending"]) == (429, "too_many_requests", None)
    assert refused["queue_ms"] >= 100
    assert (refused["attempts"], refused["backend"]) == (0, None)


# -- everything at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_whatever_clients_do_the_limit_holds_and_everything_ends(
    seed: int, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Some leave, some are turned away, backends hang up: all are accounted for and nobody is forgotten."""
    chance = random.Random(seed)
    seen: list[tuple[int, ...]] = []
    as_many_as_may = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        # What left clients asked for may go on here for a moment: it is the proxy that counts.
        seen.append(tuple(server.outstanding for server in proxy.plane.servers))
        if sum(seen[-1]) == 6:
            as_many_as_may.set()
        await as_many_as_may.wait()
        await asyncio.sleep(chance.uniform(0.0, 0.01))
        if chance.random() < 0.05:
            peer.close()
        else:
            await peer.send(OK)

    first, second = await start_backend(script), await start_backend(script)
    tiers = ladder([first.url, second.url])
    backends = (Backend(url=first.url, max_concurrency=2), Backend(url=second.url, max_concurrency=5))
    model = replace(tiers, tiers=(replace(tiers.baseline, backends=backends),))
    proxy = await start_proxy(limited(model, 6, queue=20, queue_seconds=0.5))
    outcomes: list[int] = []

    left = 0

    async def ask(number: int) -> None:
        nonlocal left
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        client: RawClient = await proxy.connect()
        leaves = chance.random() < 0.2
        try:
            async with asyncio.timeout(chance.uniform(0.0, 0.05) if leaves else PATIENCE):
                asked = request(str(number), key="abc"[number % 3])
                while (answered := await client.ask(asked)).status != 200:
                    outcomes.append(answered.status)  # and comes again
                    await asyncio.sleep(chance.uniform(0.0, 0.1))
                outcomes.append(200)
        except TimeoutError:
            assert leaves
            left += 1
        finally:
            client.abort()

    async with asyncio.TaskGroup() as group:
        for number in range(300):
            group.create_task(ask(number))
    await eventually(lambda: not proxy.plane.relays)
    assert waiting(proxy) == 0
    assert set(outcomes) <= {200, 429, 502, 503}
    assert outcomes.count(200) >= 300 - left
    assert {counts[0] for counts in seen} <= {0, 1, 2}
    assert {counts[1] for counts in seen} <= {0, 1, 2, 3, 4, 5}
    assert max(map(sum, seen)) == 6
    assert sum(server.outstanding for server in proxy.plane.servers) == 0
    crowd = proxy.plane.crowd
    assert crowd is not None
    crowd.gauge()
    assert proxy.plane.meters.gauges["limited_in_flight", (("model", "m"),)] == 0
    await proxy.plane.drain()
    ledger = proxy.store.ledger
    kept = {key: value for key, value in ledger.items() if key.startswith(("skipped|m|", "sampled|m"))}
    assert sum(kept.values()) == ledger["seen|m"]
    assert ledger["shipped|m"] == ledger["sampled|m"]
    assert proxy.plane.budget.used == 0
