"""`/jobs/beside`: runs of one model side by side, with what their limits show and what was different."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from service.report.forms import Form, Written, written
from service.report.words import Language
from service.store.load.jobs import Cause, JobState, begin_job, end_job
from service.store.load.manifest import Manifest
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi
from tests.dashboard.house import House, browser
from tests.dashboard.visiting import logged_in, words_of
from tests.dashboard.working import working_site
from tests.report.sample import sample, week_before
from tests.store.load.test_manifest import document

PATH = "/jobs/beside"


def beside(client: httpx.Client, *runs: str, **asked: str) -> httpx.Response:
    return client.get(PATH, params={"runs": ",".join(runs), **asked})


@pytest.fixture
def compared(sqlite_database: Database, captures: Captures) -> Any:
    """A site with two jobs of `m`, reported as the sample and the week before it; their ids."""
    made = {}
    ids = []
    for number, report in enumerate((week_before(sample()), sample())):
        at = 1_700_000_000.0 + 3600 * number
        job = begin_job(
            sqlite_database,
            manifest=Manifest.of(document()),
            cause=Cause.SCHEDULE,
            actor="schedule",
            now=at,
        )
        end_job(sqlite_database, job.job_id, JobState.DONE, reason="", now=at + 600)
        made[job.job_id] = replace(report, run=replace(report.run, id=job.job_id))
        ids.append(job.job_id)

    def write(job: str, form: str, language: str, now: float) -> Written:
        return written(made[job], Form(form), Language(language))

    with working_site(sqlite_database, captures, reports=write) as api:
        yield api, ids


def test_figures_stand_side_by_side_with_what_their_limits_show(compared: tuple[LiveApi, list[str]]) -> None:
    api, (before, now) = compared
    page = beside(logged_in(api, "read"), now, before).text
    text = words_of(page)
    figures = text[text.index("In brackets: limits.") :]
    assert figures.index(before) < figures.index(now), "in the order of their beginnings"
    assert "w8a8 · goodput at the best rate" in figures
    assert '<span class="badge good">better</span>' in page
    assert "within the limits of both" in figures
    assert "w4a16-fp8kv · SLO pass rate" in figures
    assert "new" in figures


def test_verdicts_of_then_and_now_are_told(compared: tuple[LiveApi, list[str]]) -> None:
    api, runs = compared
    text = words_of(beside(logged_in(api, "read"), *runs).text)
    assert "w8a8 undecided accept" in text
    assert "w4a16-fp8kv – reject" in text


def test_what_was_different_is_told_by_place(compared: tuple[LiveApi, list[str]]) -> None:
    api, (before, now) = compared
    text = words_of(beside(logged_in(api, "read"), before, now).text)
    assert f"{now} against {before}: 2 places" in text
    assert "policy.digest 9f00 a3c9" in text


def test_the_figure_that_is_drawn_is_chosen_and_downloaded(compared: tuple[LiveApi, list[str]]) -> None:
    api, runs = compared
    client = logged_in(api, "read")
    page = beside(client, *runs, figure="goodput").text
    assert "Over the runs: goodput at the best rate" in page
    told = beside(client, *runs, figure="goodput", download="runs")
    found = {(row["run"], row["tier"]): row for row in csv.DictReader(io.StringIO(told.text))}
    assert (runs[0], "w4a16-fp8kv") not in found, "it was not measured then"
    row = found[runs[1], "w8a8"]
    assert (row["figure"], row["unit"]) == ("goodput", "tok/s")
    told_as = [round(float(row[name])) for name in ("value", "lower", "upper")]
    assert told_as == [2190, 2146, 2234]
    assert "2,190 [2,146, 2,234] tok/s" in page
    assert beside(client, *runs, figure="speed").status_code == 422


def test_ticked_boxes_lead_to_a_page_with_an_address_of_its_own(seen_site: LiveApi, house: House) -> None:
    client = browser(seen_site, "read")
    answer = client.get(PATH, params=[("run", house.done_job), ("run", house.failed_job)])
    assert answer.status_code == 303
    onward = httpx.URL(answer.headers["location"])
    assert onward.params["runs"] == f"{house.done_job},{house.failed_job}"
    page = client.get(str(onward))
    assert page.status_code == 200
    assert "Runs side by side" in words_of(page.text)


@pytest.mark.parametrize("runs", [(), ("a",), ("a", "a"), tuple("abcdefg")])
def test_too_few_and_too_many_are_told_how_to_choose(runs: tuple[str, ...], seen_site: LiveApi) -> None:
    answer = beside(browser(seen_site, "read"), *runs)
    assert answer.status_code == 422
    assert "2 to 6 can stand side by side" in words_of(answer.text)


def test_runs_of_several_models_are_not_compared(seen_site: LiveApi, house: House) -> None:
    answer = beside(browser(seen_site, "read"), house.done_job, house.running_job)
    assert answer.status_code == 409
    assert "compare runs of one model" in words_of(answer.text)
    hidden = beside(browser(seen_site, "chat"), house.done_job, house.running_job)
    assert hidden.status_code == 404


def test_both_languages_show_the_same_runs(compared: tuple[LiveApi, list[str]]) -> None:
    api, runs = compared
    text = words_of(beside(logged_in(api, "read"), *runs, lang="zh").text)
    assert "并排对比运行" in text
    assert "变好" in text
    assert json.dumps(runs[0])[1:-1] in text
