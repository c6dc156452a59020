"""Pages move with what they show, say when they do not, and hear again."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import closing

from playwright.sync_api import Page, Request, expect

from service.approval.app import create_app
from service.dashboard.rooms import front_of
from tests.approval.live import serving
from tests.browser.conftest import OpenPage
from tests.browser.places import PLACES, Built, tier
from tests.dashboard.house import CHAT
from tests.patience import PATIENCE

A_TURN = 5_000
"""Milliseconds after which a page asks for itself."""
A_LOOK = 20
"""Milliseconds in which the browser tells what it does."""


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
    assert page.evaluate("window.stays") is True
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
