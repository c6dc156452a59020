"""What a process counts, seen as Prometheus sees it, while requests of every kind pass."""

from __future__ import annotations

import asyncio
import json
import re
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.proxy.gauges.exposition import HELP, Totals
from service.proxy.gauges.meters import BOUNDS, OWN_SECONDS, SECONDS, Histogram
from service.proxy.traffic.telling import snapshot
from tests.ports import free_port
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder

Page = dict[tuple[str, frozenset[tuple[str, str]]], float]


def text_of(proxy: Proxy) -> str:
    totals = Totals()
    totals.add(json.loads(json.dumps(snapshot(proxy.plane)))["meters"])
    return totals.text()


def page_of(proxy: Proxy) -> Page:
    return {
        (sample.name.removeprefix("tiergate_proxy_"), frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text_of(proxy))
        for sample in family.samples
    }


def value(page: Page, name: str, **labels: str) -> float:
    return page[name, frozenset(labels.items())]


def series(page: Page) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    return set(page)


def test_buckets_rise_and_resolve_what_they_are_for() -> None:
    for bounds in (SECONDS, OWN_SECONDS):
        assert list(bounds) == sorted(set(bounds))
    assert OWN_SECONDS[0] == 0.00005
    assert sum(bound <= 0.001 for bound in OWN_SECONDS) >= 6, "our own share is a fraction of a millisecond"
    assert SECONDS[-1] >= 600, "backends may take ten minutes to begin"
    assert set(BOUNDS) <= set(HELP)


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (0.001, 0), (0.0011, 1), (599.0, 17), (601.0, 18)])
def test_an_observation_is_in_the_first_bucket_whose_bound_it_does_not_exceed(
    seconds: float, bucket: int
) -> None:
    histogram = Histogram()
    assert len(histogram.counts) == len(SECONDS) + 1
    histogram.observe(seconds)
    assert [index for index, count in enumerate(histogram.counts) if count] == [bucket]
    assert histogram.sum == seconds


