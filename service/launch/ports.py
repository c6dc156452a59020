"""Ports: a free one, and whether those that the configuration names can be bound."""

from __future__ import annotations

import errno
import random
import socket
from contextlib import ExitStack
from pathlib import Path

from service.settings.units import Listen

_FIRST = 10_000
"""Below it are the ports that are known by number."""
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 100


class PortUnusable(Exception):
    """An address cannot be bound, with the key that names it and what to do."""


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens on at the moment; somebody else may take it before it is bound."""
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """So many different ports that nobody listens on at the moment.

    Any outgoing connection of the machine may be given a port from the kernel's own range before it is bound
    here: these are therefore drawn from below that range, where there is room.
    """
    with ExitStack() as held:
        probes = [held.enter_context(_socket(host)) for _ in range(count)]
        for probe in probes:
            _bind(probe, host)
        return [int(probe.getsockname()[1]) for probe in probes]


def outgoing_from() -> int:
    """The lowest port that the kernel gives to outgoing connections; 0 where it does not say."""
    try:
        return int(_OUTGOING.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def _bind(probe: socket.socket, host: str) -> None:
    below = range(_FIRST, outgoing_from())
    if len(below) > _TRIES:
        for port in random.sample(below, _TRIES):
            try:
                probe.bind((host, port))
                return
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
    probe.bind((host, 0))


def check_free(listen: Listen, *keys: str) -> None:
    """Raise `PortUnusable` when the address cannot be bound; `keys` are what it is set by, any of them.

    The proxy shares its port among its processes (SO_REUSEPORT), so a second proxy of the same user would
    bind without complaint and take half of the connections: the check asks for the port alone.
    """
    key, otherwise = keys[0], f"set {' or '.join(keys)} to another address"
    try:
        with _socket(listen.host) as probe:
            # As servers do: a port whose last connections are still closing is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((listen.host, listen.port))
            probe.listen(1)
    except socket.gaierror as error:
        raise PortUnusable(
            f"{key}: the host of {listen} is not known ({error.strerror}); {otherwise}"
        ) from None
    except PermissionError:
        raise PortUnusable(f"{key}: {listen} needs more rights than this user has; {otherwise}") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            # Not only listeners: an outgoing connection may have been given this port.
            raise PortUnusable(
                f"{key}: {listen} is already in use. `ss -tanp 'sport = :{listen.port}'` shows by whom: stop"
                f" that, or {otherwise}"
            ) from None
        raise PortUnusable(f"{key}: {listen} cannot be bound ({error.strerror}); {otherwise}") from None


def _socket(host: str) -> socket.socket:
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    return socket.socket(family, socket.SOCK_STREAM)
