"""Logging in at a real issuer through the pages, as a browser does it, and what it ends with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from service.approval.app import create_app
from service.approval.failures import MOST_FAILURES
from service.dashboard.rooms import front_of
from service.dashboard.sessions import NAME
from service.store.access.issuer_terms import ClaimRule
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.issuer import SUBJECT, TOKEN, Issuer
from tests.approval.live import MODEL, LiveApi, live_api, serving
from tests.dashboard.visiting import csrf_of, words_of
from tests.patience import PATIENCE

PUBLIC = "http://tiergate.example"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    started = Issuer()
    yield started
    started.stop()


@contextmanager
def site_over(
    db: Database, captures: Captures, issuer: Issuer, *rules: ClaimRule, **changes: Any
) -> Iterator[LiveApi]:
    terms = (issuer.login_terms(*rules, **changes),)
    front = front_of(public_url=PUBLIC)
    with live_api(db, captures, front=front, issuers=terms, loopback_reads=False) as api:
        issuer.now = api.clock
        yield api


def came_back(api: LiveApi, issuer: Issuer, browser: httpx.Client, onward: str = "/log") -> httpx.Response:
    """What the dashboard answers when the issuer has sent the browser back."""
    there = browser.get("/login/oidc", params={"issuer": issuer.url, "next": onward})
    assert there.status_code == 303, words_of(there.text)
    back = httpx.get(there.headers["location"], trust_env=False, timeout=PATIENCE).headers["location"]
    assert back.startswith(f"{PUBLIC}/login/oidc/back?")
    place = urlsplit(back)
    return browser.get(f"{place.path}?{place.query}")


def test_somebody_logs_in_at_the_issuer_and_acts_under_their_own_name(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        browser = api.client(**{"Accept": "text/html"})
        asked = browser.get("/login?next=/log")
        assert "Log in with Staff" in words_of(asked.text)
        assert f"/login/oidc?issuer={issuer.url.replace(':', '%3A').replace('/', '%2F')}" in unescape(
            asked.text
        )
        arrived = came_back(api, issuer, browser)
        assert arrived.status_code == 200, words_of(arrived.text)
        assert '<meta http-equiv="refresh" content="0;url=/log">' in arrived.text
        cookies = arrived.headers.get_list("set-cookie")
        assert any(each.startswith(f"{NAME}=") and "samesite=strict" in each.lower() for each in cookies)
        assert any(each.startswith("tiergate_errand=") and "Max-Age=0" in each for each in cookies)
        page = browser.get("/log").text
        assert f"{issuer.url} {SUBJECT} (approve)" in words_of(page)
        fields = {"csrf": csrf_of(page), "model": MODEL, "tier": "w8a8", "do": "reject", "reason": "rude"}
        shown = browser.get("/tier/act", params={"model": MODEL, "tier": "w8a8", "do": "reject"}).text
        mark = shown.partition('name="mark" value="')[2].partition('"')[0]
        assert browser.post("/tier/act", data={**fields, "mark": mark}).status_code == 303
        assert f"{issuer.url} {SUBJECT}" in words_of(browser.get("/log?action=reject").text)


def test_the_errand_lies_in_a_cookie_that_no_page_reads(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        left = api.client().get("/login/oidc", params={"issuer": issuer.url})
    cookie = left.headers["set-cookie"].lower()
    for told in ("httponly", "samesite=lax", "max-age=600", "path=/"):
        assert told in cookie


def test_a_link_that_another_browser_brings_back_logs_nobody_in(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        mine = api.client()
        there = mine.get("/login/oidc", params={"issuer": issuer.url}).headers["location"]
        back = urlsplit(httpx.get(there, trust_env=False, timeout=PATIENCE).headers["location"])
        for victim in (api.client(), api.client()):
            answer = victim.get(f"{back.path}?{back.query}")
            assert answer.status_code == 400
            assert NAME not in victim.cookies
            assert "log in again" in words_of(answer.text)
            victim.get("/login/oidc", params={"issuer": issuer.url})
            assert victim.get(f"{back.path}?{back.query}").status_code == 400, "of its own errand"
    assert TOKEN not in issuer.asked


def test_whoever_brings_many_codes_that_are_none_is_held_up_and_the_issuer_is_spared(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        browser = api.client()
        for number in range(MOST_FAILURES + 1):
            there = browser.get("/login/oidc", params={"issuer": issuer.url}).headers["location"]
            state = dict(parse_qsl(urlsplit(there).query))["state"]
            asked = issuer.asked.count(TOKEN)
            answer = browser.get("/login/oidc/back", params={"state": state, "code": f"guess {number}"})
            assert answer.status_code == (403 if number < MOST_FAILURES else 429)
            assert issuer.asked.count(TOKEN) - asked == (1 if number < MOST_FAILURES else 0)


def test_what_came_back_once_is_worth_nothing_again(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        browser = api.client()
        there = browser.get("/login/oidc", params={"issuer": issuer.url}).headers["location"]
        errand = browser.cookies["tiergate_errand"]
        back = urlsplit(httpx.get(there, trust_env=False, timeout=PATIENCE).headers["location"])
        assert browser.get(f"{back.path}?{back.query}").status_code == 200
        assert browser.get(f"{back.path}?{back.query}").status_code == 400, "its errand is over"
        thief = api.client(Cookie=f"tiergate_errand={errand}")
        assert thief.get(f"{back.path}?{back.query}").status_code == 403, "the code was good once"
        assert NAME not in thief.cookies


def test_it_leads_on_to_pages_of_ours_alone(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        arrived = came_back(api, issuer, api.client(), "//evil.example")
    assert 'content="0;url=/"' in arrived.text
    assert "evil.example" not in arrived.text


def test_who_is_worth_nothing_here_is_told_so(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    rule = ClaimRule(claim="groups", equals="leads", scope="admin")
    with site_over(sqlite_database, captures, issuer, rule) as api:
        browser = api.client()
        answer = came_back(api, issuer, browser)
        assert answer.status_code == 403
        assert "its claims are worth nothing here" in words_of(answer.text)
        assert NAME not in browser.cookies
        issuer.said = {"groups": ["staff", "leads"]}
        assert came_back(api, issuer, browser).status_code == 200
        assert "(admin)" in words_of(browser.get("/log").text)


def test_a_session_ends_where_the_configuration_takes_the_issuer_for_something_else(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        browser = api.client()
        came_back(api, issuer, browser)
        cookie = browser.cookies[NAME]
    for rules, seen in (((), 200), ((ClaimRule(claim="sub", equals="ann", scope="read"),), 303)):
        config = replace(api.config, issuers=(issuer.login_terms(*rules),))
        app = create_app(config, sqlite_database, captures, front=front_of(public_url=PUBLIC), now=api.clock)
        with serving(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE) as again:
            shown = {"Cookie": f"{NAME}={cookie}", "Accept": "text/html"}
            assert again.get("/log", headers=shown).status_code == seen


def test_an_issuer_that_is_down_is_said_on_the_log_in_page(
    sqlite_database: Database, captures: Captures, issuer: Issuer
) -> None:
    with site_over(sqlite_database, captures, issuer) as api:
        issuer.down = True
        answer = api.client().get("/login/oidc", params={"issuer": issuer.url})
        assert answer.status_code == 503
        assert "try again later, or log in with a token" in words_of(answer.text)
        assert api.client().get("/login/oidc?issuer=https://evil.example").status_code == 404
