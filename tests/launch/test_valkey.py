"""The embedded server: for this user alone, keeps what it was given, says what to do when it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis

from service.launch import StartFailed, Supervisor
from service.launch.valkey import EmbeddedValkey, announce, embedded_valkey


def running(valkey: EmbeddedValkey, tmp_path: Path, said: list[str]) -> Supervisor:
    return Supervisor([valkey.part()], tmp_path / "logs", environ=os.environ, say=said.append)


def test_it_answers_on_loopback_with_its_password_and_never_evicts(tmp_path: Path, said: list[str]) -> None:
    valkey = embedded_valkey(tmp_path)
    with running(valkey, tmp_path, said), redis.Redis.from_url(valkey.url, decode_responses=True) as client:
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
        assert client.config_get("appendonly")["appendonly"] == "yes"
        assert client.config_get("bind")["bind"] == "127.0.0.1"
        with redis.Redis(port=valkey.port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()


def test_its_password_is_in_no_command_line_and_in_no_file_for_others(
    tmp_path: Path, said: list[str]
) -> None:
    valkey = embedded_valkey(tmp_path)
    with running(valkey, tmp_path, said) as supervisor:
        command = Path(f"/proc/{supervisor.pids['valkey']}/cmdline").read_bytes()
        assert valkey.password.encode() not in command
    for file in tmp_path.rglob("*"):
        if file.is_file() and valkey.password.encode() in file.read_bytes():
            assert file.stat().st_mode & 0o077 == 0, file


def test_what_it_was_given_is_there_after_a_restart(tmp_path: Path, said: list[str]) -> None:
    first = embedded_valkey(tmp_path)
    with running(first, tmp_path, said), redis.Redis.from_url(first.url) as client:
        client.lpush("replay", "a task")
    second = embedded_valkey(tmp_path)
    with running(second, tmp_path, said), redis.Redis.from_url(second.url) as client:
        assert client.lrange("replay", 0, -1) == [b"a task"]
    assert first.password != second.password


def test_a_damaged_append_only_file_fails_the_start_with_what_to_move_away(
    tmp_path: Path, said: list[str]
) -> None:
    first = embedded_valkey(tmp_path)
    with running(first, tmp_path, said), redis.Redis.from_url(first.url) as client:
        client.set("x", "y" * 1000)
    for file in (first.directory / "appendonlydir").iterdir():
        if file.stat().st_size:
            file.write_bytes(os.urandom(2000))
    with pytest.raises(StartFailed) as caught, running(embedded_valkey(tmp_path), tmp_path, said):
        pass
    assert f"move {tmp_path / 'valkey'} away" in str(caught.value)


def test_a_directory_with_a_space_in_its_name_is_no_hindrance(tmp_path: Path, said: list[str]) -> None:
    valkey = embedded_valkey(tmp_path / "a state")
    with running(valkey, tmp_path, said), redis.Redis.from_url(valkey.url) as client:
        assert client.ping()


def test_its_address_is_announced_to_this_user_alone(tmp_path: Path) -> None:
    path = announce(tmp_path, "redis://:hush@127.0.0.1:1/0")
    assert path.read_text() == "redis://:hush@127.0.0.1:1/0\n"
    assert path.stat().st_mode & 0o777 == 0o600
    announce(tmp_path, "redis://:other@127.0.0.1:2/0")
    assert "other" in path.read_text()
