"""`tiergate proxy -c FILE`, as an operator starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.proxy.processes import Running
from tests.proxy.raw_client import RawClient


@dataclass
class Commanded(Running):
    """A proxy that has a file to read again."""

    file: Path
    log_file: Path
    where: str
    """As it announces it."""

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def write(self, content: dict[str, Any] | str) -> None:
        self.file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    async def reload(self) -> None:
        """SIGHUP, and wait until it is told how that went."""
        said = self.log.count("configuration is")
        self.hang_up()
        async with asyncio.timeout(PATIENCE):
            while self.log.count("configuration is") == said:  # noqa: ASYNC110 - a file has no events
                await asyncio.sleep(0.02)

    async def connect_by_tls(self, context: ssl.SSLContext) -> RawClient:
        return RawClient(*await asyncio.open_connection("127.0.0.1", self.port, ssl=context))


@contextlib.contextmanager
def commanded(
    directory: Path, content: dict[str, Any], *, terminal: str | None = None
) -> Iterator[Commanded]:
    """Started with that configuration, in a session whose terminal is `terminal`; killed if it still runs."""
    file, log_file = directory / "tiergate.yaml", directory / "proxy.log"
    file.write_text(yaml.safe_dump(content))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TIERGATE")}
    with log_file.open("wb") as log:
        command = [sys.executable, "-m", "service.cli", "proxy", "-c", str(file)]
        if terminal is not None:  # the first that a session opens becomes its own
            opening = "import os, sys; os.open(sys.argv[1], os.O_RDWR); os.execv(sys.argv[2], sys.argv[2:])"
            command = [sys.executable, "-c", opening, terminal, *command]
        process = Leashed(command, stdin=subprocess.DEVNULL, stderr=log, env=environ)
    try:
        where, admin = _announced(process, log_file)
        yield Commanded(process, urlsplit(where).port or 0, admin, file, log_file, where)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)


def _announced(process: subprocess.Popen[bytes], log_file: Path) -> tuple[str, str]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for line in log_file.read_text().splitlines():
            if "serving" in line:
                words = line.replace(",", "").split()
                return words[words.index("on") + 1], words[words.index("admin") + 2]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(log_file.read_text())
