"""Whether two URLs are one server: `localhost` is 127.0.0.1, and a missing port is that of its scheme.

Two names of one machine are not found out. Loads no SQL: settings compare addresses as well.
"""

from __future__ import annotations

import ipaddress
import posixpath
import socket
from urllib.parse import urlsplit

from service.fleet import Backend

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = "localhost"


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
