"""The first page: what needs a person, then the ladders."""

from __future__ import annotations

import re

from service.approval.config import Schedule
from service.dashboard.overview import MOST_OPEN
from service.fleet import Backend, Ladder, Tier
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import ENOUGH, MODEL, WIDE, LiveApi, add_pairs
from tests.dashboard.house import CHAT, CODE, House, browser, house_api
from tests.dashboard.visiting import dashboard_over, words_of


def items_of(page: str) -> list[str]:
    """What waits for people, in the page's order."""
    waiting = re.search(r'<ul class="waiting">(.*?)</ul>', page, re.DOTALL)
    return [] if waiting is None else [words_of(item) for item in waiting[1].split("</li>") if item.strip()]


def rungs_of(page: str, model: str) -> list[str]:
    """Each rung of a model in words, from the top of its ladder."""
    section = next(part for part in page.split('<section class="ladder"') if f">{model}</h2>" in part)
    rungs = re.search(r'<ol class="rungs".*?</ol>', section, re.DOTALL)
    assert rungs is not None
    return [words_of(item) for item in rungs[0].split("<h3>")[1:]]


def test_what_needs_a_person_comes_first_the_worst_before_the_rest(seen_site: LiveApi) -> None:
    items = items_of(browser(seen_site, "approve").get("/").text)
    told = " | ".join(items)
    for wanted in (
        "Messages to ops-chat that could not be delivered: 1.",
        f"w8a8 of {CODE} does harm and serves 10 % of clients.",
        f"The approval of fp8-kv of {CODE} expired on ",
        f"captures of {CHAT} were lost",
        f"pairs of {CHAT} wait for a label.",
        f"w8a8 of {CHAT} could serve: the verdict is accept, and nobody has approved it.",
    ):
        assert wanted in told
    harms, undelivered = told.index("does harm and serves"), told.index("could not be delivered")
    assert harms < undelivered < told.index("expired on") < told.index("could serve")


def test_each_leads_to_where_it_is_done(seen_site: LiveApi) -> None:
    page = browser(seen_site, "approve").get("/").text
    assert 'href="/tier?model=acme%2Fcode-7b&amp;tier=w8a8"' in page
    assert 'href="/adjudicate?model=acme%2Fchat-32b"' in page
    assert 'href="/ledger?model=acme%2Fchat-32b"' in page


def test_a_ladder_shows_its_top_first_with_state_share_and_evidence(seen_site: LiveApi) -> None:
    page = browser(seen_site).get("/").text
    w4a16, w8a8, fp8, bf16 = rungs_of(page, CHAT)
    assert w4a16.startswith("w4a16 reject reject:")
    assert w8a8.startswith("w8a8 accept ")
    assert fp8.startswith("fp8-kv approved verdict: accept ")
    assert "serves 20 % of clients" in fp8
    assert "Approved by ops," in fp8
    assert bf16.startswith("bf16 baseline serves 80 % of clients The baseline:")
    assert "120 pairs of its scarcest criterion" in w8a8
    assert "the latest 1 h 12 min ago" in w8a8
    assert "1 of 15 strata of the traffic is not covered" in w8a8
    none = rungs_of(page, CODE)[0]
    assert none.startswith("w4a16 shadowing")
    assert "No pair has come yet" in none


def test_a_job_that_runs_and_the_next_one_are_told(
    house_database: Database, captures: Captures, house: House
) -> None:
    soon = Schedule(cron="0 3 * * 1", timezone="Europe/Helsinki", next_after=lambda now: now + 3600.0)
    with house_api(house_database, captures, schedule=soon) as api:
        page = browser(api).get("/").text
    assert f'href="/job?id={house.running_job}"' in page
    assert "A shadow job runs: " in words_of(page)
    assert "Next shadow job: 2023-11-14 23:13:20 UTC (2023-11-15 01:13, Europe/Helsinki)" in words_of(page)


def test_a_token_for_one_model_is_told_of_nothing_else(seen_site: LiveApi) -> None:
    items = items_of(browser(seen_site, "chat").get("/").text)
    assert items
    assert not any(CODE in item or "ops-chat" in item for item in items)


def test_it_is_all_there_in_chinese(seen_site: LiveApi) -> None:
    text = words_of(browser(seen_site, "approve").get("/?lang=zh").text)
    for told in ("需要人处理的事", "造成损害", "基线：其他层级都与它比较。", "批准已过期"):
        assert told in text


def test_without_models_it_says_the_next_step(sqlite_database: Database, captures: Captures) -> None:
    with house_api(sqlite_database, captures, ladders={}) as api:
        text = words_of(browser(api).get("/").text)
    assert "No models are configured. Name one under models in tiergate.yaml" in text
    assert "Nothing waits for anybody." in text


def test_it_is_made_anew_for_every_visit_on_either_database(database: Database, captures: Captures) -> None:
    with dashboard_over(database, captures) as api:
        assert "w8a8 shadowing" in words_of(api.client().get("/").text)
        api.accept("w8a8")
        assert "w8a8 accept" in words_of(api.client().get("/").text)


def test_names_and_reasons_are_text_and_never_markup(sqlite_database: Database, captures: Captures) -> None:
    backend = (Backend(url="http://127.0.0.1:9"),)
    hostile = Ladder(
        model='<script>alert("m")</script>\u202e',
        tiers=tuple(
            Tier(name=name, model="m", backends=backend, shadow=backend)
            for name in ("bf16", '"><img src=x onerror=alert(1)>')
        ),
    )
    add_pairs(sqlite_database, hostile.tiers[1].name, epoch="e", harm=ENOUGH, model=hostile.model)
    with dashboard_over(sqlite_database, captures, ladder=hostile) as api:
        page = api.client().get("/").text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert '<script>alert("m")</script>\\u202e' in words_of(page)


def test_of_many_models_each_is_a_step_away_and_what_waits_does_not_hide_the_ladders(
    sqlite_database: Database, captures: Captures
) -> None:
    backend = (Backend(url="http://127.0.0.1:9"),)
    many = {
        f"org/model-{number}": Ladder(
            model=f"org/model-{number}",
            tiers=tuple(
                Tier(name=name, model="m", backends=backend, shadow=backend) for name in ("bf16", "w8a8")
            ),
        )
        for number in range(MOST_OPEN + 3)
    }
    for number, model in enumerate(many):
        add_pairs(sqlite_database, "w8a8", epoch="epoch of w8a8", clean=ENOUGH + number, model=model)
    with house_api(sqlite_database, captures, ladders=many, policy=WIDE) as api:
        page = browser(api).get("/").text
    for place, model in enumerate(many, 1):
        assert f'<a href="#model-{place}">{model}</a>' in page
        assert f'<h2 id="model-{place}">{model}</h2>' in page
    assert page.count("could serve: the verdict is accept") == len(many)
    shown, _, folded = page.partition("<details><summary>3 more</summary>")
    assert shown.count("could serve") == MOST_OPEN
    assert folded.count("could serve") == 3


def test_one_of_something_is_not_told_as_many(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        add_pairs(sqlite_database, "w8a8", epoch=api.config.epoch_of(MODEL, "w8a8"), clean=1)
        text = words_of(api.client().get("/").text)
    assert "1 pair of its scarcest criterion" in text
