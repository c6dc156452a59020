"""Every page at both widths, in both lights and languages: whole, quiet, and usable by everybody.

A page is loaded once in each language, English in the light and Chinese in the dark, and seen at both widths:
it is the same document at both. All pages share what a look takes: a browser's context and its session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser.conftest import open_page
from tests.browser.places import PLACES, REFUSED, Built
from tests.browser.watched import Watched, watched

WIDTHS = {"en": (1440, 390), "zh": (390, 1440)}
"""By language; at the first one the page is loaded and asked whether everybody can use it."""
LIGHTS = {"en": "light", "zh": "dark"}
ZOOMED = {"width": 320, "height": 256}
"""A window of 1280 by 1024 at 400 %."""
MOST_WORDS = 12
"""That only script shows: how to label by keys, which no page without script can."""
ALIVE = (
    "script:not([src^='/assets/']), [onload], [onerror], iframe[src^='javascript:'], a[href^='javascript:']"
)
"""Of captured texts that would do something."""


@pytest.fixture(scope="module")
def seats(chromium: Browser, built: Built) -> Iterator[Mapping[str, Watched]]:
    """A browser's page for each language, of an admin."""
    opened = {
        language: watched(
            open_page(
                chromium,
                built.api,
                width=widths[0],
                dark=LIGHTS[language] == "dark",
                language=language,
                scope="admin",
            )
        )
        for language, widths in WIDTHS.items()
    }
    yield opened
    for seen in opened.values():
        seen.page.context.close()


@pytest.fixture(scope="module")
def without_script(chromium: Browser, built: Built) -> Iterator[Page]:
    """The same page for somebody who forbids script."""
    page = open_page(chromium, built.api, scope="admin", script=False)
    yield page
    page.context.close()


@pytest.mark.parametrize("language", WIDTHS)
@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_page_is_whole_quiet_and_usable_by_everybody(
    seats: Mapping[str, Watched], built: Built, pictures: Path, place: str, language: str
) -> None:
    seen = seats[language]
    seen.complaints.clear()
    page = seen.page
    page.set_viewport_size({"width": WIDTHS[language][0], "height": 900})
    answer = page.goto(PLACES[place](built))
    assert answer is not None
    assert answer.status == REFUSED.get(place, 200)
    assert page.locator("h1").count() == 1
    assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-Hans"}[language]
    assert page.locator(ALIVE).count() == 0
    for width in WIDTHS[language]:
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=pictures / f"{place}-{width}-{LIGHTS[language]}-{language}.png", full_page=True)
        assert wide(page) == "", f"at {width} px"
        assert crowded(page) == [], f"at {width} px"
        assert width > 720 or cut_off(page) == [], f"at {width} px"
        if width == WIDTHS[language][0]:
            assert grave(page) == []
    if language == "zh" and place != "adjudicate":  # there the rubric is the operator's own
        assert left_in_english(page) == []
    page.set_viewport_size(ZOOMED)
    assert wide(page) == "", "at 400 %"
    refused = f"the server responded with a status of {answer.status}"
    assert [told for told in seen.complaints if place not in REFUSED or refused not in told] == []


@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_page_says_all_without_script(
    seats: Mapping[str, Watched], without_script: Page, built: Built, place: str
) -> None:
    """What script adds is that it moves; whoever forbids it reads the same."""
    texts = []
    for page in (seats["en"].page, without_script):
        page.set_viewport_size({"width": WIDTHS["en"][0], "height": 900})
        page.goto(PLACES[place](built))
        texts.append(page.locator("main").inner_text().split())
    with_script, without = texts
    moving = {word for word in with_script if not word.isalpha()}
    missing = set(with_script) - set(without) - moving
    assert len(missing) <= MOST_WORDS, missing


def wide(page: Page) -> str:
    """What sticks out where a page scrolls sideways; empty where it does not."""
    found = page.evaluate(
        """() => {
            const most = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= most) return "";
            const out = [...document.querySelectorAll("main *")].filter(
                (each) => each.getBoundingClientRect().right > most + 1 && !each.closest(".scroll"));
            return `scrolls sideways: ${(out.at(-1) || document.body).outerHTML.slice(0, 200)}`;
        }"""
    )
    return str(found)


def cut_off(page: Page) -> list[str]:
    """Tables whose rows should be cards, and are wider than the page."""
    found = page.evaluate(
        """() => [...document.querySelectorAll(".scroll:has(.stacked)")]
            .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1)
            .map((each) => each.getAttribute("aria-label"))"""
    )
    return [str(each) for each in found]


def crowded(page: Page) -> list[str]:
    """Words of charts that lie upon one another, or leave their drawing."""
    found = page.evaluate(
        """() => [...document.querySelectorAll("svg.chart-drawing")].flatMap((drawing) => {
            const whole = drawing.getBoundingClientRect();
            if (!whole.width) return [];
            const words = [...drawing.querySelectorAll("text")].map((each) => {
                const said = [...each.childNodes].filter((node) => node.nodeType === 3);
                return [said.map((node) => node.data).join(""), each.getBoundingClientRect()];
            });
            const out = words.filter(([, at]) => at.left < whole.left - 2 || at.right > whole.right + 2
                || at.top < whole.top - 2 || at.bottom > whole.bottom + 2)
                .map(([said]) => `leaves it: ${said}`);
            const on = words.flatMap(([said, at], place) => words.slice(place + 1).filter(([, other]) =>
                Math.min(at.right, other.right) - Math.max(at.left, other.left) > 1
                && Math.min(at.bottom, other.bottom) - Math.max(at.top, other.top) > 2)
                .map(([other]) => `${said} | ${other}`));
            const name = drawing.querySelector("title").textContent;
            return [...out, ...on].map((each) => `${name}: ${each}`);
        })"""
    )
    return [str(each) for each in found]


def left_in_english(page: Page) -> list[str]:
    """Three English words in a row on a page in another language, outside of code and of what is marked."""
    found = page.evaluate(
        """() => {
            const english = /[A-Za-z][a-z]+(?:[ ,;:]+[a-z]{2,}){2,}/;
            const apart = "code, pre, kbd, script, style, .captured, .spelled";
            const ours = (at) => !at.closest(apart) && at.closest("[lang]").lang.startsWith("zh");
            const told = [];
            const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
                const at = walk.currentNode.parentElement;
                if (ours(at)) told.push(walk.currentNode.data);
            }
            for (const name of ["aria-label", "title", "placeholder", "data-label"]) {
                for (const each of document.querySelectorAll(`[${name}]`)) {
                    if (ours(each)) told.push(each.getAttribute(name));
                }
            }
            const commands = /tiergate(?: [A-Za-z-]+)+/g;
            return told.filter((each) => english.test(each.replace(commands, "")))
                .map((each) => each.trim().slice(0, 200));
        }"""
    )
    return sorted({str(each) for each in found})


def grave(page: Page) -> list[str]:
    """What keeps somebody from using a page, as axe finds it."""
    return [
        f"{each['id']} ({each['impact']}): {[node['html'][:120] for node in each['nodes'][:3]]}"
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
