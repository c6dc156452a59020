"""Which backends serve clients now, so that no load is sent to them by mistake.

The serving pool of a model is every backend of the tiers that have clients under the route in force, and of
the tiers below these, which take over where they are down. Addresses are compared, not texts: `localhost` is
127.0.0.1, and a missing port is that of its scheme. Two names of one machine are not found out.
"""

from __future__ import annotations

import ipaddress
import posixpath
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from service.fleet import Backend, Ladder, Tier
from service.store.database import Database
from service.store.standing import route_of

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = "localhost"


def targets_of(tier: Tier) -> tuple[Backend, ...]:
    """Where load for that tier goes: its `shadow` backends, or else those that would serve."""
    return tier.shadow or tier.backends


def address_of(backend: Backend) -> str:
    """The same for all spellings of one address: case, default ports, names and numbers of this machine."""
    if backend.socket is not None:
        return f"unix:{posixpath.normpath(backend.socket)}"
    parts = urlsplit(backend.url)
    host = (parts.hostname or "").rstrip(".")
    if (number := _number(host)) is not None:
        host = _LOOPBACK if number.is_loopback or number.is_unspecified else str(number)
    return f"{host}:{parts.port or _PORTS[parts.scheme]}"


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is written as, in any form that connects to it; None of a name."""
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        if not host.isascii() or not host[:1].isdigit():
            return None
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f.1, 2130706433; asks nobody
        except OSError:
            return None
    if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped is not None:
        return number.ipv4_mapped
    return number


def serving_now(db: Database, ladders: Mapping[str, Ladder]) -> dict[str, str]:
    """Who is served by each backend in a serving pool, in words, by address."""
    found: dict[str, str] = {}
    for model, ladder in ladders.items():
        weights = route_of(db, ladder).weights
        highest = max(ladder.rung(name) for name, weight in weights.items() if weight)
        for tier in ladder.tiers[: highest + 1]:
            role = "serves clients" if weights.get(tier.name) else "takes over when the tier above is down"
            for backend in tier.backends:
                found.setdefault(address_of(backend), f"{role} as {model}/{tier.name}")
    return found


def in_service(db: Database, ladders: Mapping[str, Ladder], model: str) -> list[str]:
    """A sentence for each backend that load for the model would go to although it serves; KeyError."""
    serving = serving_now(db, ladders)
    return [
        f"{tier.name}: {backend.url} {serving[address]}"
        for tier in ladders[model].tiers
        for backend in targets_of(tier)
        if (address := address_of(backend)) in serving
    ]
