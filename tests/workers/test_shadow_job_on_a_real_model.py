"""A whole shadow job against the demo's own model under llama.cpp, in windows of half a second.

How fast the model is depends on the machine, so nothing here does: what is checked is that everything is
measured, or said not to be for want of time, that it holds together, and that the report says it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.demo.llama_server import command
from service.demo.models import ModelFile, cache_dir, prepare
from service.demo.published import ModelUnavailable
from service.demo.tiers import KvType, Scheme
from service.load.figures import BlockFigures
from service.load.plan import Part
from service.report.document import Report
from service.report.forms import Form, written
from service.report.gathering.composing import Sources
from service.report.gathering.kept import report_of
from service.report.words import Language
from service.settings.questions import question_of
from service.store.kept.corpus import CorpusPlan, Drawn, Place, seal_request, take_in
from service.store.load.jobs import JobState
from service.store.load.load_blocks import read_blocks
from service.store.sql.database import Database
from tests.conftest import ValkeyServer
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.workers.load_walk import CORPUS, begin_by_hand, run_all, settings_of
from tests.workers.walk import KEYRING, MODEL
from workers.load_room import open_load_room

pytestmark = pytest.mark.acceptance

TINY: dict[str, Any] = {
    "warm_up": "1s",
    "settle": "100ms",
    "window": "4s",
    "blocks": 8,
    "rate": "2/s",
    "arrivals": "constant",
    "budget": {"time": "90s"},
}
TOKENS = 3


@pytest.fixture(scope="module")
def models() -> dict[Scheme, ModelFile]:
    """Fetched and requantised as for `tiergate demo`, and kept where that keeps them."""
    try:
        return dict(prepare([Scheme.F16, Scheme.Q8_0], cache_dir(os.environ), lambda text: None))
    except ModelUnavailable as error:
        pytest.skip(str(error))


@contextmanager
def serving(model: ModelFile) -> Iterator[str]:
    """URL of a llama.cpp server of that model, once it is healthy."""
    port = free_port()
    process = Leashed(command(model.path, port=port, name=MODEL, kv=KvType.F16), stdout=subprocess.DEVNULL)
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
        while not _healthy(url):
            assert process.poll() is None
            assert time.monotonic() < deadline, "llama.cpp does not start"
            time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5.0, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def fill_with_questions(db: Database) -> None:
    """Short ones, answered in a few tokens: what a request costs is what every block waits for."""
    place = Place(model=MODEL, name=CORPUS, stratum="short", tenant="t")
    asked = [f"Name a {thing}." for thing in ("river", "city", "bird", "tree", "fruit", "colour", "tool")]
    drawn = []
    for number, question in enumerate(asked):
        told = {"messages": [{"role": "user", "content": question}], "max_tokens": TOKENS, "temperature": 0}
        body = json.dumps({"model": MODEL, **told}).encode()
        digest = f"{number:064x}"
        blob = seal_request(
            place,
            digest=digest,
            path="/v1/chat/completions",
            body=body,
            conversation=None,
            at=0.0,
            keyring=KEYRING,
        )
        drawn.append(Drawn(place=place, digest=digest, original=digest, rank=number / len(asked), blob=blob))
    take_in(db, CorpusPlan(), drawn)


@pytest.mark.timeout(1800)  # a minute, and many on a busy machine; a job waits for what it measures
def test_every_part_is_measured_and_the_report_says_what_was(
    models: dict[Scheme, ModelFile], tmp_path: Path, db: Database, valkey: ValkeyServer, sqlite_url: str
) -> None:
    fill_with_questions(db)
    with ExitStack() as stack:
        baseline, candidate = (
            stack.enter_context(serving(models[scheme])) for scheme in (Scheme.F16, Scheme.Q8_0)
        )
        settings = settings_of(
            tmp_path,
            redis_url=valkey.url,
            database_url=sqlite_url,
            tiers=[("f16", baseline, 60.0), ("q8_0", candidate, 60.0)],
            plan=TINY,
            slo={"ttft": "2s", "tpot": "300ms"},
            policy={"load_runs": {"slo_margin": "45pp"}},
        )
        room = open_load_room(settings, worker="load@real", stopping=lambda: False, lease_seconds=60.0)
        stack.callback(room.close)
        job = begin_by_hand(settings, db, time.time())
        ended = run_all(room, job)
    assert (ended.state, ended.reason) == (JobState.DONE, "")
    findings = ended.findings
    assert findings is not None
    assert {"opening", "slo", "best", "cost", "concurrency", "gates"} <= set(findings)
    gates = {(each["gate"], each["tier"]): each for each in findings["gates"]}
    assert set(gates) == {("slo", "f16"), ("slo", "q8_0"), ("money", "q8_0")}
    assert all(each["reason"] for each in gates.values())
    assert not any("not credible" in each["reason"] for each in gates.values()), "it is one tokenizer"
    figures = [BlockFigures.of(each.figures or {}) for each in read_blocks(db, job.job_id, columns=True)]
    measured = {each.plan.part for each in figures}
    assert Part.SLO in measured
    # Beyond the budget a busy machine measures no more; a best rate that was not reached has no cost.
    told = " ".join(ended.remarks)
    cut = told.partition("not measured to the end: ")[2]
    for part in set(Part) - measured:
        assert part in cut or (part is Part.COST and "cost of" in told), told
    assert any(each.busy_before for each in figures) == ("at work for others" in told)
    assert sum(each.throughput for each in figures) > 0
    for each in figures:
        assert sum(each.columns.tokens) <= TOKENS * each.offered
        assert each.identity_error < 1e-6
        assert each.without_usage == each.contradicted == 0, "llama.cpp tells its usage, token by token"
    looks = [sample.load for each in figures for sample in each.engine]
    assert any(load is not None and load.running is not None for load in looks), "its metrics were read"
    question = question_of(settings, db)
    sources = Sources(db=db, captures=None, ladders=settings.ladders, question=question)
    check(report_of(sources, job.job_id, now=time.time()), blocks=len(figures))


def check(report: Report, *, blocks: int) -> None:
    """It tells of both tiers, with the charts, in both languages."""
    assert (report.run.state, report.run.blocks_done) == ("done", blocks)
    assert [tier.name for tier in report.tiers] == ["f16", "q8_0"]
    for tier in report.tiers:
        assert tier.load is not None
        assert tier.load.arrivals == "constant"
    for language in Language:
        page = written(report, Form.HTML, language).text
        for chart in ("latency-ttft", "latency-tpot", "goodput", "concurrency", "ledger"):
            assert f'id="chart-{chart}"' in page
        assert 'id="chart-engine-' in page, "what llama.cpp told of itself meanwhile"
        assert "q8_0" in written(report, Form.MARKDOWN, language).text
