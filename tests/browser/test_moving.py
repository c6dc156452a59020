"""Pages move with what they show, say when they do not, and hear again."""

from __future__ import annotations

import socket
from contextlib import closing

from playwright.sync_api import expect

from service.approval.app import create_app
from service.dashboard.rooms import front_of
from tests.approval.live import serving
from tests.browser.conftest import OpenPage
from tests.browser.places import PLACES, Built, tier
from tests.dashboard.house import CHAT
from tests.patience import PATIENCE

MILLISECONDS = 1000 * PATIENCE


def test_what_happens_is_seen_without_a_reload(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="read")
    page = seen.page
    page.goto(tier("w8a8"))
    page.evaluate("window.stays = true")
    with own.api.client("approve") as pipeline:
        answer = pipeline.put(f"/api/v1/models/{CHAT}/tiers/w8a8/approval", json={})
        assert answer.status_code < 300, answer.text
    expect(page.locator("main")).to_contain_text("test-approve", timeout=MILLISECONDS)
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
        page.goto(f"{url}{PLACES['overview'](own.house)}")
        page.evaluate("window.stays = true")
        stale = page.locator("#stale")
        expect(stale).to_be_hidden()
    expect(stale).to_be_visible(timeout=MILLISECONDS)
    with serving(app(), port=port):
        expect(stale).to_be_hidden(timeout=MILLISECONDS)
    assert page.evaluate("window.stays") is True
    unexpected = [each for each in seen.complaints if "ERR_CONNECTION_REFUSED" not in each]
    assert unexpected == []
