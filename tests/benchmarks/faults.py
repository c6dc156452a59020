"""What may go wrong downstream of the client, each as a block during which it does."""

from __future__ import annotations

import json
import resource
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import redis

from service.store.redis import redis_keys
from tests.benchmarks.rig import tree, wait_for
from tests.benchmarks.scripted_engine import SLOWER
from tests.benchmarks.system import THINK, System, until

Fault = Callable[[System], AbstractContextManager[None]]
REDIS_DELAY = 0.15
"""Seconds in either direction: an answer of Redis takes .3 s, of the proxy's patience of one."""
COUNTED_SECONDS = 30.0
"""In which a proxy writes again what it counted while Redis took nothing; it does so each second."""


def _wait_until_counted(system: System) -> None:
    """Until the ledger in Redis tells what the fault did, and not the next visit."""
    since = time.time()

    def is_told() -> bool:
        with system.redis() as client:
            ledgers = [
                redis_keys.ledger(each.decode()) for each in client.smembers(redis_keys.LEDGER_INSTANCES)
            ]
            told = (client.hget(each, redis_keys.WRITTEN_AT) for each in ledgers)
            return any(at is not None and float(at) > since for at in told)

    if not until(is_told, COUNTED_SECONDS):
        raise TimeoutError(f"the proxy told nothing for {COUNTED_SECONDS:g} s:\n{system.proxy.tail()}")


@contextmanager
def nothing(system: System) -> Iterator[None]:
    """For A/A: the same visits, without a fault."""
    yield


@contextmanager
def candidate_dead(system: System) -> Iterator[None]:
    """Killed: connections are refused."""
    system.candidate.kill()
    try:
        yield
    finally:
        system.candidate.start()
        wait_for(system.candidate_port)


@contextmanager
def candidate_in_mode(mode: str, system: System) -> Iterator[None]:
    """The candidate's engine misbehaves."""
    system.candidate.tell(mode)
    try:
        yield
    finally:
        system.candidate.tell("ok")


@contextmanager
def redis_down(system: System) -> Iterator[None]:
    """Killed: its memory is lost, and connections are refused."""
    system.valkey.kill()
    try:
        yield
    finally:
        system.valkey.start()
        wait_for(system.valkey_port)
        _wait_until_counted(system)


@contextmanager
def redis_hung(system: System) -> Iterator[None]:
    """Stopped: the kernel accepts connections and nobody answers."""
    system.valkey.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        system.valkey.signal(signal.SIGCONT)
        _wait_until_counted(system)


@contextmanager
def redis_slow(system: System) -> Iterator[None]:
    """Every byte comes late, in both directions."""
    system.relay.tell(str(REDIS_DELAY))
    try:
        yield
    finally:
        system.relay.tell("0")


@contextmanager
def redis_full(system: System) -> Iterator[None]:
    """At its maxmemory, with noeviction: every write is refused."""
    with system.redis() as client:
        client.config_set("maxmemory", 1)
    try:
        yield
    finally:
        with system.redis() as client:
            client.config_set("maxmemory", 0)
        _wait_until_counted(system)


@contextmanager
def captures_full(system: System) -> Iterator[None]:
    """Redis holds more than `capture.max_bytes`, as far as the proxy can tell."""
    ends = str(int(time.time()) + 86_400)
    with system.redis() as client:
        client.hset(redis_keys.CAPTURES_BYTES, ends, str(2**40))
    try:
        yield
    finally:
        with system.redis() as client:
            client.hdel(redis_keys.CAPTURES_BYTES, ends)


@contextmanager
def worker_stopped(system: System) -> Iterator[None]:
    """Frozen with all it holds: captures pile up."""
    system.worker.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        system.worker.signal(signal.SIGCONT)


@contextmanager
def disk_full(system: System) -> Iterator[None]:
    """No file of worker and guard may be written any more, SQLite's least of all."""
    _limit_files(system, 0)
    try:
        yield
    finally:
        _limit_files(system, resource.RLIM_INFINITY)


def _limit_files(system: System, size: int) -> None:
    for part in (system.worker, system.guard):
        # The parent before its children are listed: one that it forks meanwhile would keep its old limit.
        _limit(part.pid, size)
        for pid in tree(part.pid):
            with suppress(ProcessLookupError):  # pool children come and go
                _limit(pid, size)


def _limit(pid: int, size: int) -> None:
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size if most < 0 else min(size, most), most))


FAULTS: dict[str, Fault] = {
    "candidate dead": candidate_dead,
    "candidate hung": partial(candidate_in_mode, "hung"),
    "candidate 10x slower": partial(candidate_in_mode, "slow"),
    "candidate answers 500": partial(candidate_in_mode, "error"),
    "candidate resets mid-stream": partial(candidate_in_mode, "reset"),
    "Redis down": redis_down,
    "Redis hung": redis_hung,
    "Redis slow": redis_slow,
    "Redis full (maxmemory)": redis_full,
    "Redis full (capture.max_bytes)": captures_full,
    "worker stopped": worker_stopped,
    "disk full for SQLite": disk_full,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """By what a fault shows downstream: an effect that is counted anyway, or looked for while it lasts."""

    effect: str
    begin: Callable[[System], Callable[[], int]] | None = None
    """Called when the fault has begun; what it returns is called before it ends, and counts the effect."""


def _candidate_is_slow(system: System) -> Callable[[], int]:
    def ask() -> int:
        began = time.monotonic()
        question = urllib.request.Request(
            f"http://127.0.0.1:{system.candidate_port}/v1/chat/completions",
            json.dumps({"model": "m", "messages": []}).encode(),
        )
        with urllib.request.urlopen(question, timeout=60):
            return int(time.monotonic() - began >= SLOWER * THINK)

    return ask


def _redis_is_slow(system: System) -> Callable[[], int]:
    def ask() -> int:
        with redis.Redis(port=system.relay_port, socket_timeout=60) as client:
            client.ping()  # opens the connection
            began = time.monotonic()
            client.ping()
            return int(time.monotonic() - began >= 2 * REDIS_DELAY)

    return ask


def _nothing_is_settled(system: System) -> Callable[[], int]:
    before = system.settled()
    return lambda: system.waiting() if system.settled() == before else 0


SIGNS: dict[str, Sign] = {
    "candidate dead": Sign(effect="replays unreachable"),
    "candidate hung": Sign(effect="replays timeout"),
    "candidate 10x slower": Sign(effect="slow answers of the candidate", begin=_candidate_is_slow),
    "candidate answers 500": Sign(effect="replays server_error"),
    "candidate resets mid-stream": Sign(effect="replays cut_off"),
    "Redis down": Sign(effect="dropped store_down"),
    "Redis hung": Sign(effect="dropped store_down"),
    "Redis slow": Sign(effect="slow answers of Redis", begin=_redis_is_slow),
    "Redis full (maxmemory)": Sign(effect="dropped store_full"),
    "Redis full (capture.max_bytes)": Sign(effect="dropped store_full"),
    "worker stopped": Sign(effect="captures waited while none was settled", begin=_nothing_is_settled),
    "disk full for SQLite": Sign(effect="captures waited while none was settled", begin=_nothing_is_settled),
}
"""One for each fault: without it, the fault did not happen, and its figures say nothing."""
