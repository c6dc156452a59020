"""Addresses to listen on: shared ports, IPv6, and unix sockets whose file outlives nobody."""

from __future__ import annotations

import os
import re
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from service.proxy.processes.listening import (
    CannotListen,
    open_listeners,
    open_unix_listeners,
    remove_unix_listener,
    spelled,
)


@contextmanager
def listeners_at(path: Path, mode: int = 0o660, count: int = 1) -> Iterator[list[socket.socket]]:
    opened = open_unix_listeners(str(path), mode, count)
    try:
        yield opened
    finally:
        for each in opened:
            each.close()


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def test_several_sockets_share_a_port_and_a_stranger_is_told() -> None:
    opened = open_listeners("127.0.0.1", 0, 3)
    try:
        ports = {each.getsockname()[1] for each in opened}
        assert len(ports) == 1
        with pytest.raises(CannotListen, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use"):
            open_listeners("127.0.0.1", ports.pop(), 1)
    finally:
        for each in opened:
            each.close()


def test_ipv6_is_listened_on_and_spelled_with_brackets(loopback6: str) -> None:
    [opened] = open_listeners(loopback6, 0, 1)
    with closing(opened):
        host, port = opened.getsockname()[:2]
        socket.create_connection((host, port)).close()
        assert spelled(host, port) == f"[{loopback6}]:{port}"
        with pytest.raises(CannotListen, match=re.escape(f"[{loopback6}]:{port}")):
            open_listeners(loopback6, port, 1)


def test_a_name_of_both_families_is_taken_as_ipv4() -> None:
    [opened] = open_listeners("localhost", 0, 1)
    with closing(opened):
        assert opened.family is socket.AF_INET


def test_an_unknown_host_says_so() -> None:
    with pytest.raises(CannotListen, match=r"no-such-host\.invalid:1"):
        open_listeners("no-such-host.invalid", 1, 1)


def test_a_unix_socket_is_one_for_all_processes_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "tiergate.sock"
    with listeners_at(path, 0o600, count=3) as opened:
        assert len(opened) == 3
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.getsockname() for each in opened] == [opened[0].getsockname()] * 3
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            opened[2].setblocking(True)
            opened[2].accept()[0].close()
        assert os.listdir(tmp_path) == ["tiergate.sock"], "nothing is left beside it"


def test_a_socket_that_a_dead_server_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "tiergate.sock"
    with listeners_at(path):
        pass
    assert path.exists()
    assert not connects(path)
    with listeners_at(path):
        assert connects(path)


def test_a_socket_that_somebody_listens_on_is_refused_even_when_its_queue_is_full(tmp_path: Path) -> None:
    path = tmp_path / "tiergate.sock"
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(path))
        busy.listen(0)
        waiting.connect(str(path))
        for _ in range(2):
            with pytest.raises(CannotListen, match="somebody listens there"):
                open_unix_listeners(str(path), 0o660, 1)


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("not yours")
    with pytest.raises(CannotListen, match="a file that is no socket is there"):
        open_unix_listeners(str(path), 0o660, 1)
    assert path.read_text() == "not yours"


def test_a_directory_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotListen, match="No such file or directory"):
        open_unix_listeners(str(tmp_path / "nowhere" / "tiergate.sock"), 0o660, 1)


def test_of_several_that_start_at_once_on_a_dead_socket_one_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "tiergate.sock"
    with listeners_at(path):
        pass
    got: list[socket.socket] = []
    refused: list[CannotListen] = []

    def begin() -> None:
        try:
            got.extend(open_unix_listeners(str(path), 0o660, 1))
        except CannotListen as error:
            refused.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert (len(got), len(refused)) == (1, 7)
        assert connects(path)
    finally:
        for each in got:
            each.close()


def test_only_our_own_socket_file_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "tiergate.sock"
    with listeners_at(path):
        made = path.stat()
    with listeners_at(path):  # a successor, while we were still stopping
        remove_unix_listener(str(path), made)
        assert connects(path)
        remove_unix_listener(str(path), path.stat())
    assert not path.exists()
    remove_unix_listener(str(path), made)
