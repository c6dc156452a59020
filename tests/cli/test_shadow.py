"""`tiergate shadow` against the real API."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.approval.app import create_app
from service.cli import following, shadow
from service.client.connection import TiergateClient
from service.client.errors import ApiUnreachable
from service.store.load.jobs import JobState, Outlook, active_job, end_job, list_jobs, read_job
from service.store.load.load_blocks import finish_block, lease_block
from service.store.load.turns import Turn, take_turn
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.conftest import captures, sqlite_database
from tests.approval.live import LiveApi, live_api, serving
from tests.patience import PATIENCE
from tests.store.load.test_job_terms import ladder, terms
from tests.store.load.test_load_blocks import PLAN

__all__ = ["captures", "sqlite_database"]

pytestmark = pytest.mark.usefixtures("elsewhere")

runner = CliRunner()
SHOWN: dict[str, Any] = {
    "plan": PLAN,
    "offered": 20,
    "passed": 19,
    "goodput": 123.4,
    "ttft": {"p95": 0.5},
    "tpot": {"p95": 0.02},
    "invalid": [],
    "columns": {},
}
GATE = {"gate": "slo", "tier": "w8a8", "shown": "failed", "reason": "miss share +0.05: above 0.01"}


@pytest.fixture
def api(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    with live_api(sqlite_database, captures, ladder=ladder(), jobs=terms()) as running:
        yield running


def against(api: LiveApi, *arguments: str, scope: str = "approve", text: str | None = None) -> Result:
    app = typer.Typer()
    shadow.register(app)
    environ = {
        "COLUMNS": "160",
        "TERM": "dumb",
        "TIERGATE_URL": api.url,
        "TIERGATE_TOKEN": api.secrets[scope],
    }
    return runner.invoke(app, ["shadow", *arguments], env=environ, input=text)


def one_block(db: Database, job_id: str, now: float) -> None:
    """What the guard and a load worker do."""
    take_turn(db, job_id, 0, Turn(then=PLAN, outlook=Outlook(blocks=1, seconds=4.0)), now=now)
    block = lease_block(db, job_id, 0, owner="w", now=now)
    assert block is not None
    assert finish_block(db, block, figures=SHOWN, tokens=900, now=now + 4)


def test_before_the_first_job_the_list_says_how_to_begin_one(api: LiveApi) -> None:
    answer = against(api, "list")
    assert answer.exit_code == 0
    assert "no shadow job yet: `tiergate shadow run MODEL` begins one" in answer.stdout


def test_a_job_is_begun_with_what_is_asked_for_and_left_alone(api: LiveApi) -> None:
    answer = against(
        api,
        *("run", "m", "--detach", "--part", "slo", "--rate", "30/m", "--window", "2m", "--warm-up", "10s"),
        *("--settle", "1s", "--blocks", "9", "--budget-time", "1h", "--budget-tokens", "2M"),
        *("--arms", "together"),
    )
    assert answer.exit_code == 0, answer.output
    [job] = list_jobs(api.db)
    assert f"{job.job_id}: begun" in answer.stdout
    plan = job.manifest.plan
    assert (plan.parts, plan.rate, plan.window_seconds, plan.warm_up_seconds) == (("slo",), 0.5, 120.0, 10.0)
    assert (plan.settle_seconds, plan.blocks, plan.budget_seconds) == (1.0, 9, 3600.0)
    assert (plan.budget_tokens, plan.arms) == (2_000_000, "together")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--part", "speed"), "one of slo, sweep, cost, concurrency"),
        (("--arms", "apart"), "one of interleaved, together"),
        (("--rate", "4"), "such as 4/s"),
        (("--window", "soon"), "a duration"),
        (("--budget-tokens", "many"), "a count"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_option(
    arguments: tuple[str, ...], words: str, api: LiveApi
) -> None:
    answer = against(api, "run", "m", *arguments)
    assert answer.exit_code == 2
    assert words in answer.output
    assert arguments[0] in answer.output
    assert list_jobs(api.db) == []


def test_a_job_that_is_watched_ends_with_what_it_found(api: LiveApi) -> None:
    """Another thread is the worker."""

    def work() -> None:
        deadline = time.monotonic() + PATIENCE
        while (job := active_job(api.db, "m")) is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        one_block(api.db, job.job_id, api.clock())
        findings = {"gates": [GATE], "best": [{"tier": "bf16", "told": "12 tokens/s at 4/s"}]}
        take_turn(
            api.db,
            job.job_id,
            1,
            Turn(then=PLAN, outlook=Outlook(blocks=1, seconds=4.0), remarks=["so it is"], findings=findings),
            now=api.clock(),
        )
        end_job(api.db, job.job_id, JobState.DONE, reason="", now=api.clock())

    worker = threading.Thread(target=work)
    worker.start()
    answer = against(api, "run", "m")
    worker.join()
    assert answer.exit_code == 0, answer.output
    for words in (
        "19 of 20",
        "123.4",
        "0.500 s",
        "so it is",
        "slo of w8a8: failed",
        "best rate of bf16",
        "900 tokens",
    ):
        assert words in answer.stdout, answer.stdout


def test_a_job_that_did_not_end_well_has_exit_code_1(api: LiveApi) -> None:
    against(api, "run", "m", "--detach")
    [job] = list_jobs(api.db)
    end_job(api.db, job.job_id, JobState.ABORTED, reason="clients lose their SLO", now=api.clock())
    answer = against(api, "status", job.job_id, "--watch")
    assert answer.exit_code == 1
    assert "aborted: clients lose their SLO" in answer.stdout
    assert against(api, "status", job.job_id).exit_code == 0


def test_a_job_is_cancelled(api: LiveApi) -> None:
    against(api, "run", "m", "--detach")
    [job] = list_jobs(api.db)
    answer = against(api, "cancel", job.job_id[:-1])
    assert answer.exit_code == 0
    assert "cancelled: cancelled by test-approve" in answer.stdout
    assert read_job(api.db, job.job_id).state is JobState.CANCELLED
    assert job.job_id in against(api, "list", "m").stdout


def test_a_manifest_is_printed_and_repeated_from_a_file_a_pipe_or_a_job(api: LiveApi, tmp_path: Path) -> None:
    against(api, "run", "m", "--detach", "--rate", "2/s")
    [first] = list_jobs(api.db)
    printed = against(api, "manifest", first.job_id).stdout
    assert json.loads(printed) == dict(first.manifest.document)
    path = tmp_path / "monday.json"
    path.write_text(json.dumps({**json.loads(printed), "policy": "p0"}))
    for named, text in ((str(path), None), ("-", path.read_text()), (first.job_id, None)):
        [running] = [job for job in list_jobs(api.db) if not job.state.over]
        end_job(api.db, running.job_id, JobState.DONE, reason="", now=api.clock())
        api.clock.at += 60
        answer = against(api, "replay", named, "--detach", text=text)
        assert answer.exit_code == 0, answer.output
        latest = list_jobs(api.db)[0]
        assert (latest.manifest.seed, latest.manifest.plan.rate) == (first.manifest.seed, 2.0)
        same = named == first.job_id
        assert ("nothing differs" if same else "policy: was p0, is p1") in answer.output


@pytest.mark.parametrize("text", ["no json", "[]", "{}"])
def test_what_is_no_manifest_is_refused(text: str, api: LiveApi) -> None:
    answer = against(api, "replay", "-", text=text)
    assert answer.exit_code == 2
    assert "manifest" in answer.output


def test_a_refusal_names_the_backends_that_serve(sqlite_database: Database, captures: Captures) -> None:
    own = ladder(shadow=False)
    with live_api(sqlite_database, captures, ladder=own, jobs=terms(ladders={"m": own})) as api:
        answer = against(api, "run", "m")
        assert answer.exit_code == 3
        assert "bf16: http://a:1 serves clients as m/bf16" in answer.output
        assert "--i-own-this-capacity" in answer.output
        assert against(api, "run", "m", "--i-own-this-capacity", "--detach", scope="admin").exit_code == 0


def test_help_teaches(api: LiveApi) -> None:
    told = against(api, "run", "--help").stdout
    for words in ("Begin a shadow job", "--i-own-this-capacity", "tiergate shadow run qwen3-32b"):
        assert words in told


def test_whoever_watches_a_job_waits_for_an_api_that_is_restarted(
    sqlite_database: Database, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.01)
    with live_api(sqlite_database, captures, ladder=ladder(), jobs=terms()) as first:
        against(first, "run", "m", "--detach")
        [job] = list_jobs(first.db)
    monkeypatch.setattr(following, "OUTAGE_SECONDS", 0.0)
    with TiergateClient(first.url, None) as client, pytest.raises(ApiUnreachable):
        following._until_over(client, job.job_id, lambda found: None, lambda problem: None)

    end_job(sqlite_database, job.job_id, JobState.DONE, reason="", now=first.clock())
    monkeypatch.setattr(following, "OUTAGE_SECONDS", PATIENCE)
    missing, over = threading.Event(), threading.Event()

    def restart() -> None:
        missing.wait(PATIENCE)
        app = create_app(first.config, sqlite_database, captures, now=first.clock)
        with serving(app, port=int(first.url.rpartition(":")[2])):
            over.wait(PATIENCE)

    restarted = threading.Thread(target=restart)
    restarted.start()
    try:
        with TiergateClient(first.url, None) as client:
            ended = following._until_over(
                client, job.job_id, lambda found: None, lambda problem: missing.set()
            )
    finally:
        over.set()
        restarted.join()
    assert ended["state"] == "done"
