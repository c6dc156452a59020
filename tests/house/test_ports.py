"""Tests that run at the same time never draw one port: each has ports of its own."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from service.demo.places import PORTS
from service.launch.ports import free_ports, outgoing_from
from tests import ports
from tests.ports import BAND, free_port, share

TESTS = Path(__file__).parents[1]
DRAWS = re.compile(
    r"^from service\.launch(?:\.ports)? import (?:\([^)]*|.*)\bfree_port\b|^def free_port\b", re.MULTILINE
)
"""The service's, or one of its own."""
ROOM = outgoing_from() >= 11_000
"""Else the kernel gives away ports this low, and tests take what it gives."""


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_workers_share_the_band_and_no_port_of_it(workers: int) -> None:
    drawn = [port for worker in range(workers) for port in share(worker, workers)]
    assert len(set(drawn)) == len(drawn) > len(BAND) - workers
    assert set(drawn) <= set(BAND)


def test_the_band_is_below_what_the_service_draws_and_documents() -> None:
    assert max(BAND) < min(PORTS.values())
    if ROOM:
        assert free_port() in BAND
        assert max(BAND) < min(free_ports(50))


def test_a_port_is_not_drawn_again_while_others_are_left() -> None:
    drawn = [free_port() for _ in range(100)]
    assert not ROOM or len(set(drawn)) == 100


def test_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(ports, "_PORTS", iter([taken, free_port()]))
        assert free_port() != taken


def test_every_test_draws_from_there() -> None:
    others = {TESTS / "ports.py", TESTS / "conftest.py", TESTS / "launch" / "test_ports.py"}
    found = [path for path in TESTS.rglob("*.py") if path not in others and DRAWS.search(path.read_text())]
    assert found == []
