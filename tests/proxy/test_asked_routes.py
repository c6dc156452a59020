"""Routes asked of the API: what is taken, and that nothing of what may go wrong ends the asking."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.fleet import Route
from service.proxy.config import RoutesFrom
from service.proxy.traffic.asked_routes import ask, follow_asked, read_routes
from tests.listening import Door, listening
from tests.patience import PATIENCE

WRITTEN = {"model": "m", "weights": {"t0": 95, "t1": 5}, "version": 3, "issued_at": 1000.0}
ROUTE = Route(model="m", weights={"t0": 95, "t1": 5}, version=3, issued_at=1000.0)


class Api:
    """An API whose next answers a test sets."""

    def __init__(self) -> None:
        self.url = ""
        self.status, self.text = 200, json.dumps({"now": 1001.0, "routes": [WRITTEN]})
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, str | None]] = []


@contextmanager
def standing(api: Api) -> Iterator[None]:
    class Answer(Door):
        def do_GET(self) -> None:
            api.asked.append((self.path, self.headers.get("authorization")))
            self.send_response(api.status)
            for name, text in api.headers.items():
                self.send_header(name, text)
            self.send_header("content-length", str(len(api.text)))
            self.end_headers()
            self.wfile.write(api.text.encode())

    with listening(Answer) as api.url:
        yield


@pytest.fixture
def api() -> Iterator[Api]:
    told = Api()
    with standing(told):
        yield told


def test_routes_are_asked_for_with_the_token_and_read_whole(api: Api) -> None:
    (route,) = ask(RoutesFrom(url=f"{api.url}/", token="tg_1_x"))
    assert (route, route.issued_at) == (ROUTE, 1000.0)
    assert api.asked == [("/api/v1/routes", "Bearer tg_1_x")]
    assert "tg_1_x" not in repr(RoutesFrom(url=api.url, token="tg_1_x"))


def test_a_token_follows_no_redirect(api: Api) -> None:
    api.status, api.headers = 302, {"location": f"{api.url}/elsewhere"}
    with pytest.raises(OSError, match="302"):
        ask(RoutesFrom(url=api.url, token="tg_1_x"))
    assert [path for path, _ in api.asked] == ["/api/v1/routes"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"now": 1, "routes": [{"model": "m"}]}',
        b'{"now": 1, "routes": [{"model": "m", "weights": {"t0": "x"}, "version": 1}]}',
        b'{"now": null, "routes": []}',
        b"[" * 5000,
        b"\xff",
        json.dumps({"now": 10.0, "routes": [{**WRITTEN, "issued_at": 1000.0}]}).encode(),
    ],
)
def test_an_answer_that_is_not_wholly_routes_gives_none_at_all(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_routes(text)


async def test_asking_goes_on_whatever_the_api_does(api: Api) -> None:
    taken: list[Route] = []
    where: list[RoutesFrom | None] = [None]

    async def until(happens: object) -> None:
        async with asyncio.timeout(PATIENCE):
            while not happens():  # type: ignore[operator]  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(follow_asked(lambda: where[0], taken.append, every=0.01))
        await asyncio.sleep(0)
        where[0] = RoutesFrom(url="http://127.0.0.1:1")
        await asyncio.sleep(0.05)
        assert not taken
        where[0], api.status = RoutesFrom(url=api.url), 503
        await until(lambda: len(api.asked) > 2)
        assert not taken
        api.status, good = 200, api.text
        api.text = "nonsense"
        before = len(api.asked)
        await until(lambda: len(api.asked) > before + 2)
        assert not taken
        api.text = good
        await until(lambda: taken)
        assert taken[0] == ROUTE
        asking.cancel()
