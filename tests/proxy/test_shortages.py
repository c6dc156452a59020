"""Which errors are our own want of something, and how often that is told."""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket

import pytest

from service.proxy.gauges.meters import Meters
from service.proxy.traffic.shortages import OURS, Shortages, shortage_of, want_of_descriptors


@pytest.mark.parametrize("number", OURS)
def test_what_we_lack_is_told_from_what_a_backend_does(number: int) -> None:
    assert shortage_of(OSError(number, os.strerror(number)), "gpu") == number


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        ConnectionResetError(errno.ECONNRESET, "reset"),
        OSError(errno.EHOSTUNREACH, "no route"),
        OSError(errno.ENETUNREACH, "no network"),
        TimeoutError(),
        TimeoutError(errno.ETIMEDOUT, "timed out"),
        FileNotFoundError(errno.ENOENT, "no such socket"),
        socket.gaierror(socket.EAI_NONAME, "no such name"),
        OSError(
            "Multiple exceptions: [Errno 111] Connection refused, [Errno 99] Cannot assign requested address"
        ),
        UnicodeError("no host name"),
        None,
    ],
    ids=repr,
)
def test_what_a_backend_does_is_held_against_it(error: Exception | None) -> None:
    assert shortage_of(error, "gpu") is None


def test_of_several_addresses_one_that_could_not_be_tried_is_enough() -> None:
    error = OSError(f"Multiple exceptions: refused, [Errno 24] {os.strerror(errno.EMFILE)}")
    assert shortage_of(error, "gpu") == errno.EMFILE


def test_an_ipv6_address_where_there_is_no_ipv6_is_no_want_of_ports(loopback6: str) -> None:
    error = OSError(errno.EADDRNOTAVAIL, "not available")
    assert shortage_of(error, "::1") == (errno.EADDRNOTAVAIL if loopback6 == "::1" else None)


def test_a_name_that_could_not_be_looked_up_for_want_of_a_descriptor_is_our_own_fault() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        assert want_of_descriptors() == errno.EMFILE
        assert shortage_of(error, "gpu") == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert want_of_descriptors(8) is None


def test_all_are_counted_and_one_a_minute_is_told(caplog: pytest.LogCaptureFixture) -> None:
    meters = Meters()
    shortages = Shortages(meters)
    assert meters.counters["shortages", (("error", "ENFILE"),)] == 0, (
        "a series that begins with a one shows no rise"
    )
    with caplog.at_level(logging.ERROR):
        for _ in range(100):
            shortages.met(errno.EMFILE)
            shortages.met(errno.ENOBUFS)
    assert meters.counters["shortages", (("error", "EMFILE"),)] == 100
    assert meters.counters["shortages", (("error", "ENOBUFS"),)] == 100
    assert len(caplog.records) == 1
    assert "too many open files; no backend is held to blame" in caplog.text
