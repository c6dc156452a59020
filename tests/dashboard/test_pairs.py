"""The list of pairs that differ: by pages, under filters, as a file, and no captured text in it."""

from __future__ import annotations

import csv
import re
from html import unescape

import pytest
from sqlalchemy import update

from service.dashboard.pairs import SIZE
from service.dashboard.visit import address
from service.store.sql.database import Database
from service.store.sql.schema import pairs
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, RECALL, REFUSAL, browser
from tests.dashboard.looking import HOSTILE, links, listing
from tests.dashboard.visiting import words_of


def test_pairs_that_differ_are_listed_by_pages(seen_site: LiveApi) -> None:
    client = browser(seen_site)
    first, second = listing(client), listing(client, page=2)
    assert "Pairs: 85." in words_of(first)
    assert (len(links(first)), len(links(second))) == (SIZE, 85 - SIZE)
    assert "Part 2 of 2" in words_of(second)
    assert "expected JSON, found prose" in words_of(first)
    assert not set(links(first)) & set(links(second))


def test_filters_narrow_the_list_and_say_how_many_each_word_leaves(seen_site: LiveApi) -> None:
    client = browser(seen_site)
    page = listing(client, criterion=REFUSAL)
    assert "Pairs: 8." in words_of(page)
    assert "refuse (8)" in words_of(page)
    assert "candidate failed (6)" in words_of(page)
    page = listing(client, criterion=REFUSAL, way="benefit")
    assert len(links(page)) == 2
    assert all("criterion=refusal" in each and "way=benefit" in each for each in links(page))
    assert "Pairs: 22." in words_of(listing(client, **{"class": "missing"}))
    assert "No pair is left under this filter" in words_of(
        listing(client, criterion=RECALL, **{"class": "refuse"})
    )


@pytest.mark.parametrize("word", ["not\u00adjson", "not\u200bjson", "\u202enosj", '<not & "json">'])
def test_a_class_that_is_not_all_seen_is_filtered_by_as_it_is(
    house_site: LiveApi, house_database: Database, word: str
) -> None:
    with house_database.write() as connection:
        connection.execute(
            update(pairs).where(pairs.c.candidate_label == "not_json").values(candidate_label=word)
        )
    client = browser(house_site)
    offered = re.findall(r'<option value="([^"]*)"', listing(client, way="harm"))
    assert word in [unescape(each) for each in offered]
    assert "Pairs: 52." in words_of(listing(client, way="harm", **{"class": word}))


def test_where_nothing_differs_the_page_says_what_to_do(seen_site: LiveApi) -> None:
    answer = browser(seen_site).get(address("/pairs", model=CODE, tier="w4a16"))
    assert "No pair differs in the present epoch" in words_of(answer.text)
    assert links(answer.text) == []


def test_without_a_model_or_a_tier_the_first_ones_are_shown(seen_site: LiveApi) -> None:
    page = browser(seen_site).get("/pairs").text
    assert f"{CHAT}, fp8-kv" in words_of(page)


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ({"model": "none"}, 404, "no model is called"),
        ({"tier": "none"}, 404, "has no tier"),
        ({"tier": "bf16"}, 409, "is the baseline"),
        ({"criterion": "none"}, 404, "no evaluator is called"),
        ({"page": "0"}, 422, "no whole number"),
        ({"way": "sideways"}, 422, "is none of"),
    ],
)
def test_a_query_that_cannot_be_is_refused_with_what_is_wrong(
    seen_site: LiveApi, query: dict[str, str], status: int, told: str
) -> None:
    answer = browser(seen_site).get(address("/pairs", **{"model": CHAT, "tier": "w4a16", **query}))
    assert answer.status_code == status
    assert told in words_of(answer.text)


def test_the_list_is_downloaded_whole_and_no_cell_is_a_formula(
    house_site: LiveApi, house_database: Database
) -> None:

    with house_database.write() as connection:
        connection.execute(update(pairs).values(candidate_reason="=HYPERLINK(1)"))
    answer = browser(house_site).get(address("/pairs", model=CHAT, tier="w4a16", download="pairs"))
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    assert len(rows) == 85
    assert rows[0]["tier"] == "w4a16"
    assert {row["candidate_reason"] for row in rows} == {"'=HYPERLINK(1)"}
    assert "lakes" not in answer.text


def test_labels_and_reasons_that_mean_harm_are_text(house_site: LiveApi, house_database: Database) -> None:

    with house_database.write() as connection:
        connection.execute(
            update(pairs).values(candidate_reason=HOSTILE.replace("\x00", "").replace("\ud83d", ""))
        )
    page = listing(browser(house_site), way="harm")
    assert "<script>alert" not in page
    assert "<svg onload" not in page
    assert "U+202E" in page
    assert "\u202e" not in page
    assert "\x1b" not in page
