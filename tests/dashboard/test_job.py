"""`/job`: how far it is, its blocks, what it found, its manifest; hostile words in it stay words."""

from __future__ import annotations

import csv
import io
import json
import re

from service.store.load.jobs import Cause, JobState, begin_job, end_job, read_job
from service.store.load.manifest import Manifest
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, HOSTILE, House, browser
from tests.dashboard.visiting import words_of
from tests.store.load.test_manifest import document


def test_a_job_that_runs_shows_its_parts_and_can_be_cancelled(seen_site: LiveApi, house: House) -> None:
    page = browser(seen_site, "approve").get("/job", params={"id": house.running_job}).text
    text = words_of(page)
    assert "SLO under equal load" in text
    assert "to come" in text
    assert f'href="/job/cancel?id={house.running_job}"' in page
    assert "Read the report, as far as the job is" in text
    for part in ("state", "findings", "blocks"):
        assert f'data-live="{part}"' in page


def test_a_job_that_is_over_shows_what_it_found_and_can_be_repeated(seen_site: LiveApi, house: House) -> None:
    page = browser(seen_site, "approve").get("/job", params={"id": house.done_job}).text
    text = words_of(page)
    assert "Best rate of w8a8:" in text
    assert f'href="/jobs/begin?repeats={house.done_job}"' in page
    assert "/job/cancel" not in page
    assert "a remark" in text
    table = page[page.rindex('<table class="broad stacked">') :]
    blocks = len(re.findall(r'<th scope="row">\d+</th>', table))
    assert blocks == read_job(seen_site.db, house.done_job).blocks_done


def test_why_a_job_failed_is_told(seen_site: LiveApi, house: House) -> None:
    text = words_of(browser(seen_site, "read").get("/job", params={"id": house.failed_job}).text)
    assert "failed block 4 ended its workers twice" in text
    assert "not reached" in text


def test_the_numbers_of_its_blocks_can_be_downloaded(seen_site: LiveApi, house: House) -> None:
    answer = browser(seen_site, "read").get("/job", params={"id": house.done_job, "download": "blocks"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == read_job(seen_site.db, house.done_job).blocks_done
    assert float(rows[0]["requests_per_s"]) > 0
    for row in rows:
        assert int(row["met_slo"]) <= int(row["offered"])
        assert (row["counts"], float(row["ttft_p95_ms"] or 1) > 0) in {("yes", True), ("no", True)}


def test_its_manifest_can_be_saved(seen_site: LiveApi, house: House) -> None:
    answer = browser(seen_site, "read").get("/job", params={"id": house.done_job, "manifest": "1"})
    saved = f'attachment; filename="tiergate-{house.done_job}.manifest.json"'
    assert answer.headers["content-disposition"] == saved
    told = read_job(seen_site.db, house.done_job).manifest
    assert Manifest.of(json.loads(answer.text)).digest == told.digest


def test_an_unknown_job_and_one_of_another_model_are_404(seen_site: LiveApi, house: House) -> None:
    client = browser(seen_site, "chat")
    assert client.get("/job", params={"id": "nobody"}).status_code == 404
    hidden = client.get("/job", params={"id": house.running_job})
    assert hidden.status_code == 404
    assert "acme/code-7b" not in hidden.text
    assert client.get("/job").status_code == 422
    assert client.get("/job", params={"id": house.done_job}).status_code == 200


def test_words_of_others_are_shown_and_never_markup(house_site: LiveApi) -> None:
    told = {**document(), "model": CHAT}
    tiers = [{**each, "tier": f"{each['tier']} {HOSTILE}"} for each in told["tiers"]]
    job = begin_job(
        house_site.db,
        manifest=Manifest.of({**told, "tiers": tiers}),
        cause=Cause.REQUEST,
        actor=HOSTILE.replace("\x00", ""),
        now=house_site.clock(),
    )
    reason = HOSTILE.replace("\x00", "")
    end_job(house_site.db, job.job_id, JobState.ABORTED, reason=reason, now=house_site.clock())
    client = browser(house_site, "read")
    for path in (f"/job?id={job.job_id}", "/jobs"):
        page = client.get(path).text
        assert "<script>alert" not in page
        assert "<svg onload" not in page
        assert not re.search("[\x1b\u202e\u200b\x00]", page)
        assert r"\u202e" in page
