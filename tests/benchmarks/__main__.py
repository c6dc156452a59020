"""`make bench`: every benchmark, or those named, as in `make bench BENCH="throughput --rounds 3 latency"`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence

ALL = {
    "throughput": "throughput",
    "latency": "latency",
    "streams": "live_streams",
    "profile": "profile",
    "shipping": "shipping",
    "worker_pairs": "worker_pairs",
    "judging": "judging",
    "verdict": "verdict",
    "tier_page": "tier_page",
    "api": "api",
    "load_generator": "load_generator",
    "consequence": "consequence",
    "isolation": "isolation",
    "soak": "soak",
}
"""Module by name, in the order in which they run, each in a process of its own."""


def asked_for(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Benchmarks with the options that follow their name; all without options when nothing is said."""
    asked: list[tuple[str, list[str]]] = []
    for word in words:
        if word in ALL:
            asked.append((word, []))
        elif asked:
            asked[-1][1].append(word)
        else:
            raise ValueError(f"no benchmark called {word}; there are {', '.join(ALL)}")
    return asked or [(name, []) for name in ALL]


def run(name: str, options: Sequence[str]) -> int:
    """Exit status. What ends us reaches the benchmark as well, which ends its children; we wait for that."""
    running = subprocess.Popen([sys.executable, "-m", f"tests.benchmarks.{ALL[name]}", *options])
    try:
        return running.wait()
    except BaseException as error:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if not isinstance(error, KeyboardInterrupt):
            running.terminate()
        running.wait()
        raise


def main() -> None:
    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        asked = asked_for(sys.argv[1:])
    except ValueError as error:
        sys.exit(str(error))
    failed = []
    try:
        for name, options in asked:
            print(f"## {name}\n", flush=True)
            if run(name, options):
                failed.append(name)
    except KeyboardInterrupt:
        sys.exit("interrupted")
    if failed:
        sys.exit(f"did not finish, or missed a figure: {', '.join(failed)}")


if __name__ == "__main__":
    main()
