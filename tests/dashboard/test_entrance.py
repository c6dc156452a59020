"""Logging in and out, over a real server, as browsers do it."""

from __future__ import annotations

import httpx
import pytest

from service.approval.app import create_app
from service.approval.config import LOOPBACK_NAMES
from service.approval.failures import MOST_FAILURES
from service.dashboard.entrance import own_path
from service.dashboard.rooms import front_of
from service.dashboard.sessions import IDLE_SECONDS, NAME, RENEWED_SECONDS, SECURE_NAME
from service.store.access import tokens
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi, live_api, serving
from tests.dashboard.visiting import csrf_of, dashboard_over, logged_in, words_of
from tests.patience import PATIENCE


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("/tier?model=a%2Fb&tier=w8a8", "/tier?model=a%2Fb&tier=w8a8"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/\tx", "/"),
        ("", "/"),
    ],
)
def test_a_log_in_leads_on_to_pages_of_ours_alone(text: str, leads: str) -> None:
    assert own_path(text) == leads


def test_a_token_is_exchanged_for_a_session(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        browser = api.client(**{"Accept": "text/html"})
        answer = browser.get("/ledger?model=org%2Fmodel")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/login?next=%2Fledger%3Fmodel%3Dorg%252Fmodel"
        asked = browser.get(answer.headers["location"])
        assert 'value="/ledger?model=org%2Fmodel"' in asked.text
        entered = browser.post(
            "/login", data={"token": api.secrets["read"], "next": "/ledger?model=org%2Fmodel"}
        )
        assert (entered.status_code, entered.headers["location"]) == (303, "/ledger?model=org%2Fmodel")
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith(f"{NAME}=")
        for told in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
            assert told.lower() in cookie.lower()
        assert "Secure" not in cookie
        assert "test-read (read)" in words_of(browser.get("/").text)


def test_by_https_the_cookie_is_for_https_and_this_host_alone(
    sqlite_database: Database, captures: Captures
) -> None:
    front = front_of(public_url="https://tiergate.example")
    with live_api(sqlite_database, captures, front=front) as api:
        entered = api.client().post("/login", data={"token": api.secrets["read"]})
    assert entered.headers["set-cookie"].startswith(f"{SECURE_NAME}=")
    assert "Secure" in entered.headers["set-cookie"]


def test_a_wrong_token_is_told_and_after_ten_none_is_looked_up(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        browser = api.client(**{"Accept": "text/html"})
        wrong = browser.post("/login", data={"token": "tg_wrong_secret", "next": "/jobs"})
        assert wrong.status_code == 401
        assert "the token is unknown, revoked or expired" in words_of(wrong.text)
        assert 'value="/jobs"' in wrong.text
        assert "tg_wrong_secret" not in wrong.text
        assert "set-cookie" not in wrong.headers
        for _ in range(MOST_FAILURES - 1):
            browser.post("/login", data={"token": "tg_wrong_secret"})
        held = browser.post("/login", data={"token": api.secrets["approve"]})
        assert held.status_code == 429
        assert held.headers["retry-after"]
        api.clock.at += 61
        assert browser.post("/login", data={"token": api.secrets["approve"]}).status_code == 303


@pytest.mark.parametrize("token", ["", "two words", "ein Schlüssel", "x" * 9000])
def test_what_cannot_be_a_token_is_told_so(token: str, sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        answer = api.client().post("/login", data={"token": token})
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/html")


def test_the_former_secret_of_a_rotated_token_opens_no_session(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        tokens.rotate(api.db, "test-read", now=api.clock(), grace_seconds=1000)
        answer = api.client().post("/login", data={"token": api.secrets["read"]})
    assert answer.status_code == 401
    assert "log in with the new one" in answer.text


def test_whoever_loses_the_token_loses_the_session(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        browser = logged_in(api, "approve")
        assert browser.get("/").status_code == 200
        tokens.revoke(api.db, "test-approve", now=api.clock())
        assert browser.get("/").headers["location"] == "/login?next=%2F"
        polled = browser.get("/", headers={"X-Tiergate-Live": "1", "Accept": "*/*"})
        assert polled.status_code == 401
        assert "www-authenticate" not in polled.headers, "a browser would ask for a password"


def test_logging_out_ends_the_session_for_whoever_has_its_cookie(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        browser = logged_in(api, "approve")
        cookie = browser.cookies[NAME]
        left = browser.post("/logout", data={"csrf": csrf_of(browser.get("/").text)})
        assert left.headers["location"] == "/login?note=logged_out"
        assert "You are logged out." in words_of(browser.get("/login?note=logged_out").text)
        assert NAME not in browser.cookies
        copied = api.client(**{"Accept": "text/html", "Cookie": f"{NAME}={cookie}"})
        assert copied.get("/").status_code == 303


def test_whoever_logs_in_anew_ends_the_session_of_before(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        browser = logged_in(api, "read")
        before = browser.cookies[NAME]
        wrong = browser.post("/login", data={"token": "tg_wrong_secret"})
        assert (wrong.status_code, browser.get("/").status_code) == (401, 200)
        assert browser.post("/login", data={"token": api.secrets["approve"]}).status_code == 303
        assert "test-approve (approve)" in words_of(browser.get("/").text)
        copied = api.client(**{"Accept": "text/html", "Cookie": f"{NAME}={before}"})
        assert copied.get("/").status_code == 303


def test_a_form_of_a_session_that_has_ended_leads_by_the_log_in_to_the_page_it_was_sent_from(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        browser = api.client(**{"Accept": "text/html"})
        for path, referer, leads in (
            (
                "/adjudicate/undo",
                f"{api.url}/adjudicate?evaluator=refusal&note=labelled",
                "/adjudicate?evaluator=refusal",
            ),
            ("/logout", f"{api.url}/tier?model=a%2Fb&tier=c", "/tier?model=a%2Fb&tier=c"),
            ("/logout", f"{api.url}/adjudicate/undo", "/"),
            ("/logout", f"{api.url}//evil.example", "/"),
            ("/logout", "https://evil.example/tier", "/"),
            ("/logout", "http://[", "/"),
            ("/logout", "", "/"),
        ):
            sent = browser.post(path, data={"csrf": "x"}, headers={"Referer": referer})
            assert sent.status_code == 303
            assert dict(httpx.URL(sent.headers["location"]).params) == {"next": leads}, referer
            assert browser.get(leads).status_code in (200, 404)


@pytest.mark.parametrize(
    ("led_by", "asked"), [("cross-site", False), ("same-site", False), ("none", True), ("same-origin", True)]
)
def test_whoever_comes_by_a_link_elsewhere_goes_on_from_a_page_of_ours_before_a_token_is_asked_for(
    seen_site: LiveApi, led_by: str, asked: bool
) -> None:
    browser = seen_site.client(**{"Accept": "text/html", "Sec-Fetch-Site": led_by})
    page = browser.get("/login", params={"next": "/tier?model=a&tier=b"}).text
    assert ('name="token"' in page) is asked
    assert ('class="button" href="/tier?model=a&amp;tier=b"' in page) is not asked
    assert 'name="token"' in browser.get("/login").text
    led_away = browser.get("/login", params={"next": "//evil.example"}).text
    assert "evil.example" not in led_away.partition("<main")[2]


def test_by_https_a_form_of_our_name_without_tls_is_foreign(
    sqlite_database: Database, captures: Captures
) -> None:
    public = "https://tiergate.example"
    hosts = (*LOOPBACK_NAMES, "tiergate.example")
    front = front_of(public_url=public)
    with live_api(sqlite_database, captures, front=front, public_url=public, allowed_hosts=hosts) as api:
        for origin, status in ((public, 303), ("http://tiergate.example", 403)):
            sent = api.client(Host="tiergate.example", Origin=origin)
            assert sent.post("/login", data={"token": api.secrets["read"]}).status_code == status


def test_visits_keep_a_session_going_and_a_page_that_asks_for_itself_does_not(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        browser = logged_in(api, "read")
        api.clock.at += RENEWED_SECONDS + 1
        assert "set-cookie" not in browser.get("/", headers={"X-Tiergate-Live": "1"}).headers
        assert "set-cookie" in browser.get("/").headers
        api.clock.at += IDLE_SECONDS - 1
        assert browser.get("/", headers={"X-Tiergate-Live": "1"}).status_code == 200
        api.clock.at += 1
        assert browser.get("/").status_code == 303


def test_another_process_or_the_same_after_a_restart_knows_the_session(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        cookie = logged_in(api, "approve").cookies[NAME]
        again = create_app(api.config, sqlite_database, captures, front=front_of(), now=api.clock)
        with serving(again) as url:
            shown = {"Cookie": f"{NAME}={cookie}"}
            page = httpx.get(f"{url}/", headers=shown, trust_env=False, timeout=PATIENCE)
    assert "test-approve (approve)" in words_of(page.text)


def test_a_visitor_with_a_bearer_token_reads_and_sends_no_form(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures) as api:
        program = api.client("admin")
        assert program.get("/").status_code == 200
        refused = program.post("/logout", data={"csrf": ""})
    assert refused.status_code == 401


def test_nobody_reads_from_elsewhere_without_logging_in(
    sqlite_database: Database, captures: Captures
) -> None:
    def is_open(api: LiveApi, path: str) -> bool:
        return api.client().get(path).status_code == 200

    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        assert is_open(api, "/login")
        assert is_open(api, "/assets/site.css")
        for path in ("/", "/ledger", "/jobs"):
            assert api.client().get(path).status_code == 401, path
