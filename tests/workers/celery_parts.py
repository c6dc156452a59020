"""Real Celery processes over a real configuration file, each ended by its own process group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.leash import Leashed
from tests.workers.walk import KEYRING, MODEL

START_SECONDS = 60.0


@dataclass(kw_only=True)
class CeleryPart:
    """A worker or beat; its log is a file."""

    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait_for(self, text: str, seconds: float = START_SECONDS) -> None:
        until(lambda: text in self.log or self.process.poll() is not None, seconds, lambda: self.log)
        assert text in self.log, self.log

    def kill(self) -> None:
        """kill -9, main process and children alike."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds: float = START_SECONDS) -> int:
        """SIGTERM to the main process, as a supervisor does; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def children(self) -> list[int]:
        """Pids of the pool's children."""
        found = subprocess.run(
            ["ps", "--ppid", str(self.process.pid), "-o", "pid="], capture_output=True, text=True, check=False
        )
        return [int(line) for line in found.stdout.split()]


@dataclass(kw_only=True)
class CeleryParts:
    """Starts Celery commands under one configuration."""

    directory: Path
    environ: Mapping[str, str]
    app: str = "workers.app"
    started: list[CeleryPart] = field(default_factory=list)

    def start(self, *arguments: str, **environ: str) -> CeleryPart:
        log_path = self.directory / f"celery-{len(self.started)}.log"
        with log_path.open("wb") as log:
            process = Leashed(
                [sys.executable, "-m", "celery", "-A", self.app, *arguments],
                env={**os.environ, **self.environ, **environ},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        part = CeleryPart(process=process, log_path=log_path)
        self.started.append(part)
        return part

    def worker(self, *arguments: str, **environ: str) -> CeleryPart:
        """A worker that is ready; by default it takes replays, in one child."""
        chosen = arguments or ("-Q", "replay", "-c", "1")
        quick = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO")
        part = self.start("worker", *chosen, *quick, **environ)
        part.wait_for("ready.")
        return part

    def close(self) -> None:
        for part in self.started:
            if part.process.poll() is None:
                part.kill()


def configuration(
    directory: Path, *, redis_url: str, database_url: str, ladder: list[Any], **more: Any
) -> Path:
    """Write `tiergate.yaml` and its capture key; the path of the file."""
    key = directory / "capture.key"
    key.write_text(KEYRING.keys[KEYRING.current].hex() + "\n")
    key.chmod(0o600)
    path = directory / "tiergate.yaml"
    document = {
        "models": {MODEL: {"ladder": ladder}},
        "store": {"redis": redis_url, "database": database_url, "state_dir": str(directory / "state")},
        "mirror": {"capture": {"key_file": str(key)}},
        "probe": {"per_capture": 0},
        "shadow": {"timeout": "60s"},
        **more,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def until(
    holds: Callable[[], bool], seconds: float = START_SECONDS, told: Callable[[], str] = lambda: ""
) -> None:
    """Wait until something holds; fails with what `told` says."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s\n{told()}"
        time.sleep(0.05)
