"""Processes of a benchmark, each on a core and ended by its own pid, whatever ends the benchmark."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.rig import on_core, tree
from tests.leash import Leashed

ROOT = Path(__file__).parents[2]


@dataclass(slots=True, kw_only=True)
class Child:
    """A command that may be stopped, killed, frozen and started again."""

    command: Sequence[str]
    core: int
    log: Path
    yields: bool = False
    """It stands for another machine, and must not take this one's processor from engine and load."""
    environ: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as sink:
            self.process = Leashed(
                [*on_core(self.core, yields=self.yields), *self.command],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environ},
                cwd=ROOT,
            )

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3000:]

    def tell(self, line: str) -> None:
        """One line on its standard input."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """To the command and everything below it."""
        for pid in tree(self.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def stop(self, seconds: float = 40.0) -> int:
        """SIGTERM, as an operator would; killed when that does not help. Its exit status."""
        assert self.process is not None
        if self.runs:
            self.process.terminate()
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()
        return self.process.returncode

    def kill(self) -> None:
        """SIGKILL to the command and everything below it."""
        assert self.process is not None
        if self.runs:
            self.signal(signal.SIGKILL)
        self.process.wait()
        self._close()

    def _close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    @contextmanager
    def running(self) -> Iterator[Child]:
        """Started for as long as the block."""
        self.start()
        try:
            yield self
        finally:
            if self.runs:
                self.signal(signal.SIGCONT)
                self.stop()
