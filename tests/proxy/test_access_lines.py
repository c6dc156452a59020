"""What the access log says of every kind of request, and what it never says."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from service.fleet import Limits, Route
from service.proxy.config import AccessLogPlan, Mirroring, Timeouts
from service.proxy.traffic.access_lines import FIELDS, KNOWN_PATHS, Lines, address
from service.proxy.traffic.telling import snapshot
from tests.ports import free_port
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder

Line = dict[str, object]
ReadLog = Callable[[int], Awaitable[list[Line]]]
EVENT_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def logged(tmp_path: Path) -> AccessLogPlan:
    """A log of every request."""
    return AccessLogPlan(to=str(tmp_path / "access.jsonl"), sample=1.0, errors=1.0)


@pytest.fixture
def lines(tmp_path: Path) -> ReadLog:
    """The lines of the log, once there are so many."""
    path = tmp_path / "access.jsonl"

    def now() -> list[Line]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def read(count: int) -> list[Line]:
        await eventually(lambda: len(now()) >= count)
        found = now()
        assert len(found) == count, found
        return found

    return read


async def test_a_request_that_a_backend_answered(
    start_backend: StartBackend, start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), access_log=logged)
    body = b'{"model":"m","messages":[]}'
    await proxy.ask(post(body, headers=[b"X-Request-Id: r-1", b"Authorization: Bearer sk-secret"]))
    [line] = await lines(1)
    assert tuple(line) == FIELDS
    assert datetime.fromisoformat(str(line["time"])).utcoffset() is not None
    times = [line.pop(name) for name in ("send_ms", "first_byte_ms", "total_ms")]
    assert all(isinstance(each, float) for each in times)
    assert times == sorted(times)  # type: ignore[type-var]
    assert re.fullmatch("[0-9a-f]{16}", str(line.pop("tenant")))
    del line["time"]
    assert line == {
        "instance": "test",
        "request_id": "r-1",
        "method": "POST",
        "path": "/v1/chat/completions",
        "model": "m",
        "tier": "t0",
        "wanted_tier": None,
        "backend": backend.url,
        "attempts": 1,
        "status": 200,
        "ending": "complete",
        "error": None,
        "cause": None,
        "streamed": False,
        "bytes_in": len(body),
        "bytes_out": 2,
        "queue_ms": None,
        "capture": "sampled",
        "drawn": "sample",
    }


async def test_a_stream_counts_the_bytes_of_its_events(
    start_backend: StartBackend, start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(EVENT_STREAM + b"6\r\n: hi\n\n\r\n", b"6\r\n: ho\n\n\r\n", b"0\r\n\r\n", pause=0.02)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), access_log=logged)
    await proxy.ask(post())
    [line] = await lines(1)
    assert (line["streamed"], line["bytes_out"], line["ending"]) == (True, 12, "complete")


async def refuse_model(proxy: Proxy) -> None:
    assert (await proxy.ask(post(b'{"model":"ghost"}'))).status == 404


async def refuse_path(proxy: Proxy) -> None:
    assert (await proxy.ask(get(b"/etc/passwd?key=sk-secret"))).status == 404


async def refuse_http(proxy: Proxy) -> None:
    assert (await proxy.ask(b"GET /v1/models HTTP/1.1\r\n\r\n")).status == 400


async def refuse_size(proxy: Proxy) -> None:
    assert (await proxy.ask(post(b"x" * 2000))).status == 413


async def list_models(proxy: Proxy) -> None:
    assert (await proxy.ask(get(b"/v1/models"))).status == 200


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (refuse_model, {"status": 404, "error": "model_not_found", "path": "/v1/chat/completions"}),
        (refuse_path, {"status": 404, "error": "path_not_forwarded", "path": "other", "method": "GET"}),
        (refuse_http, {"status": 400, "error": "bad_request", "path": None, "method": None}),
        (refuse_size, {"status": 413, "error": "request_too_large"}),
        (list_models, {"status": 200, "error": None, "path": "/v1/models", "drawn": "sample"}),
    ],
)
async def test_answers_of_ours_are_logged_as_well(
    ask: Callable[[Proxy], Awaitable[None]],
    said: Line,
    start_proxy: StartProxy,
    logged: AccessLogPlan,
    lines: ReadLog,
) -> None:
    proxy = await start_proxy(ladder("http://127.0.0.1:1"), access_log=logged, max_request=1000)
    await ask(proxy)
    [line] = await lines(1)
    assert tuple(line) == FIELDS
    assert {"drawn": "error", **said}.items() <= line.items()
    assert line["request_id"]
    assert line["bytes_out"]
    assert (line["model"], line["backend"]) == (None, None)


async def test_nobody_is_there(start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog) -> None:
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{free_port()}"), access_log=logged)
    assert (await proxy.ask(post())).error == b"backend_unreachable"
    proxy.keep_out()
    assert (await proxy.ask(post())).error == b"no_backend"
    unreachable, down = await lines(2)
    assert (unreachable["status"], unreachable["error"]) == (503, "backend_unreachable")
    assert (unreachable["ending"], unreachable["attempts"]) == ("unreachable", 1)
    assert unreachable["send_ms"] is None
    assert (down["status"], down["backend"], down["attempts"]) == (503, None, 0)
    assert down["drawn"] == "error"
    assert [line["cause"] for line in (unreachable, down)] == ["refused the connection"] * 2
    await proxy.captures(2)
    assert [line["capture"] for line in (unreachable, down)] == ["sampled"] * 2
    assert proxy.ledger["sampled|m"] == proxy.ledger["shipped|m"] == 2, "as the ledger has it"


async def test_a_fallback_names_the_tier_that_was_wanted_and_a_retry_its_attempts(
    start_backend: StartBackend, start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog
) -> None:
    backend = await start_backend()
    away = f"http://127.0.0.1:{free_port()}"
    proxy = await start_proxy(ladder(backend.url, away), access_log=logged)
    await asyncio.sleep(0)  # the plane begins to follow
    proxy.store.publish(Route.only("m", "t1", version=1))
    assert (await proxy.ask(post())).status == 200
    [line] = await lines(1)
    assert (line["tier"], line["wanted_tier"]) == ("t0", "t1")
    assert (line["backend"], line["attempts"]) == (backend.url, 2)
    assert line["cause"] == "refused the connection", "of the backend that was asked first"


async def test_a_retry_after_a_reload_in_the_tier_that_was_wanted_is_no_fallback(
    start_backend: StartBackend, start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog
) -> None:
    """The tier of the new file is another object of the same name."""

    async def script(received: Received, peer: Peer) -> None:
        proxy.plane.servers.adopt({"m": ladder([gone.url, good.url])})
        peer.reset()

    gone, good = await start_backend(script), await start_backend()
    proxy = await start_proxy(ladder(gone.url), access_log=logged)
    answered = await proxy.ask(post())
    assert answered.status == 200
    assert not answered.header(b"x-tiergate-fallback-from")
    [line] = await lines(1)
    assert (line["tier"], line["wanted_tier"], line["attempts"]) == ("t0", None, 2)
    assert line["cause"] == "reset the connection without an answer"


@pytest.mark.parametrize(
    ("limits", "body", "said"),
    [
        (Limits(max_request=100), b'{"model":"m","x":"%b"}' % (b"x" * 100), (413, "request_too_large")),
        (Limits(require_max_tokens=True), b'{"model":"m"}', (400, "max_tokens_required")),
        (Limits(max_output_tokens=5), b'{"model":"m","max_tokens":6}', (400, "max_tokens_too_large")),
    ],
)
async def test_who_is_over_a_limit_of_a_model_is_logged_with_the_model(
    limits: Limits,
    body: bytes,
    said: tuple[int, str],
    start_proxy: StartProxy,
    logged: AccessLogPlan,
    lines: ReadLog,
) -> None:
    model = replace(ladder("http://127.0.0.1:1"), limits=limits)
    proxy = await start_proxy(model, access_log=logged)
    await proxy.ask(post(body, headers=[b"Authorization: Bearer sk-secret"]))
    [line] = await lines(1)
    assert (line["status"], line["error"]) == said
    assert (line["model"], line["tier"], line["backend"]) == ("m", None, None)
    assert re.fullmatch("[0-9a-f]{16}", str(line["tenant"]))
    assert line["capture"] == "refused"
    assert proxy.ledger == {"seen|m": 1, "skipped|m|refused": 1}


async def test_who_is_turned_away_is_logged_as_the_ledger_has_it(
    start_backend: StartBackend, start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog
) -> None:
    go_on = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await go_on.wait()
        await peer.send(OK)

    backend = await start_backend(script)
    model = replace(ladder(backend.url), limits=Limits(concurrency=1, queue=1))
    proxy = await start_proxy(model, access_log=logged)
    first, second = await proxy.connect(), await proxy.connect()
    for client in (first, second):
        await client.send(post())
    await eventually(lambda: len(proxy.plane.relays) == 2)
    assert (await proxy.ask(post())).status == 429
    second.abort()
    turned_away, left = await lines(2)
    assert (turned_away["status"], turned_away["model"], turned_away["capture"]) == (429, "m", "refused")
    assert (left["status"], left["ending"], left["capture"]) == (None, "censored", "refused")
    assert proxy.ledger["skipped|m|refused"] == 2
    go_on.set()
    assert (await first.answer()).status == 200
    first.close()


async def test_endings_that_only_the_log_can_tell_apart(
    start_backend: StartBackend, start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        what = json.loads(received.body)["messages"]
        await peer.send(CHUNKED + b"2\r\nab\r\n")
        if what == "reset":
            peer.reset()
        elif what == "stop":
            await peer.gone()
        else:
            await peer.gone(30)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), access_log=logged, timeouts=Timeouts(idle=0.2))
    ask = b'{"model":"m","messages":"%b"}'
    for what in (b"reset", b"stop"):
        await proxy.ask(post(ask % what))
    client = await proxy.connect()
    proxy.plane.config = replace(proxy.plane.config, timeouts=Timeouts())
    await client.send(post(ask % b"leave"))
    await client.reader.readuntil(b"ab")
    client.reset()
    found = await lines(3)
    assert [line["ending"] for line in found] == ["cut_off", "timeout", "censored"]
    assert [line["status"] for line in found] == [200, 200, 200]
    assert [line["bytes_out"] for line in found] == [2, 2, 2]
    assert [line["drawn"] for line in found] == ["error", "error", "sample"], "who leaves is no failure"


@pytest.mark.parametrize(
    ("sample", "header", "said"),
    [(0.0, b"X: 1", "not_sampled"), (1.0, b"X-Tiergate-Shadow: off", "opted_out"), (1.0, b"X: 1", "sampled")],
)
async def test_it_says_what_became_of_the_copy(
    sample: float,
    header: bytes,
    said: str,
    start_backend: StartBackend,
    start_proxy: StartProxy,
    logged: AccessLogPlan,
    lines: ReadLog,
) -> None:
    backend = await start_backend()
    mirroring = Mirroring(sample=sample, salt=b"salt")
    proxy = await start_proxy(ladder(backend.url), access_log=logged, mirroring=mirroring)
    await proxy.ask(post(headers=[header]))
    [line] = await lines(1)
    assert line["capture"] == said


async def test_requests_in_a_row_do_not_wait_in_each_other_s_figures(
    start_backend: StartBackend, start_proxy: StartProxy, logged: AccessLogPlan, lines: ReadLog
) -> None:
    go_on = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await go_on.wait()
        await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), access_log=logged)
    client = await proxy.connect()
    await client.send(post() + post())
    await asyncio.sleep(0.5)
    before_its_turn = time.monotonic()
    go_on.set()
    await client.answer()
    await client.answer()
    _, second = await lines(2)
    most_ms = (time.monotonic() - before_its_turn) * 1000
    assert float(str(second["send_ms"])) <= most_ms, "it was there from the start, but not its turn"
    assert float(str(second["total_ms"])) <= most_ms
    client.close()


SECRETS = (b"sk-secret", b"hunter2", b"What is my diagnosis?", b"X-Private", b"cookie-value", b"query-value")


async def test_no_content_no_query_no_header_and_no_credential_is_ever_logged(
    start_backend: StartBackend,
    start_proxy: StartProxy,
    logged: AccessLogPlan,
    lines: ReadLog,
    tmp_path: Path,
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(
            b"HTTP/1.1 200 OK\r\nSet-Cookie: cookie-value\r\nContent-Length: 21\r\n\r\nWhat is my diagnosis?"
        )

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), access_log=logged)
    headers = [b"Authorization: Bearer sk-secret", b"X-Private: hunter2", b"Cookie: cookie-value"]
    body = b'{"model":"m","messages":"What is my diagnosis?"}'
    asked = [
        post(body, path=b"/v1/chat/completions?api_key=query-value", headers=headers),
        post(body, path=b"/v1/hunter2/What is my diagnosis?".replace(b" ", b"%20"), headers=headers),
        post(b'{"model":"hunter2"}', headers=headers),
        post(body, path=b"/hunter2?api-key=query-value", headers=headers),
        post(headers=[*headers, b"Connection: hunter2", b"Transfer-Encoding: chunked"]),
    ]
    for request in asked:
        await proxy.ask(request)
    found = await lines(len(asked))
    text = (tmp_path / "access.jsonl").read_bytes()
    assert [secret for secret in SECRETS if secret in text] == []
    assert [line["path"] for line in found[:4]] == [
        "/v1/chat/completions",
        "/v1/*",
        "/v1/chat/completions",
        "other",
    ]


async def test_what_is_not_drawn_is_not_logged_and_failures_may_be_alone(
    start_backend: StartBackend, start_proxy: StartProxy, tmp_path: Path, lines: ReadLog
) -> None:
    backend = await start_backend()
    plan = AccessLogPlan(to=str(tmp_path / "access.jsonl"), sample=0.0, errors=1.0)
    proxy = await start_proxy(ladder(backend.url), access_log=plan)
    for _ in range(5):
        await proxy.ask(post())
    await refuse_model(proxy)
    [line] = await lines(1)
    assert line["drawn"] == "error"


async def test_a_log_that_cannot_be_written_changes_nothing_for_clients(
    start_backend: StartBackend, start_proxy: StartProxy, tmp_path: Path
) -> None:
    backend = await start_backend()
    plan = AccessLogPlan(to=str(tmp_path / "no" / "where"), sample=1.0)
    proxy = await start_proxy(ladder(backend.url), access_log=plan)
    for _ in range(20):
        assert (await proxy.ask(post())).status == 200
    await eventually(lambda: proxy.plane.access_log.dropped == 20)
    counters = {name: value for name, _, value in snapshot(proxy.plane)["meters"]["counters"]}
    assert counters["access_log_dropped"] == 20


def test_only_paths_that_we_know_are_named() -> None:
    paths = Lines(instance="i", salt=b"", forward_paths=("/v1/", "/health", "/extra/")).path
    assert {paths(path.encode()) for path in KNOWN_PATHS} == KNOWN_PATHS
    assert paths(b"/health") == "/health"
    assert paths(b"/v1/responses/resp_secret") == "/v1/*"
    assert paths(b"/extra/secret") == "/extra/*"
    assert paths(b"/healthz") == "other"
    assert paths(b"/") == "other"


def test_an_address_has_no_credentials() -> None:
    assert address("http://user:password@gpu-a:8000") == "http://gpu-a:8000"
    assert address("https://gpu-a") == "https://gpu-a"
