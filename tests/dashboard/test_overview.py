"""The overview page: what it says, and what it can never do."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

import pytest

from service.dashboard.overview import STYLE_PATH, Look, moment, overview, points
from service.fleet import Backend, Ladder, Tier
from service.store.captures import Captures
from service.store.database import Database
from service.store.standing import Question, read_account, read_standing
from tests.approval.live import ENOUGH, MODEL, TIERS, WIDE, LiveApi, add_pairs, live_api

NOW = 1_800_000_000.0


def ladder_of(model: str = MODEL, tiers: tuple[str, ...] = TIERS) -> Ladder:
    backend = (Backend(url="http://127.0.0.1:9"),)
    return Ladder(
        model=model,
        tiers=tuple(Tier(name=name, model="m", backends=backend, shadow=backend) for name in tiers),
    )


@contextmanager
def page_over(db: Database, captures: Captures, *ladders: Ladder, **config: object) -> Iterator[LiveApi]:
    question = Question(policy=WIDE, epoch_of=lambda model, tier: f"epoch-{tier}")

    def look() -> Look:
        standings = [read_standing(db, ladder, question, now=NOW) for ladder in ladders]
        return Look(at=NOW, standings=standings, ledger=read_account(db, captures, now=NOW))

    with live_api(db, captures, pages=overview(look), public_pages=(STYLE_PATH,), **config) as api:  # type: ignore[arg-type]
        yield api


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))


def test_it_shows_every_ladder_with_its_verdicts_findings_and_gates(
    database: Database, captures: Captures
) -> None:
    add_pairs(database, "w8a8", epoch="epoch-w8a8", clean=ENOUGH)
    add_pairs(database, "w4a16", epoch="epoch-w4a16", harm=ENOUGH)
    with page_over(database, captures, ladder_of(), ladder_of("another")) as api:
        answer = api.client().get("/")
    text = words(answer.text)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for told in (MODEL, "another", "bf16 baseline", "w8a8 accept", "w4a16 reject", "serves 100 %"):
        assert told in text
    assert "slo: not asked" in text
    assert "quality: failed" in text
    assert f"structured_output {ENOUGH} 0 0 +0.00 pp" in text
    assert "It does not add up. 80 captures are settled or waiting, more than the 0 shipped" in text
    assert "2027-01-15 08:00:00 UTC" in text


def test_it_is_made_anew_for_every_visit(sqlite_database: Database, captures: Captures) -> None:
    with page_over(sqlite_database, captures, ladder_of()) as api:
        client = api.client()
        before = words(client.get("/").text)
        assert "w8a8 shadowing" in before
        assert "It adds up." in before
        api.accept("w8a8")
        assert "w8a8 accept" in words(client.get("/").text)


def test_names_and_reasons_are_text_and_never_markup(sqlite_database: Database, captures: Captures) -> None:
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}"
    with page_over(sqlite_database, captures, ladder_of(hostile, ("<b>base</b>", "a&b"))) as api:
        html = api.client().get("/").text
    assert "<script" not in html
    assert "<img" not in html
    assert "<b>base</b>" not in html
    assert "{{ 7 * 7 }}" in html
    assert hostile in unescape(html)


def test_it_runs_nothing_loads_nothing_and_cannot_be_framed(
    sqlite_database: Database, captures: Captures
) -> None:
    with page_over(sqlite_database, captures, ladder_of()) as api:
        answer, style = api.client().get("/"), api.client().get(STYLE_PATH)
    assert not re.search(r"<(script|iframe|img|form|object|style)|\son\w+=|\sstyle=|https?://", answer.text)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert style.headers["content-type"].startswith("text/css")
    assert not re.search(r"@import|url\(|https?:", style.text)


def test_elsewhere_a_browser_is_asked_for_a_token(sqlite_database: Database, captures: Captures) -> None:
    with page_over(sqlite_database, captures, ladder_of(), loopback_reads=False) as api:
        refused = api.client(Accept="text/html,*/*").get("/")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic ")
        basic = base64.b64encode(f"me:{api.secrets['read']}".encode()).decode()
        assert api.client(Authorization=f"Basic {basic}").get("/").status_code == 200
        assert api.client().get(STYLE_PATH).status_code == 200, "the style tells nothing"


def test_a_rebound_name_does_not_see_it(sqlite_database: Database, captures: Captures) -> None:
    with page_over(sqlite_database, captures, ladder_of()) as api:
        assert api.client(Host="evil.example").get("/").status_code == 403


def test_without_models_it_says_so(sqlite_database: Database, captures: Captures) -> None:
    with page_over(sqlite_database, captures) as api:
        assert "No models are configured." in words(api.client().get("/").text)


@pytest.mark.parametrize(
    ("share", "text"), [(None, "–"), (0.0, "+0.00 pp"), (-0.0123, "-1.23 pp"), (1.0, "+100.00 pp")]
)
def test_shares_are_percentage_points(share: float | None, text: str) -> None:
    assert points(share) == text


def test_moments_are_utc() -> None:
    assert moment(0) == "1970-01-01 00:00:00 UTC"
