"""What the log says of backends that are out, why, and how often."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.proxy.traffic.health import Watches
from service.proxy.traffic.notices import QUIET_SECONDS, SAME_SECONDS, Notices, why_unreached
from tests.authority import Authority
from tests.ports import free_port
from tests.proxy.raw_client import post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder
from tests.proxy.test_meters import page_of, value

LOG = "service.proxy.traffic.notices"


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What was logged of backends; grows."""
    caplog.set_level(logging.WARNING, logger=LOG)
    lines: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    listening = Listening()
    logger = logging.getLogger(LOG)
    logger.addHandler(listening)
    yield lines
    logger.removeHandler(listening)


def test_a_backend_that_stays_out_is_told_now_and_then(told: list[str]) -> None:
    notices = Notices("http://a")
    for second in range(int(SAME_SECONDS * 3)):
        notices.ejected("refused the connection", float(second))
    assert told == ["backend http://a is ejected: refused the connection"] * 3


def test_another_reason_is_told_sooner(told: list[str]) -> None:
    notices = Notices("http://a")
    notices.ejected("timed out", 0.0)
    notices.ejected("refused the connection", QUIET_SECONDS - 1.0)
    notices.ejected("refused the connection", QUIET_SECONDS)
    assert [line.rpartition(": ")[2] for line in told] == ["timed out", "refused the connection"]


def test_one_that_comes_and_goes_all_the_time_fills_no_log(told: list[str]) -> None:
    notices = Notices("http://a")
    for step in range(1000):
        notices.ejected(f"reason {step}", step / 10.0)
        notices.back()
    assert len(told) == 2 * 100.0 / QUIET_SECONDS
    assert told[1] == "backend http://a is back", (
        "after each line that it is out there is one that it is back"
    )
    assert told[::2] != told[1::2]


def test_credentials_in_an_address_are_not_logged(told: list[str]) -> None:
    Notices("http://user:secret@a").ejected("timed out", 0.0)
    assert told == ["backend http://a is ejected: timed out"]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError(), "timed out"),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), "timed out"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"), "refused the connection"),
        (ConnectionResetError(), "reset the connection"),
        (BrokenPipeError(), "reset the connection"),
        (FileNotFoundError(), "its socket does not exist"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "No route to host"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (
            OSError("Multiple exceptions:\n[Errno 111], [Errno 111]"),
            "Multiple exceptions: [Errno 111], [Errno 111]",
        ),
        (UnicodeError("label empty or too long"), "label empty or too long"),
        (OSError("x" * 10_000), "x" * 200),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_why_is_a_few_words_on_one_line(error: OSError, why: str) -> None:
    assert why_unreached(error) == why


async def test_each_way_to_fail_a_request_has_its_reason(
    start_backend: StartBackend, start_proxy: StartProxy, told: list[str]
) -> None:
    async def close(received: Received, peer: Peer) -> None:
        peer.close()

    async def reset(received: Received, peer: Peer) -> None:
        peer.reset()

    async def mumble(received: Received, peer: Peer) -> None:
        await peer.send(b"what?\r\n\r\n")
        await peer.gone()

    reasons = {
        close: "closed the connection without an answer",
        reset: "reset the connection without an answer",
        mumble: "gave an unreadable answer: ",
    }
    for script, reason in reasons.items():
        backend = await start_backend(script)
        proxy = await start_proxy(ladder(backend.url))
        for _ in range(3):
            assert (await proxy.ask(post())).status == 502
        assert told[-1].startswith(f"backend {backend.url} is ejected: {reason}")
    assert len(told) == len(reasons)


async def test_a_backend_that_cannot_prove_its_name_is_out_for_that_reason(
    start_backend: StartBackend, start_proxy: StartProxy, told: list[str], tmp_path: Path
) -> None:
    backend = await start_backend(tls=Authority(tmp_path).issue("gpu").server_context())
    model = ladder(backend.url)
    proxy = await start_proxy(model)
    assert (await proxy.ask(post())).error == b"backend_unreachable"
    [line] = told
    assert line.startswith(f"backend {backend.url} is ejected: TLS verification failed: ")
    assert "certificate" in line


async def test_a_backend_that_speaks_no_tls_is_out_for_that_reason(
    start_proxy: StartProxy, told: list[str]
) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    proxy = await start_proxy(ladder(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    assert (await proxy.ask(post())).error == b"backend_unreachable"
    [line] = told
    assert " is ejected: TLS failed: " in line
    server.close()
    await server.wait_closed()


async def test_who_comes_back_is_told(
    start_backend: StartBackend, start_proxy: StartProxy, told: list[str]
) -> None:
    port = free_port()
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{port}"))
    assert (await proxy.ask(post())).error == b"backend_unreachable"
    await start_backend(port=port)
    watches = Watches(proxy.plane)
    watches.adopt(0.05)
    where = f"backend http://127.0.0.1:{port}"
    await eventually(lambda: len(told) == 2)
    assert told == [f"{where} is ejected: refused the connection", f"{where} is back"]
    watches.adopt(None)


async def test_a_backend_that_denies_us_its_health_page_stays_in_use_and_is_told_once(
    start_backend: StartBackend, start_proxy: StartProxy, told: list[str]
) -> None:
    status = b"401 Unauthorized"

    async def script(received: Received, peer: Peer) -> None:
        health = received.line.startswith(b"GET /health")
        await peer.send(b"HTTP/1.1 %b\r\ncontent-length: 0\r\n\r\n" % status if health else OK)

    def denied(proxy: Proxy) -> float:
        return value(page_of(proxy), "backend_denied", backend=backend.url)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    assert denied(proxy) == 0
    watches = Watches(proxy.plane)
    watches.adopt(0.01)
    await eventually(lambda: denied(proxy) == 1)
    asked = len(backend.requests)
    await eventually(lambda: len(backend.requests) > asked + 5)
    assert len(told) == 1
    assert "answers 401 to its health check" in told[0]
    assert (await proxy.ask(post())).status == 200
    status = b"404 Not Found"
    await eventually(lambda: denied(proxy) == 0)
    assert "lets its health check in again" in told[1]
    status = b"403 Forbidden"
    await eventually(lambda: denied(proxy) == 1)
    assert "answers 403" in told[2]
    watches.adopt(None)
    assert denied(proxy) == 0, "nobody looks any more"
    await asyncio.sleep(0)
