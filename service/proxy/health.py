"""Asking backends how they are, so that an ejected one is back before a client has to try it."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from service.proxy.pool import Server

if TYPE_CHECKING:
    from service.proxy.plane import DataPlane

PROBE_TIMEOUT = 5.0
"""Seconds; a busy engine may take its time."""
EJECTED_SECONDS = 1.0
"""Between two questions to a backend that is out."""


async def watch_forever(plane: DataPlane, server: Server, seconds: float) -> None:
    """Probe one backend: its silence counts like a client's failed request, its answer ends an ejection."""
    while True:
        pause = min(seconds, EJECTED_SECONDS) if server.is_ejected else seconds
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # processes must not ask in step
        status = await probe(server)
        if status is None:
            plane.server_failed(server)
        elif status == 503:  # loading, or told to stop
            plane.server_failed(server, surely=True)
        else:
            plane.server_answered(server)


async def probe(server: Server) -> int | None:
    """The status of GET /health, whatever it is; None when there is no answer."""
    authorization = b"" if server.api_key is None else b"authorization: Bearer %b\r\n" % server.api_key
    question = b"GET /health HTTP/1.1\r\nhost: %b\r\nuser-agent: tiergate\r\n%bconnection: close\r\n\r\n" % (
        server.authority,
        authorization,
    )
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=server.tls)
            try:
                writer.write(question)
                line = (await reader.readline()).split(b" ", 2)
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError, ValueError):
        return None
    if len(line) < 2 or not line[0].startswith(b"HTTP/1.") or not line[1][:3].isdigit():
        return None
    return int(line[1][:3])
