"""What goes wrong downstream of clients costs them nothing: no wait, no memory, no socket, no lost count.

`make bench BENCH=isolation` and `soak` measure the same properties; here they only have to hold.
"""

from __future__ import annotations

import concurrent.futures
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import httpx
import pytest

from service.proxy.gauges.numbers import LEAST_AHEAD
from service.store.redis import redis_keys
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from service.store.traffic.account import STALE_SECONDS, LedgerAccount
from service.store.traffic.ledger import account
from tests.acceptance.conftest import MODEL, Start, System, extraction, question, until
from tests.acceptance.tap import Tap
from tests.benchmarks.exposed import series
from tests.benchmarks.memory import open_files, resident_mib
from tests.conftest import ValkeyServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]
MOST_GROWTH_MIB = 24.0
"""Of a proxy's memory in a few seconds of each fault: buffers and allocators settle, a leak would go on."""
SPARE_FILES = 4
"""Redis' client keeps a connection for each call that was ever under way at once."""


def serving(system: System) -> int:
    """Pid of the process that serves."""
    (pid,) = system.part("service.proxy.processes.child")
    return pid


def clients_are_served(system: System, number: int) -> None:
    """Plain and streamed answers, at once and whole; every other client of a stream hangs up half way."""
    for stream in (False, True):
        system.serves_at_once([extraction(number + 4 * stream + i, stream=stream) for i in range(4)])
    for i in range(8):
        hang_up(system, question(number + 50 + i, stream=True))


def hang_up(system: System, body: dict[str, object]) -> None:
    """Take the beginning of an answer and go."""
    system.sent += 1
    url = f"{system.proxy}/v1/chat/completions"
    with httpx.stream("POST", url, json={"model": MODEL} | body, timeout=30) as answer:
        next(answer.iter_raw())


def pooled(system: System) -> int:
    """Connections that wait for their next request."""
    found = series(int(system.admin.rpartition(":")[2]))
    return round(found["backend_idle_connections"] + found["clients"])


def reconciled(system: System, valkey: ValkeyServer, *, now: float | None = None) -> LedgerAccount:
    """The ledger after everything has stopped; Redis is still there."""
    database = open_database(f"sqlite:///{system.folder / '.tiergate' / 'tiergate.db'}")
    try:
        with closing(open_captures(valkey.url)) as captures:
            return account(database, captures, now=now)
    finally:
        database.close()


def workers_go_on(system: System, valkey: ValkeyServer) -> None:
    """Fails where messages that come now are left: nobody has turned deaf."""
    before = system.ledger()["shipped"]
    clients_are_served(system, 1900)
    until("captures are shipped", lambda: system.ledger()["shipped"] >= before + 16)
    with valkey.client() as client:
        until("no message waits", lambda: client.llen("replay") == 0)


@contextmanager
def scripted(system: System, **behaviour: object) -> Iterator[None]:
    system.backends["w8a8"].script(**behaviour)
    yield
    system.backends["w8a8"].script(mode="ok", pause=0.0)


@contextmanager
def down(valkey: ValkeyServer) -> Iterator[None]:
    """Killed: what it held is gone."""
    valkey.kill()
    yield
    valkey.start()


@contextmanager
def hung(valkey: ValkeyServer) -> Iterator[None]:
    valkey.freeze()
    yield
    valkey.thaw()


@contextmanager
def slow(tap: Tap) -> Iterator[None]:
    tap.delay = 0.2
    yield
    tap.delay = 0.0


@contextmanager
def out_of_memory(valkey: ValkeyServer) -> Iterator[None]:
    with valkey.client() as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        yield
        client.config_set("maxmemory", 0)


@contextmanager
def full_of_captures(valkey: ValkeyServer) -> Iterator[None]:
    ends = str(int(time.time()) + 86_400)
    with valkey.client() as client:
        client.hset(redis_keys.CAPTURES_BYTES, ends, str(2**40))
        yield
        client.hdel(redis_keys.CAPTURES_BYTES, ends)


@contextmanager
def full_disk(system: System) -> Iterator[None]:
    """Workers and guard may write no file any more."""
    assert _limit_files(system, 0)
    yield
    _limit_files(system, resource.RLIM_INFINITY)


