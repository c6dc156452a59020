"""Shadow jobs through real Celery workers, a real Valkey and SQLite: chains, deaths, deliveries in plenty."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from service.decision.evidence import Shown
from service.decision.policy import Gate
from service.load.figures import BlockFigures
from service.load.plan import Part
from service.report.document import from_json
from service.report.forms import Form, written
from service.report.words import Language
from service.settings import Settings
from service.settings.cron import cron
from service.store.load.jobs import BlockState, Job, JobState, cancel_job, list_jobs, read_job
from service.store.load.load_blocks import read_blocks
from service.store.load.reports import read_report
from service.store.sql.database import Database
from service.store.verdicts.measurements import latest_measurement
from tests.conftest import ValkeyServer
from tests.workers.celery_parts import CeleryParts, until
from tests.workers.load_walk import Engines, begin_by_hand, break_answers, fill_corpus, settings_of
from tests.workers.walk import MODEL
from workers.load_tasks import BEGIN, DISPATCH, LOAD_QUEUE, crontab_of, schedule_of

pytestmark = pytest.mark.acceptance

Configure = Callable[..., Settings]
QUICK: dict[str, Any] = {
    "warm_up": "200ms",
    "settle": "100ms",
    "window": "3200ms",
    "blocks": 8,
    "rate": "10/s",
    "arrivals": "constant",
}


@pytest.fixture
def configured(tmp_path: Path, valkey: ValkeyServer, sqlite_url: str) -> Callable[..., Settings]:
    def make(*tiers: tuple[str, str, float], **more: Any) -> Settings:
        return settings_of(
            tmp_path, redis_url=valkey.url, database_url=sqlite_url, tiers=tiers, **{"plan": QUICK, **more}
        )

    return make


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[CeleryParts]:
    made = CeleryParts(directory=tmp_path, environ={"TIERGATE_CONFIG": str(tmp_path / "tiergate.yaml")})
    yield made
    made.close()


def enqueue(redis_url: str, task: str) -> None:
    """As beat does."""
    with Celery("test", broker=redis_url, set_as_current=False) as app:
        app.send_task(task, queue="guard")


def over(db: Database, job: Job) -> Callable[[], bool]:
    return lambda: read_job(db, job.job_id).state.over


WORKER = ("-Q", "load,guard", "-c", "1")


@pytest.mark.timeout(900)  # a minute, and many on a busy machine; a job waits for what it measures
def test_a_whole_job_runs_by_itself_and_a_fast_tier_that_breaks_its_answers_is_no_bargain(
    configured: Configure,
    parts: CeleryParts,
    engines: Engines,
    db: Database,
    valkey: ValkeyServer,
) -> None:
    """What it costs to the last digit is told in simulated time, where no machine is in the way."""
    fill_corpus(db)
    # Beyond 10 and 20 requests a second tokens come too far apart. A third of a second of either may be late.
    behind = {"slack": 0.3, "pause": 0.9, "tokens": 2}
    settings = configured(
        ("bf16", engines(seconds=0.2, rate=10, **behind), 60.0),
        ("w8a8", engines(seconds=0.1, rate=20, **behind), 60.0),
        plan={**QUICK, "window": "4800ms", "rate": "12/s", "arms": "together"},
    )
    # Half of its answers break. Each of these costs four requests of the baseline: no speed makes up for it.
    break_answers(db, epoch=settings.epoch_of(MODEL, "w8a8"), broken=40, of=80)
    job = begin_by_hand(settings, db, time.time())
    worker = parts.worker(*WORKER)
    enqueue(valkey.url, DISPATCH)
    until(over(db, job), 800, lambda: worker.log)
    ended = read_job(db, job.job_id)
    assert (ended.state, ended.reason) == (JobState.DONE, ""), worker.log
    findings = ended.findings
    assert findings is not None
    assert {"opening", "slo", "best", "cost", "concurrency", "gates"} <= set(findings)
    blocks = read_blocks(db, job.job_id, done=False)
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert {block.state for block in blocks} == {BlockState.DONE}
    assert {block.leases for block in blocks} == {1}
    assert {Part(block.part) for block in blocks} == set(Part)
    assert ended.tokens_spent > 0
    best = {each["tier"]: each for each in findings["best"]}
    assert best["bf16"]["reached"], best
    assert best["w8a8"]["reached"], best
    gates = {(each["gate"], each["tier"]): each for each in findings["gates"]}
    assert set(gates) == {("slo", "bf16"), ("slo", "w8a8"), ("money", "w8a8")}
    money = gates["money", "w8a8"]
    assert (money["shown"], money["run"]) == ("failed", 1), (money["reason"], best)
    benefit = money["numbers"]["net benefit per request"]
    assert benefit < 0
    enqueue(valkey.url, DISPATCH)  # as beat does every few seconds
    until(lambda: read_report(db, job.job_id) is not None, 120, lambda: worker.log)
    report = from_json(read_report(db, job.job_id) or "")
    assert (report.run.state, report.run.blocks_done) == ("done", len(blocks))
    for language in Language:
        page = written(report, Form.HTML, language).text
        for name in ("latency-ttft", "latency-tpot", "goodput", "concurrency", "ledger"):
            assert f'id="chart-{name}"' in page
        for name in ("forest", "waterfall"):  # of the candidate
            assert f'id="chart-{name}-' in page
    priced = report.tiers[1].money
    assert priced is not None
    assert priced.net_benefit is not None
    assert priced.net_benefit.value == benefit
    kept = latest_measurement(db, MODEL, "w8a8", Gate.MONEY, money["epoch"], since=0.0)
    assert kept is not None
    assert kept.shown is Shown.FAILED


@pytest.mark.timeout(900)
def test_a_load_worker_killed_in_mid_block_loses_no_block_and_none_counts_twice(
    configured: Configure,
    parts: CeleryParts,
    engines: Engines,
    db: Database,
    valkey: ValkeyServer,
) -> None:
    fill_corpus(db)
    url = engines(seconds=0.02)
    settings = configured(
        ("bf16", url, 60.0),
        ("w8a8", url, 60.0),
        plan={**QUICK, "parts": ["slo"], "rate": "4/s"},
        policy={"load_runs": {"slo_margin": "45pp"}},
    )
    job = begin_by_hand(settings, db, time.time())
    first = parts.worker(*WORKER, TIERGATE_LEASE_SECONDS="4")
    enqueue(valkey.url, DISPATCH)

    def in_the_middle() -> bool:
        blocks = read_blocks(db, job.job_id, done=False)
        return len(blocks) >= 3 and blocks[-1].state is BlockState.LEASED

    until(in_the_middle, 60, lambda: first.log)
    first.kill()
    done = read_job(db, job.job_id).blocks_done
    second = parts.worker(*WORKER, TIERGATE_LEASE_SECONDS="4")

    def goes_on() -> bool:
        enqueue(valkey.url, DISPATCH)
        time.sleep(0.5)
        return over(db, job)()

    until(goes_on, 800, lambda: second.log)
    ended = read_job(db, job.job_id)
    assert (ended.state, ended.reason) == (JobState.DONE, ""), second.log
    blocks = read_blocks(db, job.job_id, done=False)
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert all(block.state is BlockState.DONE for block in blocks)
    assert sum(block.leases for block in blocks) == len(blocks) + 1, "one block was begun anew, and no other"
    assert ended.blocks_done >= done
    figures = {block.number: BlockFigures.of(block.figures or {}) for block in blocks}
    valid = Counter(block.tier for block in blocks if figures[block.number].valid)
    assert min(valid.values()) >= 8


def test_a_child_killed_alone_is_replaced_and_its_block_begun_anew(
    configured: Configure,
    parts: CeleryParts,
    engines: Engines,
    db: Database,
    valkey: ValkeyServer,
) -> None:
    fill_corpus(db)
    url = engines(seconds=0.02)
    plan = {**QUICK, "parts": ["slo"], "window": "16s"}
    settings = configured(("bf16", url, 60.0), ("w8a8", url, 60.0), plan=plan)
    job = begin_by_hand(settings, db, time.time())
    worker = parts.worker(*WORKER, TIERGATE_LEASE_SECONDS="3")
    enqueue(valkey.url, DISPATCH)
    until(lambda: read_job(db, job.job_id).state is JobState.RUNNING, 60, lambda: worker.log)
    [child] = worker.children()
    os.kill(child, signal.SIGKILL)

    def second_block() -> bool:
        enqueue(valkey.url, DISPATCH)
        time.sleep(0.5)
        return read_job(db, job.job_id).blocks_done >= 1

    until(second_block, 60, lambda: worker.log)
    assert read_blocks(db, job.job_id)[0].leases == 2


def test_a_job_longer_than_the_brokers_visibility_timeout_runs_once(
    configured: Configure, parts: CeleryParts, engines: Engines, db: Database, valkey: ValkeyServer
) -> None:
    """The broker gives the block's message to a second worker while the first is at it."""
    fill_corpus(db)
    url = engines(seconds=0.02)
    settings = configured(
        ("bf16", url, 60.0), ("w8a8", url, 60.0), plan={**QUICK, "parts": ["slo"], "window": "10m"}
    )
    job = begin_by_hand(settings, db, time.time())
    impatient = {"TIERGATE_VISIBILITY_SECONDS": "1"}
    first = parts.worker(*WORKER, "-n", "one@%h", **impatient)
    enqueue(valkey.url, DISPATCH)
    until(lambda: read_job(db, job.job_id).state is JobState.RUNNING, 60, lambda: first.log)
    time.sleep(1.2)  # beyond the timeout, which this is about
    second = parts.worker("-Q", LOAD_QUEUE, "-c", "1", "-n", "two@%h", **impatient)
    second.wait_for("block 0 of")
    second.wait_for("is settled, or somebody is at it")
    [block] = read_blocks(db, job.job_id, done=False)
    assert (block.state, block.leases) == (BlockState.LEASED, 1)
    cancel_job(db, job.job_id, actor="ann", now=time.time())
    until(over(db, job), 60, lambda: first.log)
    assert read_job(db, job.job_id).state is JobState.CANCELLED


