"""What every page is answered with, and what it takes to change something."""

from __future__ import annotations

import re

import httpx
import pytest
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute

from service.approval.access import Scope
from service.approval.desk import Desk
from service.approval.errors import Problem
from service.approval.front import Door, Front
from service.charts.chart import chart
from service.charts.waterfall import Step, waterfall
from service.dashboard.render import POLICY
from service.dashboard.rooms import ROOMS
from service.dashboard.site import Site, dashboard
from service.dashboard.visit import Form, Visit
from service.store.redis.captures import Captures
from service.store.sql.database import Database, StoreUnusable
from tests.approval.live import LiveApi, live_api
from tests.dashboard.house import CHAT, CODE, browser
from tests.dashboard.visiting import csrf_of, dashboard_over, logged_in, words_of


def trial_routes(site: Site) -> list[BaseRoute]:
    """Pages that do what tests need."""

    def broken(visit: Visit) -> Response:
        raise RuntimeError("of our own")

    def down(visit: Visit) -> Response:
        raise StoreUnusable("the disk is full")

    def refused(visit: Visit) -> Response:
        raise Problem(409, "baseline", "<b>not</b> that", hint="do this", reasons=("one", "two"))

    def change(visit: Visit, form: Form) -> Response:
        site.require(visit, Scope.APPROVE, "changing it")
        return PlainTextResponse(f"{visit.caller.name} says {form.needed('what')}")

    return [
        site.get("/trial/broken", broken),
        site.get("/trial/down", down),
        site.get("/trial/refused", refused),
        site.post("/trial/change", change),
    ]


def front(desk: Desk, door: Door) -> Front:
    return dashboard(desk, door, rooms=(*ROOMS, trial_routes))


def test_every_answer_forbids_script_of_others_framing_and_keeping(seen_site: LiveApi) -> None:
    answer = browser(seen_site).get("/")
    assert answer.headers["content-security-policy"] == POLICY
    for told in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
        assert told in POLICY
    assert "unsafe" not in POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_has_script_or_style_of_its_own(seen_site: LiveApi) -> None:
    page = browser(seen_site, "admin").get("/").text
    assert re.findall(r"<script(?![^>]* src=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", page) == []
    assert re.findall(r"(?:src|href)=\"(?:https?:)?//", page) == []


def test_assets_are_kept_by_browsers_until_they_change(seen_site: LiveApi) -> None:
    visitor = browser(seen_site)
    for address in re.findall(r'(?:href|src)="(/assets/[^"]+)"', visitor.get("/login").text):
        answer = visitor.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith(("text/css", "text/javascript", "image/svg"))
    assert visitor.get("/assets/site.py").status_code == 404


