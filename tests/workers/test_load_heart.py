"""What ends a block before its time: a lost lease, a cancellation, clients who lose their SLO."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from service.store.load.jobs import Cause, Job, JobState, Outlook, begin_job, cancel_job
from service.store.load.load_blocks import Block, lease_block, read_blocks
from service.store.load.turns import Ending, Turn, take_turn
from service.store.sql.database import Database
from tests.store.load.test_load_blocks import PLAN
from tests.workers.celery_parts import until
from tests.workers.load_tiers import manifest_of
from tests.workers.test_load_plan import PLAN as JOB_PLAN
from workers.load_heart import MOST_UNSEEN, Clients, Heart, Unwatchable

PAGE = """\
# TYPE tiergate_proxy_first_byte_seconds histogram
tiergate_proxy_first_byte_seconds_bucket{{model="m",tier="bf16",le="2.5"}} {in_time}
tiergate_proxy_first_byte_seconds_bucket{{model="m",tier="bf16",le="+Inf"}} {answers}
tiergate_proxy_first_byte_seconds_sum{{model="m",tier="bf16"}} 1
tiergate_proxy_first_byte_seconds_count{{model="m",tier="bf16"}} {answers}
"""


class Proxy:
    """The metrics page of a proxy that has counted what the test says."""

    def __init__(self) -> None:
        self.page: str | None = PAGE.format(in_time=0, answers=0)
        self.answers_a_look = 0
        """Given in time between two looks."""
        self._answers = 0
        proxy = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if proxy.answers_a_look:
                    proxy._answers += proxy.answers_a_look
                    proxy.counted(in_time=proxy._answers, answers=proxy._answers)
                told = (proxy.page or "").encode()
                self.send_response(200 if proxy.page is not None else 500)
                self.send_header("content-length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self._thread.start()

    def counted(self, *, in_time: int, answers: int) -> None:
        self.page = PAGE.format(in_time=in_time, answers=answers)

    def stop(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    yield made
    made.stop()


def watching(proxy: Proxy) -> Clients:
    return Clients(addresses=(proxy.url,), promises={"m": 1.0})


def test_clients_that_get_what_they_are_promised_end_nothing(proxy: Proxy) -> None:
    proxy.counted(in_time=1000, answers=2000)
    clients = watching(proxy)
    clients.begin()
    for more in (100, 200, 300):
        proxy.counted(in_time=1000 + more, answers=2000 + more)
        assert clients.follow() == "", "what was before the block is nobody's fault"
    assert clients.answers == 300


def test_the_first_breach_is_told_also_when_it_comes_drop_by_drop(proxy: Proxy) -> None:
    clients = watching(proxy)
    clients.begin()
    told = []
    for late in range(1, 12):
        proxy.counted(in_time=0, answers=2 * late)
        told.append(clients.follow())
    assert told[0] == ""
    assert any("clients of m lose their SLO: of 20 requests" in each for each in told)


def test_who_cannot_be_watched_is_not_loaded(proxy: Proxy) -> None:
    clients = watching(proxy)
    clients.begin()
    proxy.page = None
    told = [clients.follow() for _ in range(MOST_UNSEEN)]
    assert told[:-1] == [""] * (MOST_UNSEEN - 1)
    assert "does not tell how its clients fare" in told[-1]
    with pytest.raises(Unwatchable, match=r"correct shadow_job\.watch"):
        watching(proxy).begin()


def test_a_page_that_is_no_proxys_is_not_watched(proxy: Proxy) -> None:
    clients = watching(proxy)
    clients.begin()
    proxy.page = 'tiergate_proxy_requests_total{model="m"} many\n'
    told = [clients.follow() for _ in range(MOST_UNSEEN)]
    assert told[:-1] == [""] * (MOST_UNSEEN - 1)
    assert "no page of a proxy's metrics" in told[-1]
    with pytest.raises(Unwatchable, match=r"correct shadow_job\.watch"):
        watching(proxy).begin()


@pytest.fixture
def job(db: Database) -> Job:
    made = begin_job(
        db,
        manifest=manifest_of(("bf16", "w8a8"), JOB_PLAN),
        cause=Cause.REQUEST,
        actor="ann",
        now=time.time(),
    )
    take_turn(db, made.job_id, 0, Turn(then=PLAN, outlook=Outlook()), now=time.time())
    return made


@pytest.fixture
def block(db: Database, job: Job) -> Block:
    leased = lease_block(db, job.job_id, 0, owner="w", now=time.time(), seconds=1.0)
    assert leased is not None
    return leased


@contextmanager
def beating(db: Database, block: Block, **more: object) -> Iterator[Heart]:
    given: dict[str, object] = {
        "stopping": lambda: False,
        "objecting": lambda: None,
        "lease_seconds": 1.0,
        **more,
    }
    with Heart(db, block, **given) as heart:  # type: ignore[arg-type]
        yield heart


def objects(heart: Heart) -> Callable[[], bool]:
    return lambda: heart.why is not None


async def test_the_lease_lasts_for_as_long_as_the_block_however_short_it_is(
    db: Database, block: Block
) -> None:
    def until_of() -> float:
        return read_blocks(db, block.job_id, done=False)[0].lease_until

    with beating(db, block) as heart:
        until(lambda: until_of() > block.lease_until + 1.0)
        assert heart.why is None
        assert await heart.objection() == ""


async def test_a_cancellation_ends_the_block(db: Database, job: Job, block: Block) -> None:
    with beating(db, block) as heart:
        cancel_job(db, job.job_id, actor="bob", now=time.time())
        until(objects(heart))
        assert await heart.objection() != ""
    assert heart.why is not None
    assert heart.why.ending == Ending(state=JobState.CANCELLED, reason="cancelled by bob")


def test_a_lease_that_is_somebody_elses_is_lost(db: Database, block: Block) -> None:
    stolen = lease_block(db, block.job_id, 0, owner="other", now=time.time() + 2.0)
    assert stolen is not None
    with beating(db, block) as heart:
        until(objects(heart))
    assert heart.why is not None
    assert heart.why.lost


def test_a_worker_that_is_to_stop_gives_its_block_back(db: Database, block: Block) -> None:
    with beating(db, block, stopping=lambda: True) as heart:
        until(objects(heart))
    assert heart.why is not None
    assert (heart.why.ending, heart.why.lost) == (None, False)


def test_a_backend_that_comes_into_service_ends_the_job(db: Database, block: Block) -> None:
    ending = Ending(state=JobState.ABORTED, reason="a backend came into service")
    with beating(db, block, objecting=lambda: ending) as heart:
        until(objects(heart))
    assert heart.why is not None
    assert heart.why.ending == ending


def test_what_cannot_be_told_ends_the_job_and_not_the_watching_alone(db: Database, block: Block) -> None:
    def objecting() -> Ending | None:
        raise KeyError("m")

    with beating(db, block, objecting=objecting) as heart:
        until(objects(heart))
    assert heart.why is not None
    assert heart.why.ending is not None
    assert heart.why.ending.state is JobState.FAILED
    assert "KeyError: 'm'" in heart.why.ending.reason


def test_a_breach_ends_the_job(db: Database, block: Block, proxy: Proxy) -> None:
    clients = watching(proxy)
    clients.begin()
    with beating(db, block, clients=clients) as heart:
        proxy.counted(in_time=0, answers=50)
        until(objects(heart))
    assert heart.why is not None
    assert heart.why.ending is not None
    assert heart.why.ending.state is JobState.ABORTED
    assert "lose their SLO" in heart.why.ending.reason