def test_messages_that_anybody_enqueued_harm_nothing(
    configured: Configure,
    parts: CeleryParts,
    engines: Engines,
    db: Database,
    valkey: ValkeyServer,
) -> None:
    fill_corpus(db)
    configured(("bf16", engines(), 60.0), ("w8a8", engines(), 60.0))
    worker = parts.worker(*WORKER)
    with Celery("test", broker=valkey.url, set_as_current=False) as app:
        for arguments in (["nobody", 0], [3, "x"], []):
            app.send_task("workers.tasks.run_load_block", args=arguments, queue=LOAD_QUEUE)
        app.send_task(BEGIN, queue="guard")
    until(lambda: len(list_jobs(db)) == 1, 60, lambda: worker.log)
    [job] = list_jobs(db)
    assert (job.cause, job.actor) == ("schedule", "schedule")
    with Celery("test", broker=valkey.url, set_as_current=False) as app:
        app.send_task(BEGIN, queue="guard")
    worker.wait_for("is not over yet: one at a time")
    assert len(list_jobs(db)) == 1


def test_beat_begins_jobs_at_the_minute_of_the_cron_expression_in_its_time_zone(
    configured: Configure, tmp_path: Path, redis_client: redis.Redis
) -> None:
    from workers.app import create_app
    from workers.schedule import QuietScheduler

    plan = {**QUICK, "cron": "30 3 * * mon", "timezone": "Asia/Shanghai"}
    settings = configured(
        ("bf16", "http://127.0.0.1:9", 60.0), ("w8a8", "http://127.0.0.1:10", 60.0), plan=plan
    )
    app = create_app(settings, {})
    entry = QuietScheduler(app=app).schedule[BEGIN]
    assert entry.options["queue"] == "guard"
    # Sunday 19:30 in UTC is Monday 3:30 in Shanghai.
    sunday = datetime(2026, 1, 4, 19, 0, tzinfo=UTC)
    assert app.conf.timezone == "Asia/Shanghai"
    last, until_due, _ = entry.schedule.remaining_delta(sunday)
    assert (last + until_due).astimezone(UTC) == datetime(2026, 1, 4, 19, 30, tzinfo=UTC)
    app.close()


def test_without_a_cron_expression_beat_only_dispatches(configured: Configure) -> None:
    settings = configured(("bf16", "http://127.0.0.1:9", 60.0), ("w8a8", "http://127.0.0.1:10", 60.0))
    assert set(schedule_of(settings)) == {DISPATCH}


def test_celery_hears_the_same_numbers_that_we_read() -> None:
    found = crontab_of(cron("*/15 1-3 1,15 jan,jul *"))
    assert found.minute == {0, 15, 30, 45}
    assert found.hour == {1, 2, 3}
    assert found.day_of_month == {1, 15}
    assert found.month_of_year == {1, 7}
    assert found.day_of_week == set(range(7))
    assert json.dumps(sorted(found.minute)) == "[0, 15, 30, 45]"