@pytest.mark.parametrize("version", ["", "?v=0123456789abcdef", "?v="])
def test_under_the_address_of_another_version_an_asset_is_not_kept(seen_site: LiveApi, version: str) -> None:
    """While processes are replaced one by one, a page of the new one may ask the old one for its style."""
    answer = browser(seen_site).get(f"/assets/site.css{version}")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../site.py",
        "/assets/%2e%2e/site.py",
        "/assets/..%2fsite.py",
        "/assets//etc/passwd",
        "/assets/%00",
    ],
)
def test_nothing_but_assets_is_below_their_path(seen_site: LiveApi, path: str) -> None:
    answer = seen_site.raw(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 404 ")


def test_a_page_that_asks_for_itself_is_told_when_nothing_changed(seen_site: LiveApi) -> None:
    visitor = browser(seen_site)
    first = visitor.get("/", headers={"X-Tiergate-Live": "1"})
    again = visitor.get("/", headers={"X-Tiergate-Live": "1", "If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    loaded = visitor.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert loaded.status_code == 200, "whoever loads it sees it"


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/trial/broken", 500, "The API met an error of its own"),
        ("/trial/down", 503, "The database does not answer"),
        ("/trial/refused", 409, "<b>not</b> that What to do: do this one two"),
    ],
)
def test_what_goes_wrong_is_a_page_that_says_what_to_do(
    path: str, status: int, told: str, sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures, front=front) as api:
        answer = api.client().get(path)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"] == POLICY
    assert told in words_of(answer.text)
    assert "the disk is full" not in answer.text
    assert "<b>" not in answer.text


def test_a_form_of_the_own_session_is_taken_and_no_other(
    sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures, front=front) as api:
        visitor, other = logged_in(api, "approve"), logged_in(api, "approve")
        csrf = csrf_of(visitor.get("/").text)

        def sent(client: httpx.Client, csrf: str, **headers: str) -> httpx.Response:
            return client.post("/trial/change", data={"csrf": csrf, "what": "so"}, headers=headers)

        assert sent(visitor, csrf).text == "test-approve says so"
        assert sent(visitor, csrf, Origin=api.url).status_code == 200
        for wrong in ("", "0" * 64, csrf_of(other.get("/").text)):
            assert sent(visitor, wrong).status_code == 403
        assert sent(visitor, csrf, Origin="https://evil.example").status_code == 403
        assert sent(visitor, csrf, Origin="null").status_code == 403
        assert sent(api.client(), csrf).status_code == 303, "to the log-in"
        asked = visitor.post("/trial/change", json={"csrf": csrf, "what": "so"})
        assert asked.status_code == 415
        assert visitor.post("/trial/change", data={"csrf": csrf}).status_code == 422


def test_a_scope_that_is_missing_is_told(sqlite_database: Database, captures: Captures) -> None:
    with live_api(sqlite_database, captures, front=front) as api:
        visitor = logged_in(api, "read")
        csrf = csrf_of(visitor.get("/").text)
        answer = visitor.post("/trial/change", data={"csrf": csrf, "what": "so"})
    assert answer.status_code == 403
    assert "changing it needs scope <code>approve</code>; the token" in answer.text
    assert "test-read" in words_of(answer.text)


def test_a_session_is_good_at_pages_alone(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        visitor = logged_in(api, "admin")
        assert visitor.get("/").status_code == 200
        assert visitor.get("/api/v1/models").status_code == 401
        change = "/api/v1/models/org/model/rollback"
        assert visitor.post(change, json={}).status_code == 401
        form = visitor.post(change, data={"csrf": csrf_of(visitor.get("/").text)})
        assert form.status_code == 401, "and forms at pages alone"
        program = api.client("admin").post(change, data={"a": "b"})
        assert program.status_code == 415


def test_a_name_that_is_not_ours_is_no_way_in(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        visitor = logged_in(api, "approve")
        assert visitor.get("/", headers={"Host": "evil.example"}).status_code == 403


def test_a_token_for_one_model_sees_that_one(seen_site: LiveApi) -> None:
    page = browser(seen_site, "chat").get("/").text
    assert CHAT in page
    assert CODE not in page


def test_the_language_is_asked_for_then_remembered_and_else_the_browsers(seen_site: LiveApi) -> None:
    visitor = browser(seen_site)
    assert '<html lang="en">' in visitor.get("/").text
    accepts = {"Accept-Language": "fr;q=0.9, zh-CN;q=0.8, en;q=0.5"}
    assert '<html lang="zh-Hans">' in visitor.get("/", headers=accepts).text
    assert '<html lang="zh-Hans">' in visitor.get("/?lang=zh").text
    assert '<html lang="zh-Hans">' in visitor.get("/").text
    assert '<html lang="en">' in visitor.get("/?lang=en", headers=accepts).text
    assert '<html lang="en">' in visitor.get("/?lang=tlh").text


def test_a_notice_is_one_of_ours(seen_site: LiveApi) -> None:
    visitor = browser(seen_site)
    assert "You are logged in." in words_of(visitor.get("/?note=logged_in").text)
    assert "nonsense" not in re.sub(
        r"<head>.*?</head>", "", visitor.get("/?note=nonsense").text.split("<main")[1]
    )


@pytest.mark.parametrize(("led_by", "told"), [("same-origin", True), ("cross-site", False), ("none", False)])
def test_no_link_of_somebody_else_says_that_something_was_done(
    seen_site: LiveApi, led_by: str, told: bool
) -> None:
    page = browser(seen_site).get("/?note=act_approve", headers={"Sec-Fetch-Site": led_by})
    assert ("Approved." in words_of(page.text)) is told


def test_a_chart_is_downloaded_with_nothing_that_a_spreadsheet_computes(
    sqlite_database: Database, captures: Captures
) -> None:
    drawn = chart(
        waterfall([Step(label="=cmd()", numbers="+1.00 EUR", amount=1.0)], x_name="EUR"),
        name="money",
        title="Money",
        text="Money",
        head=("what", "amount"),
        rows=(("=cmd()", "+1.00 EUR"), ("@evil", "-0.50 pp"), ("-1e-07", "-5+cmd()")),
    )

    def routes(site: Site) -> list[BaseRoute]:
        return [site.get("/trial", lambda visit: site.page(visit, "login.html", charts=[drawn]))]

    def made(desk: Desk, door: Door) -> Front:
        return dashboard(desk, door, rooms=(routes,))

    with live_api(sqlite_database, captures, front=made) as api:
        answer = api.client().get("/trial?download=money")
        missing = api.client().get("/trial?download=other")
    assert answer.text == "what,amount\r\n'=cmd(),+1.00 EUR\r\n'@evil,-0.50 pp\r\n-1e-07,'-5+cmd()\r\n"
    assert answer.headers["content-disposition"] == 'attachment; filename="money.csv"'
    assert missing.status_code == 404


@pytest.mark.parametrize(
    ("path", "current", "how"),
    [
        ("/", "/", "page"),
        ("/tier?model=acme%2Fchat-32b&tier=w8a8", "/", "true"),
        ("/tier/act?model=acme%2Fchat-32b&tier=w8a8&do=approve", "/", "true"),
        ("/jobs", "/jobs", "page"),
        ("/jobs/begin?model=acme%2Fchat-32b", "/jobs", "true"),
        ("/log/row?seq=1", "/log", "true"),
        ("/ledger", "/ledger", "page"),
    ],
)
def test_the_navigation_says_where_one_is(seen_site: LiveApi, path: str, current: str, how: str) -> None:
    page = browser(seen_site, "admin").get(path).text
    header = page.partition("<header")[2].partition("</header>")[0]
    marked = re.findall(r'<a href="([^"]+)" aria-current="(\w+)"', header)
    assert marked == [(current, how)]