def _limit_files(system: System, size: int) -> int:
    """How many processes it was that may write files of so many bytes; pool children come and go."""
    limited = 0
    for pid in system.part("celery"):
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            limited += 1
    return limited


def test_clients_notice_no_fault_downstream_and_the_ledger_adds_up(
    start: Start, own_valkey: ValkeyServer
) -> None:
    with ExitStack() as stack:
        tap = stack.enter_context(Tap(own_valkey.port))
        system = start(
            store={"redis": f"redis://127.0.0.1:{tap.port}/0"},
            mirror={"sample": "100%", "buffer": "2MiB"},
            shadow={"on_serving": True, "timeout": "2s", "retries": 1},
        )
        clients_are_served(system, 0)
        time.sleep(1.0)
        pid = serving(system)
        files, resident = open_files(pid) - pooled(system), resident_mib(pid)

        faults: dict[str, Callable[[], object]] = {
            "slow candidate": lambda: scripted(system, pause=0.5),
            "candidate cut off mid-stream": lambda: scripted(system, mode="cut"),
            "hung candidate": lambda: scripted(system, mode="hang"),
            "candidate answers 500": lambda: scripted(system, mode="error"),
            "Redis down": lambda: down(own_valkey),
            "hung Redis": lambda: hung(own_valkey),
            "slow Redis": lambda: slow(tap),
            "Redis out of memory": lambda: out_of_memory(own_valkey),
            "Redis full of captures": lambda: full_of_captures(own_valkey),
            "disk full": lambda: full_disk(system),
            "workers stopped": lambda: system.frozen("celery"),
        }
        workers = system.part("celery")
        for number, (name, fault) in enumerate(faults.items()):
            with fault():  # type: ignore[attr-defined]
                clients_are_served(system, 100 * (number + 1))
                time.sleep(1.0)
                if name == "Redis full of captures":
                    until("a full store takes nothing", lambda: "store_full" in system.ledger()["dropped"])
        workers_go_on(system, own_valkey)
        assert system.part("celery") == workers, "a fault has ended a part of Celery's"
        system.backends["w8a8"].process.kill()
        clients_are_served(system, 2000)

        assert serving(system) == pid, "the process that serves was replaced"
        until("no socket is left over", lambda: open_files(pid) - pooled(system) <= files + SPARE_FILES)
        assert resident_mib(pid) < resident + MOST_GROWTH_MIB
        assert system.stop() == 0

        found = reconciled(system, own_valkey)
        assert (found.balanced, found.problems) == (True, ())
        assert found.seen == found.sampled == system.sent
        assert found.sampled == found.shipped + sum(found.dropped.values())
        assert found.shipped == found.processed + found.expired + found.lost + found.waiting
        assert found.dropped.get("store_full"), "a full store takes nothing"
        assert (found.in_flight, found.unaccounted) == (0, 0)


def test_what_a_killed_proxy_took_along_is_bounded_by_the_ledger(
    start: Start, own_valkey: ValkeyServer
) -> None:
    system = start(store={"redis": own_valkey.url})
    stop = threading.Event()
    answered: list[int] = []
    lost: list[str] = []

    def ask_on(worker: int) -> None:
        number = 10_000 * worker
        while not stop.is_set():
            number += 1
            system.sent += 1
            try:
                body = {"model": MODEL} | question(number)
                answered.append(httpx.post(f"{system.proxy}/v1/chat/completions", json=body).status_code)
            except httpx.TransportError as error:
                lost.append(repr(error))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask_on, worker) for worker in range(4)]
        try:
            until("answers", lambda: len(answered) > 20)
            time.sleep(1.5)
            os.kill(serving(system), signal.SIGKILL)
            killed_after = len(answered)
            until("answers of the next process", lambda: len(answered) > killed_after + 20)
        finally:
            stop.set()
        for each in asking:
            each.result()
    assert set(answered) == {200}
    assert system.stop() == 0

    found = reconciled(system, own_valkey, now=time.time() + STALE_SECONDS + 1)
    missing = len(answered) + len(lost) - found.seen
    assert found.balanced
    assert 0 <= missing <= found.unaccounted <= LEAST_AHEAD + len(answered)
    assert any("killed" in problem or "silent" in problem for problem in found.problems), found.problems
