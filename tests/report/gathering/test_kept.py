"""From a job in a real database to its report; kept as it was when the job was over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.decision.verdict import Decision
from service.report.changes import Change, figure_changes
from service.report.document import Report, from_json
from service.report.forms import Form, written
from service.report.gathering.kept import keep_due, report_of
from service.report.measured import Metric
from service.report.words import Language
from service.store.load.jobs import JobState
from service.store.load.reports import keep_report, read_report
from service.store.sql.database import Database, open_database
from tests.report.gathering.jobs import NOW, TIERS, job_over, pairs, run, sources
from tests.workers.load_tiers import ModelTier, tiers


@pytest.fixture
def db(sqlite_url: str) -> Iterator[Database]:
    opened = open_database(sqlite_url)
    yield opened
    opened.close()


def reported(db: Database, **more: object) -> Report:
    job = job_over(db, *run(), **more)  # type: ignore[arg-type]
    return report_of(sources(db), job.job_id, now=NOW + 90_000)


def test_a_whole_job_is_told_with_its_own_numbers(db: Database) -> None:
    pairs(db, clean=60, harm=1, benefit=1)
    report = reported(db)
    assert report.run.model == "m"
    assert (report.run.state, report.run.begun_by, report.run.remarks) == ("done", "schedule", ("a remark",))
    assert report.run.blocks_done == report.run.blocks > 30
    assert report.currency == "EUR"
    bf16, w8a8 = report.tiers
    assert bf16.baseline
    assert bf16.verdict is None
    assert w8a8.verdict is not None
    assert w8a8.verdict.decision is Decision.ACCEPT
    (found,) = w8a8.verdict.findings
    assert (found.n, found.harm, found.benefit) == (62, 1, 1)
    assert found.single_look is not None
    assert found.single_look.difference.level == 0.9
    assert 0 < found.single_look.p_value < 1
    assert found.single_look.exact_p is not None
    assert found.single_look.design_effect >= 1
    assert bf16.load is not None
    assert bf16.load.offered == 8 * 200
    ttft = bf16.load.latency(Metric.TTFT)
    assert ttft is not None
    assert 0.1 < ttft.quantiles["0.5"].value < 0.2
    assert bf16.sweep is not None
    assert bf16.sweep.best_rate == pytest.approx(10, rel=0.1)
    assert w8a8.sweep is not None
    assert w8a8.sweep.best_rate == pytest.approx(20, rel=0.1)
    assert w8a8.concurrency is not None
    assert w8a8.concurrency.largest == pytest.approx(20, abs=2)
    assert bf16.money is not None
    assert w8a8.money is not None
    assert bf16.money.unit_cost is not None
    assert w8a8.money.unit_cost is not None
    assert bf16.money.unit_cost.value / w8a8.money.unit_cost.value == pytest.approx(2, rel=0.1), (
        "twice as fast"
    )
    assert w8a8.money.net_benefit is not None
    assert w8a8.money.retry_rate is not None, "from structured output that fails"
    assert report.ledger is not None
    assert report.manifest["seed"] == 7
    assert report.earlier is None
    assert set(report.conclusion) == {"en", "zh"}


def test_a_real_job_has_every_form_in_every_language(db: Database) -> None:
    report = reported(db)
    for form in Form:
        for language in Language:
            assert "w8a8" in written(report, form, language).text


def test_it_is_kept_as_it_was_when_the_job_was_over(db: Database) -> None:
    pairs(db, clean=60)
    first = reported(db)
    pairs(db, harm=60)
    again = report_of(sources(db), first.run.id[:-1], now=NOW + 1e6)
    assert again == first
    kept = read_report(db, first.run.id)
    assert kept is not None
    assert from_json(kept) == first


def test_one_that_runs_is_told_as_far_as_it_is_and_not_kept(db: Database) -> None:
    manifest, blocks = run()
    job = job_over(db, manifest, blocks[:5], state=None)
    report = report_of(sources(db), job.job_id, now=NOW + 600)
    assert (report.run.state, report.run.ended_at) == ("running", None)
    assert report.tiers[0].load is not None
    assert report.tiers[0].load.blocks == 2
    assert report.tiers[1].money is None
    assert read_report(db, job.job_id) is None
    assert "m" in written(report, Form.HTML, Language.EN).text


def test_the_next_one_says_what_changed(db: Database) -> None:
    pairs(db, clean=60)
    first = reported(db)
    pairs(db, harm=60)
    faster = tiers(bf16=TIERS["bf16"], w8a8=ModelTier(capacity=40.0, misses=0.002))
    job = job_over(db, *run(faster), began=NOW + 700_000)
    second = report_of(sources(db), job.job_id, now=NOW + 800_000)
    assert second.earlier is not None
    assert second.earlier.id == first.run.id
    assert second.earlier.decisions == {"w8a8": Decision.ACCEPT}
    assert second.tiers[1].verdict is not None
    assert second.tiers[1].verdict.decision is Decision.REJECT
    changes = {(each.tier, each.figure): each.change for each in figure_changes(second, second.earlier)}
    assert changes["w8a8", "goodput"] is Change.BETTER
    assert changes["w8a8", "unit_cost"] is Change.BETTER
    assert changes["bf16", "goodput"] is Change.WITHIN


def test_without_a_kept_report_before_figures_are_compared_and_verdicts_are_not_known(db: Database) -> None:
    first = job_over(db, *run())
    second = job_over(db, *run(), began=NOW + 700_000)
    report = report_of(sources(db), second.job_id, now=NOW + 800_000)
    assert report.earlier is not None
    assert report.earlier.id == first.job_id
    assert report.earlier.decisions == {}
    assert report.earlier.figures["bf16"]["goodput"].value > 0


def test_a_run_that_did_not_come_to_its_end_is_no_run_before(db: Database) -> None:
    job_over(db, *run(), state=JobState.CANCELLED, reason="cancelled by ann")
    report = reported(db, began=NOW + 700_000)
    assert report.earlier is None


def test_one_that_was_cancelled_says_why(db: Database) -> None:
    report = reported(db, state=JobState.CANCELLED, reason="cancelled by ann")
    assert (report.run.state, report.run.why) == ("cancelled", "cancelled by ann")


def test_reports_of_jobs_that_are_over_are_made_once(db: Database) -> None:
    job = job_over(db, *run())
    assert job.ended_at is not None
    known = sources(db)
    assert keep_due(known, now=job.ended_at + 5) == [job.job_id]
    assert keep_due(known, now=job.ended_at + 6) == []
    running = job_over(db, run()[0], run()[1][:1], began=NOW + 700_000, state=None)
    assert keep_due(known, now=NOW + 700_100) == []
    assert read_report(db, running.job_id) is None


def test_one_that_ended_long_ago_is_made_when_it_is_asked_for(db: Database) -> None:
    job = job_over(db, *run())
    assert keep_due(sources(db), now=NOW + 10 * 86_400) == []
    assert report_of(sources(db), job.job_id, now=NOW + 10 * 86_400).run.id == job.job_id


def test_a_document_that_cannot_be_read_is_made_again(db: Database) -> None:
    job = job_over(db, *run())
    keep_report(
        db, job.job_id, model="m", ended_at=NOW, made_at=NOW, document='{"schema": "tiergate.report/0"}'
    )
    assert report_of(sources(db), job.job_id, now=NOW + 90_000).run.id == job.job_id


def test_of_a_model_that_is_gone_the_measurements_are_told_without_verdicts(db: Database) -> None:
    job = job_over(db, *run())
    report = report_of(sources(db, names=("bf16",)), job.job_id, now=NOW + 90_000)
    assert [each.verdict for each in report.tiers] == [None, None]
    assert report.tiers[1].load is not None


def test_an_unknown_job_is_an_error(db: Database) -> None:
    with pytest.raises(KeyError):
        report_of(sources(db), "nobody", now=NOW)
