"""Verdicts over HTTP at a fixed rate, the API on one core (issue: p99 at most 25 ms at 100 requests/s).

An open loop: each request is due at its time, whatever became of those before it, and its latency counts from
when it was due. The API is a process of its own on one core, over SQLite with a token for every request;
the client is on another. Four arms, in alternating order: verdicts, the same again (the A/A spread, below
which no ratio means anything), verdicts that are known (`If-None-Match`), and verdicts while a worker records
a pair five times a second, so that they are computed again as often. Run:
`python -m tests.benchmarks.api [--rounds N] [--seconds N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path

import httpx

from service.approval.app import create_app
from service.approval.config import ApiConfig
from service.cli.api import settle
from service.store.access import tokens
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from tests.approval.live import CRITERIA, MODEL, WIDE, Upstream, add_pairs, ladder_over, serving
from tests.benchmarks.rig import cpu_seconds, end_on_signals, machine, publish, quantile
from tests.conftest import ValkeyServer
from tests.leash import Leashed

RATE = 100.0
"""Requests a second."""
FIGURE_MS = 25.0
PAIRS = 2_000
"""Of each tier, half of them in conversations of their own strata."""
PATH = f"/api/v1/models/{MODEL}/tiers/w4a16/verdict"
ARMS = ("verdict", "again", "known", "moving")
PAIRS_A_SECOND = 5.0
"""That are recorded meanwhile, in the last arm."""
AT_ONCE = 64


def serve(database: str, redis: str) -> None:
    """The API of this benchmark until its standard input closes; its address is its first line."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    db, captures, upstream = open_database(database), open_captures(redis, timeout=2), Upstream()
    config = ApiConfig(
        ladders={MODEL: ladder_over(upstream)},
        policy=WIDE,
        evaluators=dict.fromkeys(CRITERIA, "1"),
        epoch_of=lambda model, tier: f"epoch-{tier}",
    )
    try:
        with serving(create_app(config, db, captures)) as url:
            rehearsed(url)
            print(url, flush=True)
            sys.stdin.read()
    finally:
        upstream.stop()
        captures.close()
        db.close()


def rehearsed(url: str) -> None:
    """As `tiergate api` begins: what an answer needs is loaded, and out of the collector's sight."""
    httpx.get(f"{url}{PATH}", trust_env=False, timeout=60).raise_for_status()
    settle()


