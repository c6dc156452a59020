"""Pages move with what they show, say when they do not, and hear again."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.approval.app import create_app
from service.dashboard.rooms import front_of
from service.dashboard.visit import LIVE
from service.store.access import tokens
from tests.approval.live import LiveApi, serving
from tests.browser.conftest import OpenPage
from tests.browser.places import PLACES, Built, tier
from tests.dashboard.house import CHAT
from tests.patience import PATIENCE

A_TURN = 5_000
"""Milliseconds after which a page asks for itself."""
A_LOOK = 20
"""Milliseconds in which the browser tells what it does."""


@dataclass
class InFront:
    """Somebody between browser and API, who answers in our place what pages ask for by themselves."""

    app: ASGIApp
    instead: Response | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http" and LIVE in Headers(scope=scope)
        await (self.instead if asked and self.instead is not None else self.app)(scope, receive, send)


@contextmanager
def behind(api: LiveApi, **changes: Any) -> Iterator[tuple[str, InFront]]:
    """The API anew, configured otherwise, with somebody in front of it."""
    config = replace(api.config, **changes)
    front = InFront(create_app(config, api.db, api.captures, front=front_of(), now=api.clock))
    with serving(front) as url:
        yield url, front


def polls(page: Page) -> list[Request]:
    """What the page asks for by itself from now on."""
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request) if LIVE in request.headers else None)
    return asked


def until(page: Page, met: Callable[[], bool]) -> None:
    """Let the page's clock go on, a turn at a time, until that is so: nobody waits for its timers.

    It stands still while an answer is awaited, which the page gives up after a while by the same clock.
    """
    asked: list[Request] = []
    settled: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.on("requestfinished", lambda request: settled.append(request))
    page.on("requestfailed", lambda request: settled.append(request))
    deadline = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < deadline, page.locator("body").inner_text()[:2000]
        if all(each in settled for each in asked):
            page.clock.run_for(A_TURN)
        page.wait_for_timeout(A_LOOK)


def test_what_happens_is_seen_without_a_reload(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="read")
    page = seen.page
    page.clock.install()
    page.goto(tier("w8a8"))
    page.evaluate("window.stays = true")
    with own.api.client("approve") as pipeline:
        answer = pipeline.put(f"/api/v1/models/{CHAT}/tiers/w8a8/approval", json={})
        assert answer.status_code < 300, answer.text
    until(page, lambda: "test-approve" in page.locator("main").inner_text())
    revoke = page.locator(".barred button", has_text="Revoke the approval")
    expect(revoke).to_have_count(1)  # what may be decided moves as well
    assert page.evaluate("window.stays") is True
    assert seen.complaints == []


def test_an_act_that_cannot_be_done_any_more_hands_the_focus_to_no_other(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="approve")
    page = seen.page
    page.clock.install()
    page.goto(tier("w8a8"))
    page.locator("a[href*='do=approve']").focus()
    with own.api.client("approve") as pipeline:
        pipeline.put(f"/api/v1/models/{CHAT}/tiers/w8a8/approval", json={})
    until(page, lambda: page.locator("a[href*='do=revoke']").count() == 1)
    assert page.evaluate("document.activeElement.matches('[data-live=offers]')")
    page.locator("a[href*='do=revoke']").focus()
    with own.api.client("approve") as pipeline:
        pipeline.post(f"/api/v1/models/{CHAT}/rollback", json={"to": "bf16"})
    until(page, lambda: page.locator("a[href*='do=roll_back']").count() == 0)
    assert "do=revoke" in page.evaluate("document.activeElement.href"), "it stands elsewhere, and keeps it"
    assert seen.complaints == []


def test_a_page_survives_a_restart_of_the_api_and_says_that_it_is_stale(look: OpenPage, own: Built) -> None:
    api = own.api
    with closing(socket.socket()) as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]

    def app() -> object:
        return create_app(api.config, api.db, api.captures, front=front_of(), now=api.clock)

    with serving(app(), port=port) as url:
        seen = look(api)
        page = seen.page
        page.clock.install()
        page.goto(f"{url}{PLACES['overview'](own)}")
        page.evaluate("window.stays = true")
        stale = page.locator("#stale")
        expect(stale).to_be_hidden()
    until(page, stale.is_visible)
    with serving(app(), port=port):
        until(page, stale.is_hidden)
    assert page.evaluate("window.stays") is True
    unexpected = [each for each in seen.complaints if "ERR_CONNECTION_REFUSED" not in each]
    assert unexpected == []


def test_what_somebody_in_front_answers_in_our_place_is_no_news(look: OpenPage, own: Built) -> None:
    with behind(own.api) as (url, front):
        page = look(own.api).page
        page.clock.install()
        page.goto(f"{url}{tier('w8a8')}")
        stale, main = page.locator("#stale"), page.locator("main").inner_text()
        as_of = page.locator(".foot time").inner_text()
        front.instead = HTMLResponse("<title>Sign in</title><main><p>Who are you?</p></main>")
        until(page, stale.is_visible)
        assert page.locator("main").inner_text() == main
        assert as_of.removesuffix(" UTC") in stale.inner_text(), "by the clock of whoever answered"
        front.instead = None
        until(page, stale.is_hidden)


def test_whoever_is_asked_to_wait_waits(look: OpenPage, own: Built) -> None:
    with behind(own.api) as (url, front):
        page = look(own.api).page
        page.clock.install()
        page.goto(f"{url}/")
        front.instead = PlainTextResponse("slow down", 429, {"Retry-After": "120"})
        stale = page.locator("#stale")
        until(page, stale.is_visible)
        front.instead, asked = None, polls(page)
        page.clock.run_for(100_000)
        page.wait_for_timeout(A_LOOK)
        assert asked == []
        until(page, stale.is_hidden)


def test_when_a_session_ends_its_page_says_so_and_goes_on_for_whoever_logs_in_again(
    look: OpenPage, own: Built
) -> None:
    with behind(own.api, loopback_reads=False) as (url, _):
        page = look(own.api, scope="approve").page
        page.clock.install()
        page.goto(f"{url}{tier('w8a8')}")
        tokens.revoke(own.api.db, "test-approve", now=own.api.clock())
        again = page.locator("#stale a[href^='/login']")
        until(page, again.is_visible)
        elsewhere = page.context.new_page()
        elsewhere.goto(f"{url}/login")
        elsewhere.locator("#token").fill(own.api.secrets["read"])
        elsewhere.keyboard.press("Enter")
        expect(elsewhere.locator(".who")).to_contain_text("test-read")
        until(page, lambda: "test-read" in page.locator(".who").inner_text())
        assert page.locator("a[href*='do=approve']").count() == 0, "it is the page of whoever is here now"


@pytest.mark.parametrize(
    "happens",
    [
        "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))",
        "document.dispatchEvent(new Event('visibilitychange'))",
        "document.dispatchEvent(new Event('resume'))",
        "dispatchEvent(new Event('online'))",
    ],
    ids=["by the back button", "from another tab", "after a rest", "on the net again"],
)
def test_whoever_comes_back_to_a_page_sees_at_once_what_it_says_now(
    look: OpenPage, built: Built, happens: str
) -> None:
    page = look(built.api).page
    page.clock.install()
    page.goto("/")
    with page.expect_response(lambda answer: LIVE in answer.request.headers):
        page.evaluate(happens)


def test_a_page_that_has_other_parts_by_now_is_loaded_anew(look: OpenPage, built: Built) -> None:
    page = look(built.api).page
    page.clock.install()
    page.goto(tier("w8a8"))
    page.evaluate("document.querySelector('[data-live=money]').remove()")
    loads: list[Page] = []
    page.on("load", lambda loaded: loads.append(loaded))
    until(page, lambda: bool(loads))
    expect(page.locator("[data-live=money]")).to_have_count(1)
