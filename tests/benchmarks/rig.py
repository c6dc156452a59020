"""What every benchmark of the data plane needs: pinned processes, CPU time by tree, interleaved rounds.

Ratios are formed within a round, between arms that ran seconds apart; some arms run twice in every round, and
the spread of their ratio to themselves (A/A) says what a ratio is worth on this machine today.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.leash import Leashed

UNDER_TEST, BESIDE = 0, 1
"""Cores: the proxy has one to itself; load, backend and Valkey share the other."""
_TICKS = os.sysconf("SC_CLK_TCK")


def wait_for(port: int, seconds: float = 30.0, *, log: Path | None = None) -> None:
    """Until something listens on 127.0.0.1:port; TimeoutError, with the end of the log, when nothing does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    said = "" if log is None else f":\n{log.read_text(errors='replace')[-2000:]}"
    raise TimeoutError(f"nothing listens on port {port} after {seconds:.0f} s{said}")


def on_core(core: int, *, yields: bool = False) -> list[str]:
    """What to put before a command, as far as this machine can; what yields runs when nobody else does."""
    words = ["taskset", "-c", str(core)] if shutil.which("taskset") and (os.cpu_count() or 1) > core else []
    if yields:
        words += ["chrt", "-i", "0"] if shutil.which("chrt") else ["nice", "-n", "19"]
    return words


@contextmanager
def pinned(
    core: int, command: Sequence[str], *, log: Path, environ: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The command on one core for as long as the block; ended by its own pid."""
    with log.open("ab") as sink:
        process = Leashed(
            [*on_core(core), *command],
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=dict(os.environ) | dict(environ or {}),
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def tree(pid: int) -> list[int]:
    """The process and everything below it."""
    found = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            listed = children.read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in listed:
            found += tree(int(child))
    return found


def cpu_seconds(pid: int, *, ended: bool = False) -> float:
    """User and system time of a process tree so far; on request, of its children that have ended as well."""
    total = 0.0
    for each in tree(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(ticks) for ticks in fields[11 : 15 if ended else 13]) / _TICKS
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One thing under test: where to send, and whose CPU time counts (None = nobody's: the direct way)."""

    name: str
    port: int
    pid: int | None = None
    admin: int | None = None
    """Port of its metrics page, if it has one that `exposed` can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One arm in one round."""

    value: float
    """In the benchmark's own unit, such as requests/s."""
    cpu_per_1000: float | None = None
    """CPU-seconds of the arm per 1,000 requests."""
    more: Mapping[str, float] = field(default_factory=dict)
    """What else was measured, by name."""


@dataclass(slots=True)
class Rounds:
    """Readings by arm, one for each round and in the order of rounds."""

    readings: dict[str, list[Reading]] = field(default_factory=dict)
    others: list[float] = field(default_factory=list)
    """Cores that processes of others took during each visit."""

    def values(self, name: str) -> list[float]:
        return [reading.value for reading in self.readings[name]]

    def ratios(self, name: str, to: str) -> list[float]:
        """Within each round."""
        return [mine / other for mine, other in zip(self.values(name), self.values(to), strict=True)]

    def ratios_of(self, name: str, to: str, what: str) -> list[float]:
        """The same of something else that was measured; without rounds in which that was nothing."""
        pairs = zip(self.more(name, what), self.more(to, what), strict=True)
        return [mine / other for mine, other in pairs if other]

    def more(self, name: str, what: str) -> list[float]:
        return [reading.more[what] for reading in self.readings[name]]

    def cpu(self, name: str) -> str:
        spent = [reading.cpu_per_1000 for reading in self.readings[name] if reading.cpu_per_1000 is not None]
        return f"{statistics.median(spent):.3f}" if spent else "-"


def processor_seconds() -> tuple[float, float]:
    """What all cores have spent so far, stolen time included, and our own part: this process and below."""
    fields = [int(each) for each in Path("/proc/stat").read_text().partition("\n")[0].split()[1:]]
    user, nice, system, _, _, _, _, stolen = fields[:8]
    return (user + nice + system + stolen) / _TICKS, cpu_seconds(os.getpid(), ended=True)


DISTURBED = 0.1
"""Cores. A visit during which others took more is made again, twice at most; the quietest counts."""


def quietest(visit: Callable[[], Reading]) -> tuple[float, Reading]:
    """Cores that others took, and what was read."""
    best: tuple[float, Reading] | None = None
    for _ in range(3):
        began, (all_before, ours_before) = time.monotonic(), processor_seconds()
        reading = visit()
        all_after, ours_after = processor_seconds()
        others = ((all_after - all_before) - (ours_after - ours_before)) / (time.monotonic() - began)
        if best is None or others < best[0]:
            best = (others, reading)
        if others <= DISTURBED:
            break
    assert best is not None
    return best


def interleave(arms: Sequence[Arm], rounds: int, seed: int, measure: Callable[[Arm], Reading]) -> Rounds:
    """Every arm once in every round, in an order drawn anew for each."""
    order, done = random.Random(seed), Rounds()
    for number in range(rounds):
        visited = list(arms)
        order.shuffle(visited)
        for arm in visited:
            others, reading = quietest(partial(measure, arm))
            done.others.append(others)
            done.readings.setdefault(arm.name, []).append(reading)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return done


def quantile(amounts: Sequence[float], share: float) -> float:
    """By linear interpolation; nan of nothing."""
    ranked = sorted(amounts)
    if not ranked:
        return math.nan
    place = share * (len(ranked) - 1)
    below = int(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (place - below)


def spread(ratios: Sequence[float]) -> str:
    """Median, and the lowest and highest; "-" of none."""
    if not ratios:
        return "-"
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def wrk(port: int, *, seconds: int, connections: int = 16) -> float:
    """Requests/s of `wrk` against the port, from the other core; RuntimeError on any error answer."""
    script = Path(__file__).with_name("post.lua")
    printed = subprocess.run(
        [
            "taskset", "-c", str(BESIDE), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
            "-s", str(script),
            f"http://127.0.0.1:{port}/v1/chat/completions",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout  # fmt: skip
    if re.search(r"Non-2xx|Socket errors", printed):
        raise RuntimeError(f"errors under load on port {port}:\n{printed}")
    found = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    if found is None:
        raise RuntimeError(f"wrk printed no rate:\n{printed}")
    return float(found[1])


def missing(*programs: str) -> list[str]:
    """Those of the programs that this machine lacks."""
    return [program for program in programs if shutil.which(program) is None]


def end_on_signals() -> None:
    """SIGTERM and Ctrl-C end a benchmark through its `finally` blocks, so that its children end too."""

    def end(number: int, _: object) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)  # a second one would leave children behind
        raise SystemExit(128 + number)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, end)


def restlessness(done: Rounds) -> str:
    """How quiet the machine was."""
    return (
        f"Other processes took at most {max(done.others):.2f} cores during a visit "
        f"(median {statistics.median(done.others):.2f})"
    )


def publish(report: str, output: Path | None) -> None:
    """Print a report, and write it where it was asked for."""
    print(report, flush=True)
    if output is not None:
        output.write_text(report + "\n", encoding="utf-8")


def machine() -> str:
    """What the figures were taken on, without its name."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    load = os.getloadavg()[0]
    return (
        f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} cores, Python "
        f"{sys.version.split()[0]}, load average at start {load:.2f}"
    )
