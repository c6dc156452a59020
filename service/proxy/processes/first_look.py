"""Asking the backends that a new configuration brings how they are, once; they are taken anyway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from service.fleet import Ladder
from service.proxy.traffic.access_lines import address
from service.proxy.traffic.health import NoAnswer, probe
from service.proxy.traffic.notices import DENIALS
from service.proxy.traffic.pool import Server
from service.proxy.traffic.servers import Servers

LOOK_SECONDS = 3.0
"""For the answers of all of them."""


async def unreachable(before: Mapping[str, Ladder], after: Mapping[str, Ladder]) -> list[str]:
    """The backends of `after` that are not in `before` and would fail requests: each with why, by address."""
    servers = Servers(before)
    known = set(servers)
    servers.adopt(after)
    new = [server for server in servers if server not in known]
    reasons = await asyncio.gather(*map(_why, new))
    return sorted(
        f"{address(server.url)}: {why}" for server, why in zip(new, reasons, strict=True) if why is not None
    )


async def _why(server: Server) -> str | None:
    """What is wrong with it; None if nothing is."""
    try:
        status = await probe(server, LOOK_SECONDS)
    except NoAnswer as error:
        return str(error)
    return f"answers {status} when asked for its health" if status >= 500 or status in DENIALS else None
