"""Where a core's time goes while the proxy is loaded: samples of the serving process, by what it was doing.

`python -m tests.benchmarks.profile [--seconds N] [--sample 0% 100%]`. Needs `wrk`, `taskset` and `py-spy`
(`pip install py-spy`), which reads another process and may need root.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.benchmarks.arms import arena
from tests.benchmarks.rig import BESIDE, Arm, machine, missing, publish, tree
from tests.leash import Leashed

_FRAME = re.compile(r"(?P<function>[^;]+?) \((?P<file>[^;()]+?)(?::\d+)?\)$")
_SYSTEM_CALLS = {
    "write": "socket writes (kernel)",
    "sendmsg": "socket writes (kernel)",
    "read": "socket reads (kernel)",
    "recv": "socket reads (kernel)",
    "epoll_pwait": "waiting for work",
    "epoll_wait": "waiting for work",
}
_IDLE = "waiting for work"
_THREAD_WAITS = "Condition.wait ("
"""Of a thread of the log; py-spy takes it for busy."""


def place_of(stack: list[str]) -> str:
    """What the innermost frame that says something was for: a system call, one of our modules, a library."""
    innermost = stack[-1].split(" (")[0]
    if innermost in _SYSTEM_CALLS:
        return _SYSTEM_CALLS[innermost]
    if any(frame.startswith(_THREAD_WAITS) for frame in stack):
        return _IDLE
    for frame in reversed(stack):
        found = _FRAME.match(frame)
        if found is None:
            continue
        file = found["file"]
        if ours := re.search(r"service/(?:proxy/)?(\w+)/(\w+)\.py$", file):
            return f"{ours[1]}.{ours[2]}"
        if library := re.search(r"/(redis|cryptography|zstandard|asyncio|json|uvloop)/", file):
            return library[1]
        if file.endswith("loop.c") or "uvloop" in file:
            return "uvloop"
    return "elsewhere"


def sampled(arm: Arm, *, seconds: int, folder: Path) -> Counter[str]:
    """Samples by place, while `wrk` loads the arm from the other core."""
    script = Path(__file__).with_name("post.lua")
    address = f"http://127.0.0.1:{arm.port}/v1/chat/completions"
    command = ["taskset", "-c", str(BESIDE), "wrk", "-t1", "-c16", f"-d{seconds + 3}s", "-s", str(script)]
    load = Leashed([*command, address], stdout=subprocess.DEVNULL)
    assert arm.pid is not None
    serving = tree(arm.pid)[-1]
    written = folder / f"{serving}.txt"
    try:
        time.sleep(1.5)
        subprocess.run(
            [
                *("py-spy", "record", "--native", "--format", "raw", "--rate", "300"),
                *("--duration", str(seconds), "--output", str(written), "--pid", str(serving)),
            ],
            check=True,
            capture_output=True,
        )
    finally:
        load.wait()
    places: Counter[str] = Counter()
    for line in written.read_text().splitlines():
        stack, _, amount = line.rpartition(" ")
        places[place_of(stack.split(";"))] += int(amount)
    return places


def report(name: str, places: Counter[str]) -> str:
    """Shares of the time on the core, largest first; what waits for work is none of it."""
    busy = sum(amount for place, amount in places.items() if place != _IDLE)
    lines = [f"| {name}: where the time goes | share |", "|---|---|"]
    for place, amount in places.most_common():
        if place != _IDLE and amount / busy >= 0.01:
            lines.append(f"| {place} | {amount / busy:.0%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=6, help="of sampling, for each arm")
    parser.add_argument("--sample", nargs="+", default=["0%", "100%"], help="shares of captured requests")
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    if lacking := missing("wrk", "taskset", "py-spy"):
        print(f"skipped, this machine lacks {', '.join(lacking)} (Debian: wrk util-linux; pip: py-spy)")
        return
    reports = [machine()]
    with tempfile.TemporaryDirectory() as folder, arena(Path(folder)) as ground:
        for share in asked.sample:
            name = f"capture {share}"
            places = sampled(ground.tiergate(name, share), seconds=asked.seconds, folder=Path(folder))
            reports.append(report(name, places))
    publish("\n\n".join(reports), asked.output)


if __name__ == "__main__":
    sys.exit(main())
