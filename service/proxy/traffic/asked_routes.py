"""Routes asked of the API, for when Redis is gone: an approval and a rollback reach a proxy all the same.

Beside what Redis tells and never instead of it: whichever was issued last is followed, as ever. In a thread
with the standard library's client, since it is one small question every few seconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from collections.abc import Callable
from typing import Any

from service.fleet import Route
from service.proxy.config import RoutesFrom
from service.store.redis import redis_keys

EVERY_SECONDS = 3.0
"""Between two questions: with the patience for an answer it stays below the ten seconds that are promised."""
PATIENCE_SECONDS = 3.0
LONGEST_ANSWER = 4 * 1024 * 1024
"""Bytes."""
PATH = "/api/v1/routes"

_log = logging.getLogger(__name__)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes to the configured API and to nobody that it names."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())


async def follow_asked(
    where: Callable[[], RoutesFrom | None],
    on_route: Callable[[Route], None],
    *,
    every: float = EVERY_SECONDS,
) -> None:
    """Ask again and again, until cancelled; tells every route, and whoever follows knows which are news.

    `where` is asked each time: a reload may change it. While the API does not answer, the last route stands.
    """
    complaint = ""
    while True:
        asked, said = where(), ""
        if asked is not None:
            try:
                for route in await asyncio.to_thread(ask, asked):
                    on_route(route)
            except Exception as error:
                # Of any kind: a proxy that stops following could not be rolled back any more.
                said = f"{asked.url} tells no routes, the last ones stand: {error}"
        if said and said != complaint:
            _log.warning("%s", said)
        complaint = said
        await asyncio.sleep(every)


def ask(asked: RoutesFrom) -> list[Route]:
    """Every route that was ever changed. OSError or ValueError when the API does not tell them."""
    request = urllib.request.Request(asked.url.rstrip("/") + PATH)
    if asked.token is not None:
        request.add_header("Authorization", f"Bearer {asked.token}")
    with _OPENER.open(request, timeout=PATIENCE_SECONDS) as answer:
        text = answer.read(LONGEST_ANSWER + 1)
    if len(text) > LONGEST_ANSWER:
        raise ValueError(f"it answers more than {LONGEST_ANSWER} bytes")
    return read_routes(text)


def read_routes(text: bytes) -> list[Route]:
    """The routes of an answer; ValueError for any other text. The time is the API's own."""
    try:
        document = json.loads(text)
        now, written = float(document["now"]), list(document["routes"])
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"no routes: {text[:200]!r}") from error
    routes = [redis_keys.route_from_json(json.dumps(each)) for each in written]
    for route in routes:
        if route.issued_at > now + redis_keys.FUTURE_SECONDS:
            raise ValueError(f"the issue of the route of {route.model!r} is yet to come")
    return routes
