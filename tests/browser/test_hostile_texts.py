"""Captured texts that mean harm are shown, and do nothing."""

from __future__ import annotations

from tests.browser.conftest import OpenPage
from tests.browser.places import PLACES, Built
from tests.browser.test_every_page import ALIVE, wide

SPELLED = "<script>alert(1)</script><svg onload=alert(2)>"


def test_hostile_answers_are_shown_and_do_nothing(look: OpenPage, built: Built) -> None:
    seen = look(built.api, width=390, scope="admin")
    page = seen.page
    page.goto(PLACES["pairs"](built))
    opened = page.locator("main a[href^='/pair?']")
    # Some: who has looked at a pair is not given it to judge, and others judge in this house.
    links = opened.evaluate_all("links => links.slice(0, 9).map(link => `${link.href}&show=request`)")
    assert links, "no pair can be opened"
    met = 0
    for place in [PLACES["adjudicate"](built), *dict.fromkeys(links)]:
        page.goto(place)
        assert page.locator(ALIVE).count() == 0, place
        met += SPELLED in page.locator("main").inner_text()
        assert wide(page) == "", place
    assert met >= 3, "of three pairs one has the hostile text, and so the pages of pairs show it"
    assert seen.complaints == []
