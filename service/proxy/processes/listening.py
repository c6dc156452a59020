"""Listening sockets, made once by the parent: one per process on an address, or one unix socket for all.

A process that dies leaves its socket, and whoever queues there, to its successor.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from service.proxy.config import ProxyConfig

BACKLOG = 2048
_LOOK_SECONDS = 1.0
"""To find out whether somebody listens on a unix socket that is there already."""


class CannotListen(OSError):
    """The address is taken or not ours; says which and what to do."""


def spelled(host: str, port: int) -> str:
    """`127.0.0.1:8080`, `[::1]:8080`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def cannot_listen(address: str, error: OSError) -> CannotListen:
    """What to raise when `error` kept us from listening there."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return CannotListen(
        f"cannot listen on {address}: {reason}; stop what listens there or choose another address"
    )


def listeners_of(config: ProxyConfig) -> list[socket.socket]:
    """A listening socket for each process; raises `CannotListen`."""
    if config.listen_path is not None:
        return open_unix_listeners(config.listen_path, config.listen_mode, config.processes)
    return open_listeners(config.listen_host, config.listen_port, config.processes)


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
        raise cannot_listen(spelled(host, port), error) from error
    return listeners


def open_unix_listeners(path: str, mode: int, count: int) -> list[socket.socket]:
    """One socket `count` times over, at a path that replaces what a dead server left there."""
    place = Path(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone_in(place.parent):
            _refuse_occupied(place)
            # Bound beside it and moved there: no moment without a socket, none with the wrong permissions.
            fresh = place.with_name(f".{os.getpid()}")
            fresh.unlink(missing_ok=True)
            listener.bind(str(fresh))
            try:
                fresh.chmod(mode)
                listener.listen(BACKLOG)
                fresh.replace(place)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
        listener.setblocking(False)
        return [listener, *(listener.dup() for _ in range(count - 1))]
    except CannotListen:
        listener.close()
        raise
    except OSError as error:
        listener.close()
        raise cannot_listen(f"unix:{path}", error) from error


def remove_unix_listener(path: str, made: os.stat_result | None) -> None:
    """Remove the socket file, unless another server has put its own there since."""
    with suppress(OSError):
        found = os.stat(path)
        if made is not None and (found.st_dev, found.st_ino) == (made.st_dev, made.st_ino):
            os.unlink(path)


def _refuse_occupied(place: Path) -> None:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise CannotListen(f"cannot listen on unix:{place}: a file that is no socket is there; remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.settimeout(_LOOK_SECONDS)
        try:
            knock.connect(str(place))
        except (ConnectionRefusedError, FileNotFoundError):
            return  # left behind by a server that is gone
        except OSError:
            pass  # its queue is full, or it is not ours: somebody is there
    raise CannotListen(
        f"cannot listen on unix:{place}: somebody listens there; stop that server or choose another path"
    )


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Two servers that start at once must not both find the socket of a third one dead."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise CannotListen(f"cannot listen on {spelled(host, port)}: {error.strerror}") from error
    # A name that is both is taken as IPv4: whoever tries ::1 first goes on to 127.0.0.1, but not the reverse.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, address
