"""Which load run counts, over the jobs of the house."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.approval.config import ApiConfig
from service.approval.desk import Desk
from service.dashboard.tier.load import Runs
from service.load.plan import Part
from service.store.load.jobs import JobState
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from service.store.sql.job_tables import load_blocks
from service.store.sql.report_tables import kept_reports
from tests.dashboard.house import CHAT, CODE, NOW, POLICY, VERSIONS, House, epoch_of, ladders
from tests.report.gathering.jobs import job_over, run


@pytest.fixture
def runs(house_database: Database, captures: Captures) -> Runs:
    config = ApiConfig(ladders=ladders(), policy=POLICY, epoch_of=epoch_of, evaluators=VERSIONS)
    return Runs(Desk(config=config, db=house_database, captures=captures, now=lambda: NOW))


def test_it_is_the_last_job_that_came_to_its_end_of_baseline_and_tier_alone(runs: Runs, house: House) -> None:
    found = runs.of(CHAT, "bf16", "w8a8", now=NOW)
    assert found.slo is not None
    assert found.money is not None
    assert found.slo.job == found.money.job == house.done_job
    assert [each.name for each in found.slo.report.tiers] == ["bf16", "w8a8"]
    assert found.slo.tier.name == "w8a8"
    assert found.passed_over == ()


def test_a_tier_that_no_run_measured_has_none(runs: Runs) -> None:
    found = runs.of(CHAT, "bf16", "w4a16", now=NOW)
    assert (found.slo, found.money) == (None, None)


def test_a_run_against_another_baseline_says_nothing_of_this_one(runs: Runs) -> None:
    assert runs.of(CHAT, "fp8-kv", "w8a8", now=NOW).slo is None


def test_a_job_that_runs_or_failed_does_not_count(runs: Runs) -> None:
    assert runs.of(CODE, "bf16", "w8a8", now=NOW).slo is None


def test_a_later_run_that_cannot_be_used_is_passed_over_and_named(
    runs: Runs, house: House, house_database: Database
) -> None:
    manifest, blocks = run()
    named = type(manifest).of({**manifest.document, "model": CHAT})
    late = [
        replace(each, invalid=("lag: the generator sent 2 s late",))
        for each in blocks
        if each.plan.part is Part.SLO
    ]
    later = job_over(house_database, named, late, began=NOW - 3600, state=JobState.DONE)
    found = runs.of(CHAT, "bf16", "w8a8", now=NOW)
    assert found.slo is not None
    assert found.slo.job == house.done_job
    assert found.passed_over == ((later.job_id, "lag: the generator sent 2 s late"),)


def test_a_report_is_read_once_however_often_the_page_asks(runs: Runs, house_database: Database) -> None:
    first = runs.of(CHAT, "bf16", "w8a8", now=NOW)
    with house_database.write() as connection:
        connection.execute(kept_reports.delete())
        connection.execute(load_blocks.delete())
    assert runs.of(CHAT, "bf16", "w8a8", now=NOW) == first
