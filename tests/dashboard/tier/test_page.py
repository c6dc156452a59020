"""The page of one tier, over a house whose tiers are in every state."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import replace

import pytest

from service.store.decided.approvals import current_approval, put_approval
from service.store.sql.database import Database
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, DAY, NOW, House, browser
from tests.dashboard.visiting import words_of

MOST_BYTES = 300_000
ALL = ("verdict", "quality", "progress", "narrowing", "strata", "money", "load", "gates", "approval")


def page(api: LiveApi, tier: str, model: str = CHAT, **more: str) -> str:
    answer = browser(api).get("/tier", params={"model": model, "tier": tier, **more})
    assert answer.status_code == 200, answer.text
    return answer.text


def charts_of(html: str) -> list[str]:
    return re.findall(r'<figure class="chart" id="chart-([\w-]+)"', html)


def test_it_says_in_one_sentence_what_may_be_done_and_why(seen_site: LiveApi) -> None:
    words = words_of(page(seen_site, "w4a16"))
    assert "w4a16 must not replace the baseline: structured output fails more often, +40.83 [" in words
    assert "harm beyond the margin of 0.2 shown" in words
    assert "w8a8 may replace the baseline" in words_of(page(seen_site, "w8a8"))


def test_it_shows_everything_that_a_verdict_rests_on(seen_site: LiveApi, house: House) -> None:
    html = page(seen_site, "w8a8")
    assert re.findall(r'<section data-live="(\w+)"', html) == list(ALL)
    assert charts_of(html) == [
        "forest",
        *(f"narrowing-{name}" for name in ("structured-output", "long-context-recall", "refusal")),
        "strata",
        "money",
        *(f"latency-{name}" for name in ("ttft", "tpot", "e2e")),
    ]
    words = words_of(html)
    for told in ("net benefit per request", "Who met the SLO", "noise share", "pairs/day", house.done_job):
        assert told in words, told
    assert len(html.encode()) < MOST_BYTES


def test_limits_over_time_have_their_looks_and_decisions(seen_site: LiveApi) -> None:
    html = page(seen_site, "fp8-kv", download="narrowing-structured-output")
    rows = list(csv.reader(io.StringIO(html)))
    assert rows[0] == ["when", "what", "pairs", "difference", "decision"]
    assert [row[1] for row in rows[1:]].count("look") > 3
    assert any(row[1].startswith("approved, by ops") for row in rows)
    drawn = page(seen_site, "fp8-kv")
    assert re.search(r'class="c-event-name"[^>]*>(<title>[^<]*</title>)?approved', drawn)


def test_every_chart_has_its_words_its_table_and_its_file(seen_site: LiveApi) -> None:
    html = page(seen_site, "w8a8")
    for name in charts_of(html):
        figure = html.partition(f'id="chart-{name}"')[2].partition("</figure>")[0]
        assert len(re.findall("<svg", figure)) == 2, name
        assert re.search(r"<figcaption>[^<]+</figcaption>", figure), name
        assert "<th scope=" in figure, name
        answer = browser(seen_site).get("/tier", params={"model": CHAT, "tier": "w8a8", "download": name})
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert len(list(csv.reader(io.StringIO(answer.text)))) > 1, name


def test_in_chinese_it_says_the_same(seen_site: LiveApi) -> None:
    words = words_of(page(seen_site, "w4a16", lang="zh"))
    assert "w4a16 不得替换基线" in words
    assert "净收益" in words
    assert "Pairs so far" not in words


def test_of_a_tier_without_pairs_it_teaches_the_next_steps(seen_site: LiveApi) -> None:
    words = words_of(page(seen_site, "w4a16", CODE))
    for told in (
        "No pair has been counted yet.",
        "run a worker for the queue replay",
        "Nothing has been looked at yet.",
        "No stratum holds a counted pair.",
        f"tiergate shadow run {CODE}",
        "No load run counts yet",
        "The tier is not approved.",
        "Nothing has been decided about this tier.",
    ):
        assert told in words, told


def test_an_approval_has_its_artifact_and_its_end(seen_site: LiveApi) -> None:
    assert "approved by ops" in words_of(page(seen_site, "fp8-kv"))
    assert "in 30 d 0 h" in words_of(page(seen_site, "fp8-kv"))
    expired = words_of(page(seen_site, "fp8-kv", CODE))
    assert "approval expired by ops" in expired
    assert "1 d 0 h ago" in expired


def test_of_the_baseline_it_says_what_it_is_for(seen_site: LiveApi) -> None:
    words = words_of(page(seen_site, "bf16"))
    assert "Every other tier is measured against it" in words
    assert "80 % of clients" in words


def test_every_rung_is_a_step_away(seen_site: LiveApi) -> None:
    html = page(seen_site, "w8a8")
    for tier in ("bf16", "fp8-kv", "w8a8", "w4a16"):
        assert f'href="/tier?model=acme%2Fchat-32b&amp;tier={tier}"' in html
    assert len(re.findall('aria-current="page"', html)) >= 1


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({"model": CHAT, "tier": "w8a"}, 404, "did you mean 'w8a8'?"),
        ({"model": "acme/chat", "tier": "w8a8"}, 404, "no model is called"),
        ({"model": CHAT}, 422, "tier: missing"),
        ({}, 422, "model: missing"),
    ],
)
def test_what_there_is_not_is_said_with_what_to_do(
    seen_site: LiveApi, asked: dict[str, str], status: int, told: str
) -> None:
    answer = browser(seen_site).get("/tier", params=asked)
    assert answer.status_code == status
    assert told in words_of(answer.text)


def test_a_token_for_other_models_does_not_see_it(seen_site: LiveApi) -> None:
    client = browser(seen_site, "chat")
    assert client.get("/tier", params={"model": CHAT, "tier": "w8a8"}).status_code == 200
    refused = client.get("/tier", params={"model": CODE, "tier": "w8a8"})
    assert refused.status_code == 403
    assert "w4a16" not in refused.text


def test_a_page_that_asks_again_is_told_when_nothing_changed(house_site: LiveApi) -> None:
    client, asked = browser(house_site), {"model": CHAT, "tier": "w8a8"}
    first = client.get("/tier", params=asked)
    again = {"X-Tiergate-Live": "1", "If-None-Match": first.headers["etag"]}
    house_site.clock.at += 5
    assert client.get("/tier", params=asked, headers=again).status_code == 304
    house_site.clock.at += 7 * DAY
    assert client.get("/tier", params=asked, headers=again).status_code == 200


def test_names_and_reasons_are_text_and_never_markup(house_site: LiveApi, house_database: Database) -> None:
    hostile = "<script>alert(1)</script>\u202e{{ 7 * 7 }}"
    known = current_approval(house_database, CHAT, "fp8-kv")
    assert known is not None
    put_approval(house_database, replace(known, override=True, reason=hostile, actor=hostile, at=NOW))
    html = page(house_site, "fp8-kv")
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e{{ 7 * 7 }}" in html


def test_ids_are_unique_and_there_is_one_first_heading(seen_site: LiveApi) -> None:
    html = page(seen_site, "w8a8")
    ids = Counter(re.findall(r'\sid="([^"]+)"', html))
    assert [name for name, times in ids.items() if times > 1] == []
    assert len(re.findall("<h1", html)) == 1
    for named in re.findall(r'aria-labelledby="([^"]+)"', html):
        assert set(named.split()) <= set(ids), named


def test_numbers_in_a_file_are_numbers_and_not_guarded_as_formulas(seen_site: LiveApi) -> None:
    text = page(seen_site, "w8a8", download="forest")
    assert "+0.83 [\u22125.29, +8.14] pp (93.9 %)" in text
    assert "'" not in text
