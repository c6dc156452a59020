"""`/ledger`: an account that adds up, its losses, its coverage, and who may see which model."""

from __future__ import annotations

import csv
import io
import re

from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, UNCOVERED, browser
from tests.dashboard.visiting import dashboard_over, words_of


def test_it_tells_where_the_requests_of_all_models_went(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/ledger")
    assert page.status_code == 200
    text = words_of(page.text)
    assert "Every request of all models" in text
    assert "The account adds up." in text
    assert 'id="ledger-wide-title"' in page.text
    assert 'id="ledger-narrow-title"' in page.text
    assert f"{CHAT}" in text
    assert f"{CODE}" in text


def test_losses_stand_out_in_words_with_what_to_do(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/ledger", params={"model": CHAT})
    text = words_of(page.text)
    assert "Lost: 9." in text
    assert "Dropped: the proxy's buffer was full 4 · 3.10 % of the requests sampled" in text
    assert "Expired before a worker took it up 3 · 2.40 % of the captures shipped" in text
    assert "Lost from Redis 2 · 1.60 % of the captures shipped" in text
    assert "raise mirror.buffer" in text
    assert page.text.count('<li class="card bad">') == 3


def test_a_stratum_that_no_evidence_covers_is_named_as_a_gap(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/ledger", params={"model": CHAT})
    text = words_of(page.text)
    assert "w8a8 gaps: 1" in text
    assert (
        f"{UNCOVERED} : 0.00 % of the evidence (0 requests), 10.32 % of the traffic; 5.16 % would do." in text
    )


def test_coverage_of_several_models_is_chosen_first(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/ledger")
    assert "Choose a model to see what its evidence covers:" in words_of(page.text)
    assert f'href="/ledger?model={CHAT.replace("/", "%2F")}#coverage"' in page.text


def test_every_number_of_a_chart_can_be_downloaded(seen_site: LiveApi) -> None:
    client = browser(seen_site, "read")
    flow = client.get("/ledger", params={"model": CHAT, "download": "ledger"})
    assert flow.headers["content-type"] == "text/csv; charset=utf-8"
    rows = dict(list(csv.reader(io.StringIO(flow.text)))[1:])
    assert rows["dropped: buffer full"] == "4"
    assert rows["expired"] == "3"
    coverage = client.get("/ledger", params={"model": CHAT, "download": "coverage"})
    assert UNCOVERED in [row[0] for row in csv.reader(io.StringIO(coverage.text))]
    assert client.get("/ledger", params={"model": CHAT, "download": "nothing"}).status_code == 404


def test_a_token_for_one_model_sees_that_one_alone(seen_site: LiveApi) -> None:
    client = browser(seen_site, "chat")
    text = words_of(client.get("/ledger").text)
    assert f"Every request of {CHAT}" in text
    assert CODE not in text
    assert client.get("/ledger", params={"model": CODE}).status_code == 403


def test_an_unknown_model_is_told_with_the_nearest_name(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/ledger", params={"model": "acme/chat"})
    assert page.status_code == 404
    assert f"did you mean '{CHAT}'?" in words_of(page.text)


def test_it_is_told_in_chinese_with_the_same_numbers(seen_site: LiveApi) -> None:
    client = browser(seen_site, "read")
    english = client.get("/ledger", params={"model": CHAT, "lang": "en"}).text
    chinese = client.get("/ledger", params={"model": CHAT, "lang": "zh"}).text
    assert '<html lang="zh-Hans">' in chinese
    assert "账目平衡" in chinese
    numbers = re.compile(r"\d+\.\d\d %")
    assert sorted(numbers.findall(words_of(english))) == sorted(numbers.findall(words_of(chinese)))


def test_where_nothing_was_seen_it_says_what_to_do(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        text = words_of(api.client(Accept="text/html").get("/ledger").text)
    assert "No request has been seen yet. Send the clients' requests through the proxy" in text
    assert "Nothing was lost." in text
    assert "No stratum of the traffic is known yet." in text
    assert "No pair has been due yet." in text


def test_it_runs_nothing_and_has_no_style_of_its_own(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/ledger", params={"model": CHAT}).text
    assert not re.search(r"<script(?! src=)|\son\w+=|\sstyle=|<style", page)
