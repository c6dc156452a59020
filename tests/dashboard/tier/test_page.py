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


def table_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_limits_over_time_have_their_looks_and_decisions(seen_site: LiveApi) -> None:
    rows = table_of(page(seen_site, "fp8-kv", download="narrowing-structured-output"))
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    looks = [row for row in rows if row["what"] == "look"]
    assert len(looks) > 3
    for row in looks:
        assert float(row["lower_pp"]) <= float(row["difference_pp"]) <= float(row["upper_pp"])
    assert ("approve", "ops", "") in [(row["what"], row["actor"], row["pairs"]) for row in rows]
    drawn = page(seen_site, "fp8-kv")
    assert re.search(r'class="c-event-name"[^>]*>(<title>[^<]*</title>)?approved', drawn)
    assert "approved, by ops" in words_of(drawn)


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


def test_a_file_has_plain_numbers_and_their_units_in_the_names_of_its_columns(seen_site: LiveApi) -> None:
    text = page(seen_site, "w8a8", download="forest")
    assert "'" not in text, "no number is guarded as a formula"
    assert text == page(seen_site, "w8a8", download="forest", lang="zh")
    found = {row["criterion"]: row for row in table_of(text)}
    row = found["structured_output"]
    assert float(row["difference_pp"]) == pytest.approx(100 / 120)
    assert (row["pairs"], row["only_tier_failed"], row["only_baseline_failed"]) == ("120", "2", "1")
    assert float(row["lower_pp"]) == pytest.approx(-5.29, abs=0.005)
    assert float(row["upper_pp"]) == pytest.approx(8.14, abs=0.005)
    assert (float(row["margin_pp"]), row["both_ways"]) == (20.0, "no")
    assert found["refusal"]["both_ways"] == "yes"


def test_the_file_of_a_distribution_has_every_point_of_its_lines(seen_site: LiveApi) -> None:
    rows = table_of(page(seen_site, "w8a8", download="latency-ttft"))
    for tier in ("bf16", "w8a8"):
        line = [(float(row["share_done"]), float(row["ms"])) for row in rows if row["tier"] == tier]
        assert len(line) > 20
        assert line == sorted(line)
    limited = [row for row in rows if row["upper_ms"]]
    assert limited
    assert all(float(row["lower_ms"]) <= float(row["ms"]) <= float(row["upper_ms"]) for row in limited)


def test_strata_and_money_can_be_taken_along_as_numbers(seen_site: LiveApi) -> None:
    strata = table_of(page(seen_site, "w4a16", download="strata"))
    assert {row["arm"] for row in strata} == {"candidate", "control"}
    worst = strata[0]["stratum"]
    assert words_of(page(seen_site, "w4a16")).count(worst) >= 2
    money = table_of(page(seen_site, "w8a8", download="money"))
    *parts, net = (float(row["amount"]) for row in money)
    assert sum(parts) == pytest.approx(net)
    assert float(money[-1]["lower"]) <= net <= float(money[-1]["upper"])


def test_the_way_back_leads_to_the_ladder_of_the_model(seen_site: LiveApi) -> None:
    html, overview = page(seen_site, "w8a8", CODE), browser(seen_site).get("/").text
    assert '<a href="/#model-2">Overview</a>' in html
    assert f'<h2 id="model-2">{CODE}</h2>' in overview
