"""Every page at both widths, in both lights and languages: whole, quiet, and usable by everybody."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import OpenPage
from tests.browser.places import PLACES, Built

WIDTHS = (1440, 390)
LOOKS = [(width, dark, "zh" if dark else "en") for width in WIDTHS for dark in (False, True)]
"""Each language is seen at each width, and in one light."""
MOST_WORDS = 12
"""That only script shows: how to label by keys, which no page without script can."""


@pytest.mark.parametrize(("width", "dark", "language"), LOOKS, ids=lambda each: str(each))
@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_page_is_whole_quiet_and_usable_by_everybody(
    look: OpenPage, built: Built, pictures: Path, place: str, width: int, dark: bool, language: str
) -> None:
    seen = look(built.api, width=width, dark=dark, language=language, scope="admin")
    page = seen.page
    answer = page.goto(PLACES[place](built.house))
    assert answer is not None
    assert answer.status == 200
    page.screenshot(
        path=pictures / f"{place}-{width}-{'dark' if dark else 'light'}-{language}.png", full_page=True
    )
    assert seen.complaints == []
    assert page.locator("h1").count() == 1
    assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-Hans"}[language]
    wide = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1], "the page scrolls sideways"
    found = Axe().run(page)
    grave = [
        f"{each['id']} ({each['impact']}): {[node['html'][:120] for node in each['nodes'][:3]]}"
        for each in found.response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert grave == []


@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_page_says_all_without_script(look: OpenPage, built: Built, place: str) -> None:
    """What script adds is that it moves; whoever forbids it reads the same."""
    seen = look(built.api, scope="admin")
    seen.page.goto(PLACES[place](built.house))
    with_script = seen.page.locator("main").inner_text()
    context = seen.page.context.browser.new_context(  # type: ignore[union-attr]
        base_url=built.api.url, java_script_enabled=False, storage_state=seen.page.context.storage_state()
    )
    try:
        page = context.new_page()
        page.goto(PLACES[place](built.house))
        without = page.locator("main").inner_text()
    finally:
        context.close()
    moving = {word for word in with_script.split() if not word.isalpha()}
    missing = set(with_script.split()) - set(without.split()) - moving
    assert len(missing) <= MOST_WORDS, missing