@contextmanager
def api(database: str, redis: str) -> Iterator[tuple[str, int]]:
    """Address and process id of the API, on a core of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.api", "--serve", database, redis]
    with Leashed(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.stdin.close()


async def at_rate(url: str, headers: dict[str, str], status: int, *, seconds: float) -> list[float]:
    """Milliseconds of each request from when it was due."""
    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    taken: list[float] = []
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, trust_env=False) as client:
        await client.get(PATH)
        began = time.perf_counter()

        async def ask(due: float) -> None:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            answer = await client.get(PATH)
            assert answer.status_code == status, answer.text
            taken.append((time.perf_counter() - due) * 1000)

        async with asyncio.TaskGroup() as group:
            for number in range(int(RATE * seconds)):
                group.create_task(ask(began + number / RATE))
    return taken


@contextmanager
def recording(database: str, number: int) -> Iterator[None]:
    """Pairs of a tier from another process, one commit each, the first before the block begins.

    `number` begins their names. RuntimeError when the process did not go on to the end.
    """
    command = [sys.executable, "-m", "tests.benchmarks.api", "--record", database, str(number)]
    with Leashed(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.stdin.close()
    if process.returncode:
        raise RuntimeError(f"whoever records pairs ended with {process.returncode}")


def record(database: str, number: int) -> None:
    """Until its standard input closes; a line tells that it has begun."""
    with closing(open_database(database)) as db:
        first = number + 1
        while not select.select([sys.stdin], [], [], 1 / PAIRS_A_SECOND)[0]:
            number += 1
            add_pairs(db, "w8a8", clean=1, epoch="epoch-w8a8", stratum=f"moving {number}")
            if number == first:
                print(flush=True)


def measure(
    folder: Path, *, rounds: int, seconds: float
) -> tuple[dict[str, list[list[float]]], dict[str, float]]:
    """Latencies by arm and round, and the API's processor milliseconds for a request by arm."""
    database = f"sqlite:///{folder / 'tiergate.db'}"
    with closing(open_database(database)) as db:
        for tier in ("w8a8", "w4a16"):
            add_pairs(db, tier, clean=PAIRS, epoch=f"epoch-{tier}")
        secret = tokens.create(db, name="bench", scopes=["read"], now=time.time())
    found: dict[str, list[list[float]]] = {arm: [] for arm in ARMS}
    spent = dict.fromkeys(ARMS, 0.0)
    with ExitStack() as stack:
        valkey = ValkeyServer(directory=folder)
        valkey.start()
        stack.callback(valkey.kill)
        url, pid = stack.enter_context(api(database, valkey.url))
        plain = {"Authorization": f"Bearer {secret}"}
        asyncio.run(at_rate(url, plain, 200, seconds=1.0))
        settle()  # this process as well: its collector's looks are not the API's latency
        for number in range(rounds):
            for arm in ARMS if number % 2 == 0 else ARMS[::-1]:
                tag = httpx.get(f"{url}{PATH}", headers=plain, trust_env=False).headers["etag"]
                known = {**plain, "If-None-Match": tag}
                before = cpu_seconds(pid)
                headers, status = (known, 304) if arm == "known" else (plain, 200)
                with recording(database, 1_000_000 * number) if arm == "moving" else nullcontext():
                    found[arm].append(asyncio.run(at_rate(url, headers, status, seconds=seconds)))
                spent[arm] += (cpu_seconds(pid) - before) * 1000 / (len(found[arm][-1]) * rounds)
    return found, spent


def p99_of(found: dict[str, list[list[float]]], arm: str) -> float:
    """Milliseconds, over all rounds."""
    return quantile([each for taken in found[arm] for each in taken], 0.99)


def report(found: dict[str, list[list[float]]], spent: dict[str, float]) -> str:
    """A row for each arm, beside the figure, and the ratios to the first."""
    lines = [
        "| arm | requests | p50 | p99 | worst round | of the first arm's p99 | CPU of the API |",
        "|---|---|---|---|---|---|---|",
    ]
    first = p99_of(found, ARMS[0])
    for arm in ARMS:
        every = [each for taken in found[arm] for each in taken]
        worst = max(quantile(taken, 0.99) for taken in found[arm])
        p99 = p99_of(found, arm)
        lines.append(
            f"| {arm} | {len(every):,} | {quantile(every, 0.5):.1f} ms | {p99:.1f} ms | {worst:.1f} ms | "
            f"{p99 / first:.2f} | {spent[arm]:.1f} ms |"
        )
    for arm, said in (("verdict", ""), ("moving", f" beside {PAIRS_A_SECOND:g} commits/s")):
        p99 = p99_of(found, arm)
        met = "met" if p99 <= FIGURE_MS else "MISSED"
        lines += ["", f"p99 of a verdict at {RATE:g}/s{said}: {p99:.1f} ms of {FIGURE_MS:g} ms: {met}"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each arm in each round")
    parser.add_argument("--output", type=Path, help="write the report there as well")
    parser.add_argument("--record", nargs=2, metavar=("DATABASE", "NUMBER"), help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=2, metavar=("DATABASE", "REDIS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(*asked.serve)
        return
    if asked.record:
        record(asked.record[0], int(asked.record[1]))
        return
    end_on_signals()
    described = machine()
    with tempfile.TemporaryDirectory() as folder:
        found, spent = measure(Path(folder), rounds=asked.rounds, seconds=asked.seconds)
    publish(f"{described}\n\n{report(found, spent)}", asked.output)
    if max(p99_of(found, "verdict"), p99_of(found, "moving")) > FIGURE_MS:
        sys.exit(1)


if __name__ == "__main__":
    main()
