"""Ports that nobody else draws: neither another process of the tests nor what is under test."""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import socket
from collections.abc import Iterator

from service.launch.ports import free_port as drawn_by_the_service
from service.launch.ports import outgoing_from

BAND = range(2_000, 8_000)
"""Below the ports that the service draws, documents as its own, or is given by the kernel."""


def share(worker: int, workers: int) -> range:
    """The part of the band that one of several processes of the tests draws from: ports in a row."""
    size = len(BAND) // workers
    return BAND[worker * size : (worker + 1) * size]


def _ours() -> Iterator[int]:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    # One that replaces another that crashed has the next number.
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % workers
    ports = share(worker, workers)
    # Another run of the tests on this machine most likely begins elsewhere.
    begin = secrets.randbelow(len(ports))
    return itertools.cycle([*ports[begin:], *ports[:begin]])


_PORTS = _ours()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that nobody draws again while the test runs."""
    if outgoing_from() < BAND.stop:
        # The kernel may give any port to an outgoing connection: none is better than another.
        return drawn_by_the_service()
    for port in itertools.islice(_PORTS, len(BAND)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
    raise RuntimeError(f"no port of {BAND} is free")
