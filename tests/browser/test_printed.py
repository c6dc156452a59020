"""What is printed: what a page says, on white, without what only a screen can use."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page
from sqlalchemy import update

from service.store.sql.schema import decisions
from tests.browser.conftest import OpenPage
from tests.browser.places import PLACES, Built, tier

FURNITURE = ("header nav", ".skip", "form", ".actions", ".pager")


def seen_at(page: Page, selector: str) -> bool:
    """Whether anything that the selector means is shown."""
    return any(each.is_visible() for each in page.locator(selector).all())


def brightness(page: Page, selector: str, what: str) -> float:
    """Of a colour as the browser computes it, 0 to 255."""
    told = page.locator(selector).first.evaluate("(at, what) => getComputedStyle(at)[what]", what)
    parts = [float(each) for each in re.findall(r"[\d.]+", told)[:3]]
    return sum(parts) / len(parts)


@pytest.mark.parametrize("place", ["overview", "tier-harmful", "ledger", "log", "jobs"])
def test_a_page_is_printed_dark_on_white_also_from_a_dark_screen(
    look: OpenPage, built: Built, place: str
) -> None:
    page = look(built.api, dark=True, scope="admin").page
    page.goto(PLACES[place](built))
    assert brightness(page, "body", "backgroundColor") < 60
    page.emulate_media(media="print")
    assert brightness(page, "body", "color") < 60
    assert [each for each in FURNITURE if seen_at(page, each)] == []
    assert seen_at(page, "main h1")
    for drawing in page.locator(".chart").all():
        assert drawing.locator(".chart-wide").is_visible()


def test_a_log_that_does_not_hold_says_so_on_paper_too(look: OpenPage, own: Built) -> None:
    with own.api.db.write() as connection:
        connection.execute(update(decisions).where(decisions.c.seq == 1).values(actor="mallory"))
    page = look(own.api, scope="read").page
    page.goto("/log")
    page.emulate_media(media="print")
    assert seen_at(page, "main .banner.bad")
    page.goto(tier("w8a8"))
    assert seen_at(page, ".sentence")
