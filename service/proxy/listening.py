"""Listening sockets, one per process on the same address, made once by the parent.

A process that dies leaves its socket, and whoever queues there, to its successor.
"""

from __future__ import annotations

import os
import socket
from typing import Any

BACKLOG = 2048


class CannotListen(OSError):
    """The address is taken or not ours; says which and what to do."""


def cannot_listen(host: str, port: int, error: OSError) -> CannotListen:
    """What to raise when `error` kept us from listening there."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return CannotListen(
        f"cannot listen on {host}:{port}: {reason}; stop what listens there or choose another address"
    )


def open_listeners(host: str, port: int, count: int) -> list[socket.socket]:
    """`count` sockets that share an address; port 0 takes a free one."""
    family, address = _resolve(host, port)
    listeners: list[socket.socket] = []
    try:
        if port:
            # Sharing a port with another Tiergate of the same user would work, and be a mess.
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        for _ in range(count):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            address = listener.getsockname()
    except OSError as error:
        for listener in listeners:
            listener.close()
        raise cannot_listen(host, port, error) from error
    return listeners


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror}") from error
    family, _, _, _, address = found[0]
    return family, address
