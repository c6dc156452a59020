"""Ports, directories and environments of a run."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from service.demo.configuration import STATE_DIR
from service.demo.places import listen_addresses, own_environ, run_directory
from service.launch import owning
from tests.ports import free_port


def test_a_free_port_is_used_without_a_word() -> None:
    said: list[str] = []
    port = free_port()
    assert listen_addresses(said.append, {"proxy": port}) == {"proxy": f"127.0.0.1:{port}"}
    assert said == []


def test_a_port_in_use_is_replaced_and_told() -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        chosen = listen_addresses(said.append, {"proxy": port})["proxy"]
    assert chosen.startswith("127.0.0.1:")
    assert chosen != f"127.0.0.1:{port}"
    assert said == [f"port {port} is in use; the proxy listens on {chosen} instead"]


def test_settings_of_another_installation_stay_out() -> None:
    environ = {"TIERGATE_REDIS_URL": "redis://elsewhere", "TIERGATE_CONFIG": "x", "PATH": "/bin"}
    assert own_environ(environ) == {"PATH": "/bin"}


def test_every_run_has_a_fresh_directory_that_goes_at_its_end(tmp_path: Path) -> None:
    with run_directory(tmp_path / "demo") as first, run_directory(tmp_path / "demo") as second:
        assert first != second
        assert first.is_dir()
        assert second.is_dir()
    assert list((tmp_path / "demo").iterdir()) == []


def test_a_run_that_failed_leaves_its_logs_until_the_next(tmp_path: Path) -> None:
    def fail() -> None:
        with run_directory(tmp_path) as directory:
            (directory / "log").write_text("why")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    (failed,) = tmp_path.iterdir()
    assert (failed / "log").read_text() == "why"
    with run_directory(tmp_path):
        assert not failed.exists()


def test_a_run_whose_parts_still_stop_is_left_alone(tmp_path: Path) -> None:
    killed = tmp_path / "run-killed"
    with owning(killed / STATE_DIR), run_directory(tmp_path):
        assert killed.exists()
    with run_directory(tmp_path):
        assert not killed.exists()


def test_a_run_that_is_told_to_stop_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), run_directory(tmp_path):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
