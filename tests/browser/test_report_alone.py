"""A report by itself, as it is read and printed: whole at both widths, in its language, with no rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.dashboard.visit import address
from tests.browser.conftest import OpenPage
from tests.browser.places import Built
from tests.browser.test_every_page import ALIVE, crowded, left_in_english, wide


@pytest.mark.parametrize(("language", "dark"), [("en", False), ("zh", True)])
def test_a_report_is_whole_at_both_widths_and_in_its_language(
    look: OpenPage, built: Built, pictures: Path, language: str, dark: bool
) -> None:
    seen = look(built.api, scope="read", language=language, dark=dark)
    page = seen.page
    page.goto(address("/report", job=built.house.done_job, form="html"))
    assert page.locator("h1").count() == 1
    assert page.locator(ALIVE).count() == 0
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=pictures / f"report-alone-{width}-{language}.png", full_page=True)
        assert wide(page) == "", f"at {width} px"
        assert crowded(page) == [], f"at {width} px"
    assert language == "en" or left_in_english(page) == []
    assert seen.complaints == []
