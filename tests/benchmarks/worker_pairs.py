"""Pairs per second and core of one worker child against an instant backend (design section 12: at least 150).

A pair is one replay and both of its scores. The backend is a process of its own; what counts is the CPU
time of the worker's process, so that the figure holds on a busy machine. Run: `python -m
tests.benchmarks.worker_pairs [--exchanges N]`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.store.sql.database import open_database
from service.store.traffic.ledger import account
from tests.benchmarks.instant_backend import TEXT
from tests.benchmarks.rig import machine, publish
from tests.conftest import ValkeyServer
from tests.leash import Leashed
from tests.workers.walk import BenchMaker, exchange, question, ship, tier
from workers.backends import Limits
from workers.replay import replay_batch

BATCH = 16
FIGURE = 150
"""Pairs per second and core, of design section 12."""
SCHEMA = {
    "type": "object",
    "properties": {
        "order": {"type": "integer"},
        "customer": {"type": "string"},
        "items": {"type": "array", "items": {"type": "object", "required": ["name", "count"]}},
    },
    "required": ["order", "customer", "items"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run."""

    pairs: int
    cpu_seconds: float
    wall_seconds: float

    @property
    def pairs_per_core_second(self) -> float:
        return self.pairs / self.cpu_seconds


@contextmanager
def instant_backend() -> Iterator[str]:
    """The URL of a backend that runs for as long as the block."""
    script = Path(__file__).with_name("instant_backend.py")
    process = Leashed([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def measure(captures: int) -> Measured:
    """Replay so many captures to the candidate and the control."""
    padding = "The customer wrote to us about an order and would like to have it confirmed. " * 10
    exchanges = [
        exchange(
            question(
                f"Extract order {number}. {padding}",
                response_format={"type": "json_schema", "json_schema": {"name": "order", "schema": SCHEMA}},
            ),
            TEXT,
        )
        for number in range(captures)
    ]
    with tempfile.TemporaryDirectory() as directory, instant_backend() as url:
        valkey = ValkeyServer(directory=Path(directory))
        valkey.start()
        db = open_database(f"sqlite:///{directory}/tiergate.db")
        maker = BenchMaker(redis_url=valkey.url, db=db)
        try:
            bench = maker(
                tier("bf16", None, shadow=url), tier("w4a16", url), limits=Limits(timeout_seconds=30)
            )
            ids = ship(valkey.url, exchanges, batch=BATCH)
            replay_batch(bench, ids[:BATCH], delivery="warm-up")
            cpu, wall = time.process_time(), time.monotonic()
            for start in range(BATCH, len(ids), BATCH):
                replay_batch(bench, ids[start : start + BATCH], delivery=str(start))
            spent = Measured(
                pairs=2 * (len(ids) - BATCH),
                cpu_seconds=time.process_time() - cpu,
                wall_seconds=time.monotonic() - wall,
            )
            scored = sum(each.scored for each in account(db).pairs if each.evaluator == "structured_output")
            assert scored == 2 * len(ids), f"{scored} pairs scored of {2 * len(ids)}"
            return spent
        finally:
            maker.close()
            db.close()
            valkey.kill()


def report(found: Measured) -> str:
    """One row, beside the figure."""
    verdict = "met" if found.pairs_per_core_second >= FIGURE else "MISSED"
    return "\n".join(
        [
            "| pairs | pairs/s and core | figure | | seconds | CPU-seconds |",
            "|---|---|---|---|---|---|",
            f"| {found.pairs} | {found.pairs_per_core_second:.0f} | >= {FIGURE} | {verdict} "
            f"| {found.wall_seconds:.1f} | {found.cpu_seconds:.1f} |",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exchanges", type=int, default=1600)
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    described, found = machine(), measure(asked.exchanges)
    publish(f"{described}\n\n{report(found)}", asked.output)
    if found.pairs_per_core_second < FIGURE:
        sys.exit("missed a figure")


if __name__ == "__main__":
    main()
