"""The admin address: its pages, its one action, and whom it does not answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest

from service.proxy.processes.admin import Admin, Page, json_page, open_admin

ALLOWED = [
    "localhost",
    "127.0.0.1:8082",
    "LOCALHOST:1",
    "localhost.",
    "[::1]:8082",
    "10.0.0.7",
    "ops.example",
]
FOREIGN = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8082",
    "",
    "a b",
    "[::1",
    "2130706433",
]


class Counting:
    """Pages and an action that are counted."""

    def __init__(self) -> None:
        self.acted = 0

    def page(self) -> Page:
        return json_page(HTTPStatus.OK, {"fine": True})

    async def act(self) -> Page:
        self.acted += 1
        return json_page(HTTPStatus.OK, {"acted": self.acted})


@pytest.fixture
async def asked() -> AsyncIterator[tuple[Counting, int]]:
    counting = Counting()
    admin = Admin({"/page": counting.page}, {"/act": counting.act}, lambda: ("ops.example",))
    server = await open_admin(admin, "127.0.0.1", 0)
    yield counting, server.sockets[0].getsockname()[1]
    server.close()


async def ask(port: int, line: str, *headers: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join([f"{line} HTTP/1.1", *headers, "", ""]).encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


@pytest.mark.parametrize("host", ALLOWED)
async def test_it_answers_to_its_own_names_and_to_addresses(host: str, asked: tuple[Counting, int]) -> None:
    assert (await ask(asked[1], "GET /page", f"Host: {host}"))[0] == 200
    assert (await ask(asked[1], "POST /act", f"host:{host}"))[0] == 200


@pytest.mark.parametrize("host", FOREIGN)
async def test_a_name_that_somebody_elses_dns_may_point_here_is_refused(
    host: str, asked: tuple[Counting, int]
) -> None:
    counting, port = asked
    for line in ("GET /page", "HEAD /page", "POST /act", "GET /nothing"):
        status, body = await ask(port, line, f"Host: {host}")
        assert status == 403
        assert b"fine" not in body
    assert counting.acted == 0


async def test_a_request_has_one_host_or_is_no_browsers(asked: tuple[Counting, int]) -> None:
    assert (await ask(asked[1], "GET /page"))[0] == 200
    assert (await ask(asked[1], "GET /page", "Host: localhost", "Host: evil.example"))[0] == 400


@pytest.mark.parametrize("header", ["Origin: http://127.0.0.1:8082", "Origin: null", "Sec-Fetch-Site: none"])
async def test_a_web_page_cannot_act_even_under_the_right_name(
    header: str, asked: tuple[Counting, int]
) -> None:
    counting, port = asked
    assert (await ask(port, "POST /act", "Host: localhost", header))[0] == 403
    assert counting.acted == 0


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /page", 200),
        ("HEAD /page", 200),
        ("GET /page?x=1", 200),
        ("POST /page", 405),
        ("GET /act", 405),
        ("DELETE /act", 405),
        ("GET /other", 404),
        ("nonsense", 404),
    ],
)
async def test_pages_are_read_and_actions_are_posted(
    line: str, status: int, asked: tuple[Counting, int]
) -> None:
    got, body = await ask(asked[1], line, "Host: localhost")
    assert got == status
    assert (body == b"") is line.startswith("HEAD")


async def test_an_endless_head_ends_the_connection(asked: tuple[Counting, int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", asked[1])
    writer.write(b"GET /page HTTP/1.1\r\nX: " + b"x" * 20_000)
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
