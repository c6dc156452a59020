"""Asking backends how they are, so that an ejected one is back before a client has to try it."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from service.proxy.traffic.asking import CLOSED, opened, question
from service.proxy.traffic.asking import NoAnswer as NoAnswer
from service.proxy.traffic.notices import UNREADABLE, why_unreached
from service.proxy.traffic.pool import Server
from service.proxy.traffic.shortages import shortage_of

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane

PROBE_TIMEOUT = 5.0
"""Seconds; a busy engine may take its time."""
NOT_NOW = 503
"""The status of a backend that is loading or told to stop: it says so itself."""
EJECTED_SECONDS = 1.0
"""Between two questions to a backend that is out."""


async def watch_forever(plane: DataPlane, server: Server, seconds: float) -> None:
    """Probe one backend: silence and 5xx count like a failed request, any other answer ends an ejection.

    An engine without such a page answers 404, and one whose key we do not have 401: both are there.
    """
    while True:
        pause = min(seconds, EJECTED_SECONDS) if server.is_ejected else seconds
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # processes must not ask in step
        try:
            status = await probe(server)
        except NoAnswer as error:
            if (short := shortage_of(error.__cause__, server.host)) is not None:
                plane.shortages.met(short)
                continue
            plane.server_failed(server, f"{error}, when asked for its health")
            continue
        server.notices.checked(status)
        if status >= 500:
            why = f"answered {status} when asked for its health"
            plane.server_failed(server, why, surely=status == NOT_NOW)
        elif not server.spoke:  # that it is there was never in doubt
            plane.server_answered(server)


class Watches:
    """One `watch_forever` for each server that is configured."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane
        self._seconds: float | None = None
        self._watching: dict[Server, asyncio.Task[None]] = {}

    def adopt(self, seconds: float | None) -> None:
        """Watch the servers of the moment, each every so many seconds; None = none of them."""
        wanted = set(self._plane.servers) if seconds is not None else set()
        for server in set(self._watching) - (wanted if seconds == self._seconds else set()):
            self._watching.pop(server).cancel()
            server.notices.denied = None  # nobody looks any more
        self._seconds = seconds
        if seconds is not None:
            for server in wanted - set(self._watching):
                self._watching[server] = self._plane.spawn(watch_forever(self._plane, server, seconds))


async def probe(server: Server, seconds: float = PROBE_TIMEOUT) -> int:
    """The status of GET /health, whatever it is; NoAnswer when there is none within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await opened(server)
            try:
                writer.write(question(server, "/health"))
                line = (await reader.readline()).split(b" ", 2)
            finally:
                writer.transport.abort()
    except OSError as error:
        raise NoAnswer(why_unreached(error)) from error
    except ValueError as error:  # a line without end
        raise NoAnswer(why_unreached(error) if isinstance(error, UnicodeError) else UNREADABLE) from error
    if line == [b""]:
        raise NoAnswer(CLOSED)
    if len(line) < 2 or not line[0].startswith(b"HTTP/1.") or not line[1][:3].isdigit():
        raise NoAnswer(UNREADABLE)
    return int(line[1][:3])