async def test_what_we_add_ourselves_is_measured_where_a_connection_was_open(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    theirs = 0.0

    async def script(received: Received, peer: Peer) -> None:
        nonlocal theirs
        came = time.monotonic()
        await asyncio.sleep(0.2)
        theirs += time.monotonic() - came
        await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    began = time.monotonic()
    for _ in range(3):
        await client.ask(post())
    whole = time.monotonic() - began
    client.close()
    page = page_of(proxy)
    assert value(page, "added_latency_seconds_count", direction="request") == 2, (
        "the first opened a connection"
    )
    assert value(page, "added_latency_seconds_count", direction="answer") == 3
    own = sum(value(page, "added_latency_seconds_sum", direction=each) for each in ("request", "answer"))
    assert own <= whole - theirs, "the backend's time is not ours"
    assert value(page, "first_byte_seconds_sum", model="m", tier="t0") >= theirs
    assert value(page, "connect_seconds_count") == 1
    assert value(page, "backend_connections_opened_total", backend=backend.url) == 1
    assert value(page, "backend_connections_reused_total", backend=backend.url) == 2


async def test_what_the_backend_takes_behind_an_early_hint_is_not_ours(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    passed_on = asyncio.Event()
    theirs = 0.0

    async def script(received: Received, peer: Peer) -> None:
        nonlocal theirs
        await peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await passed_on.wait()
        began = time.monotonic()
        await asyncio.sleep(0.3)
        theirs = time.monotonic() - began
        await peer.send(OK)

    proxy = await start_proxy(ladder((await start_backend(script)).url))
    client = await proxy.connect()
    began = time.monotonic()
    await client.send(post())
    await client.reader.readuntil(b"\r\n\r\n")
    passed_on.set()
    await client.answer()
    whole = time.monotonic() - began
    client.close()
    assert value(page_of(proxy), "added_latency_seconds_sum", direction="answer") <= whole - theirs


async def test_a_request_that_waits_for_the_answer_before_it_counts_from_its_turn(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    theirs = 0.0

    async def script(received: Received, peer: Peer) -> None:
        nonlocal theirs
        came = time.monotonic()
        await asyncio.sleep(0.3)
        theirs += time.monotonic() - came
        await peer.send(OK)

    proxy = await start_proxy(ladder((await start_backend(script)).url))
    client = await proxy.connect()
    began = time.monotonic()
    await client.send(post() * 2)
    await client.answer()
    await client.answer()
    whole = time.monotonic() - began
    client.close()
    page = page_of(proxy)
    assert value(page, "added_latency_seconds_sum", direction="request") <= whole - theirs
    assert value(page, "answer_seconds_sum", model="m", tier="t0") <= whole


async def test_bodies_are_counted_both_ways(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"5\r\nhello\r\n", b"3\r\n...\r\n0\r\n\r\n")

    proxy = await start_proxy(ladder((await start_backend(script)).url))
    body = b'{"model":"m"}'
    for _ in range(2):
        await proxy.ask(post(body))
    page = page_of(proxy)
    assert value(page, "request_bytes_total") == 2 * len(body)
    assert value(page, "answer_bytes_total") == 2 * 8


async def test_clients_that_leave_are_counted_by_what_they_waited_for(
    start_backend: StartBackend, start_proxy: StartProxy, deaf_port: int
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        if b"begin" in received.body:
            await peer.send(CHUNKED + b"2\r\nab\r\n")
        await peer.gone(30)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), ladder(f"http://127.0.0.1:{deaf_port}", model="deaf"))

    async def leave(body: bytes, seen: bytes, count: int) -> None:
        client = await proxy.connect()
        await client.send(post(body))
        if seen:
            await client.reader.readuntil(seen)
        await eventually(lambda: len(proxy.plane.relays) == 1)
        if body == b'{"model":"m"}':
            await eventually(lambda: len(backend.requests) == count)
        client.reset()
        await eventually(lambda: not proxy.plane.relays)

    await leave(b'{"model":"m"}', b"", 1)
    await leave(b'{"model":"m","begin":1}', b"ab", 2)
    await leave(b'{"model":"deaf"}', b"", 2)
    page = page_of(proxy)
    for phase in ("connection", "first_byte", "body"):
        assert value(page, "client_disconnects_total", phase=phase) == 1, phase
    assert value(page, "requests_total", model="m", tier="t0", status="200", ending="censored") == 1


async def test_clients_that_we_cut_off_are_no_disconnects(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"2\r\nab\r\n")
        await peer.gone(30)

    proxy = await start_proxy(ladder((await start_backend(script)).url))
    client = await proxy.connect()
    await client.send(post())
    await client.reader.readuntil(b"ab")
    await proxy.plane.drain()
    await client.rest()
    page = page_of(proxy)
    assert sum(count for (name, _), count in page.items() if name == "client_disconnects_total") == 0


async def test_retries_are_counted_by_their_reason(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def answer_once(received: Received, peer: Peer) -> None:
        if len(closing.requests) == 2:
            peer.close()  # the connection was idle, as far as the proxy knew
        else:
            await peer.send(OK)

    closing = await start_backend(answer_once)
    proxy = await start_proxy(ladder(closing.url))
    for _ in range(2):
        assert (await proxy.ask(post())).status == 200
    page = page_of(proxy)
    assert value(page, "retries_total", reason="idle_closed") == 1
    assert value(page, "retries_total", reason="backend_closed") == 0


async def test_a_backend_that_is_gone_is_counted_where_it_matters(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    backend = await start_backend()
    proxy = await start_proxy(ladder([away, backend.url]))
    before = page_of(proxy)
    assert value(before, "ejections_total", backend=away) == 0, "the first ejection shows as an increase"
    for _ in range(4):
        assert (await proxy.ask(post())).status == 200
    page = page_of(proxy)
    assert value(page, "backend_connect_failures_total", backend=away) == 1
    assert value(page, "retries_total", reason="not_connected") == 1
    assert value(page, "ejections_total", backend=away) == 1
    assert value(page, "backend_usable", backend=away) == 0
    assert value(page, "backend_usable", backend=backend.url) == 1


async def test_what_clients_make_up_makes_no_series(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))

    async def everything(number: int) -> None:
        name = b"made-up-%d" % number
        requests = [
            post(b'{"model":"%b"}' % name),
            post(path=b"/v1/" + name),
            post(path=b"/v1/chat/completions?" + name),
            post(path=b"/" + name),
            get(b"/v1/models/" + name),
            post(headers=[b"X-Request-Id: " + name, b"X-Conversation-Id: " + name]),
            post(headers=[b"Authorization: Bearer " + name]),
            b"%b / HTTP/1.1\r\nHost: a\r\n\r\n" % name.upper(),
            b"GET /v1/models HTTP/1.1\r\nHost: a\r\nExpect: %b\r\n\r\n" % name,
        ]
        for request in requests:
            await proxy.ask(request)

    await everything(0)
    await eventually(lambda: proxy.ledger.get("shipped|m", 0) > 0)
    before = series(page_of(proxy))
    for number in range(1, 20):
        await everything(number)
    assert series(page_of(proxy)) == before
    assert not [labels for _, labels in before if "made-up" in str(labels)]


async def test_the_page_keeps_the_conventions_of_prometheus(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    await proxy.ask(post())
    await proxy.ask(post(b'{"model":"ghost"}'))
    await eventually(lambda: value(page_of(proxy), "loop_lag_seconds_count") > 0)
    text = text_of(proxy)
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "all samples of a family stand together"
    for family in families:
        assert re.fullmatch(r"tiergate_proxy_[a-z][a-z_]*", family.name)
        assert family.documentation.endswith("."), family.name
        assert family.type in ("counter", "gauge", "histogram"), family.name
        if family.type == "counter":
            assert f"# TYPE {family.name}_total counter" in text, family.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds"), family.name
        assert not family.name.endswith(("_ms", "_milliseconds", "_kb", "_percent")), family.name


async def test_the_event_loop_is_timed_while_it_runs(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    await eventually(lambda: value(page_of(proxy), "loop_lag_seconds_count") >= 10)


async def test_cpu_time_only_rises(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    before = value(page_of(proxy), "cpu_seconds_total")
    for _ in range(50):
        await proxy.ask(post())
    assert value(page_of(proxy), "cpu_seconds_total") > before > 0
