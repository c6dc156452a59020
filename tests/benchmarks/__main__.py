"""`make bench`: every benchmark, or those named, as in `make bench BENCH="throughput"`."""

from __future__ import annotations

import subprocess
import sys

ALL = ("throughput", "worker_pairs")
"""In the order in which they run, each in a process of its own."""


def main() -> None:
    asked = sys.argv[1:] or list(ALL)
    if unknown := [name for name in asked if name not in ALL]:
        sys.exit(f"no benchmark called {', '.join(unknown)}; there are {', '.join(ALL)}")
    failed = []
    for name in asked:
        print(f"## {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"did not finish: {', '.join(failed)}")


if __name__ == "__main__":
    main()
