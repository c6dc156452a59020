"""What this machine has too little of: descriptors, ports, memory. It says nothing about any backend."""

from __future__ import annotations

import errno
import logging
import os
import socket
import time

from service.proxy.gauges.meters import Meters

OURS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)
"""Why a connection could not even be begun."""
QUIET_SECONDS = 60.0
"""Between two lines of the log about them."""

_log = logging.getLogger(__name__)


class Shortages:
    """Counts them all, and tells of some."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._said = float("-inf")
        for number in OURS:
            meters.counters["shortages", (("error", errno.errorcode[number]),)] = 0

    def met(self, number: int) -> None:
        """Something could not be opened; `number` is of `OURS`."""
        self._meters.count("shortages", ("error", errno.errorcode[number]))
        now = time.monotonic()
        if now - self._said >= QUIET_SECONDS:
            self._said = now
            _log.error(
                "the proxy itself cannot open another connection: %s; no backend is held to blame for it",
                os.strerror(number).lower(),
            )


def shortage_of(error: BaseException | None, host: str = "") -> int | None:
    """Which of `OURS` kept us from connecting to `host`; None when the reason is elsewhere."""
    if not isinstance(error, OSError) or isinstance(error, TimeoutError):
        return None
    if isinstance(error, socket.gaierror):  # which says of a file that could not be opened: no such name
        return want_of_descriptors()
    if error.errno is None:  # of several addresses, each with another reason
        said = str(error)
        return next((number for number in OURS[:-1] if os.strerror(number) in said), None)
    if error.errno == errno.EADDRNOTAVAIL and ":" in host and not _has_ipv6():
        return None
    return error.errno if error.errno in OURS else None


def want_of_descriptors(count: int = 1) -> int | None:
    """Why so many sockets cannot be opened now; None when they can."""
    opened: list[socket.socket] = []
    try:
        while len(opened) < count:
            opened.append(socket.socket())
    except OSError as error:
        return error.errno if error.errno in OURS else None
    finally:
        for each in opened:
            each.close()
    return None


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
