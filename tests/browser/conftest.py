"""A real browser in front of a real dashboard: Debian's Chromium, driven by Playwright.

Needs the `chromium` program, which `.ci/run` installs; without it every test here is skipped, and says so.
Pictures of what was seen go to the folder `TIERGATE_SCREENSHOTS` names, else to a temporary one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from tests.approval.live import LiveApi
from tests.browser.places import Built
from tests.browser.watched import Watched, watched
from tests.conftest import ValkeyServer
from tests.dashboard.conftest import copy_of, furnished
from tests.dashboard.house import House, house_api
from tests.dashboard.house import browser as house_browser
from tests.patience import PATIENCE

__all__ = ["furnished"]

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Of a browser that asks nobody for anything, and that root may start."""


def _program() -> str | None:
    named = os.environ.get("TIERGATE_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One for each module: it ends before an event loop of another test begins."""
    program = _program()
    if program is None:
        pytest.skip(
            "no Chromium here: install the package `chromium`, as .ci/run does, or set TIERGATE_CHROMIUM"
        )
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go."""
    named = os.environ.get("TIERGATE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def built(
    chromium: Browser, furnished: tuple[Path, House], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Built]:
    """A dashboard with something on every page, for those who only look."""
    yield from _built(furnished, tmp_path_factory.mktemp("house"))


@pytest.fixture
def own(chromium: Browser, furnished: tuple[Path, House], tmp_path: Path) -> Iterator[Built]:
    """The same, for one test that changes it."""
    yield from _built(furnished, tmp_path)


def _built(furnished: tuple[Path, House], folder: Path) -> Iterator[Built]:
    filled, house = furnished
    copied = copy_of(filled, folder / "house.db")
    valkey = ValkeyServer(directory=folder)
    valkey.start()
    try:
        with (
            closing(open_database(f"sqlite:///{copied}")) as db,
            closing(open_captures(valkey.url, timeout=5)) as captures,
            house_api(db, captures) as api,
        ):
            yield Built(api=api, house=house)
    finally:
        valkey.kill()


OpenPage = Callable[..., Watched]


@pytest.fixture
def look(chromium: Browser) -> Iterator[OpenPage]:
    """Opens a page of its own context: `look(api, width=1440, dark=False, language="en", scope=None)`."""
    contexts: list[BrowserContext] = []

    def opened(api: LiveApi, **how: Any) -> Watched:
        page = open_page(chromium, api, **how)
        contexts.append(page.context)
        return watched(page)

    yield opened
    for context in contexts:
        context.close()


def open_page(
    chromium: Browser,
    api: LiveApi,
    *,
    width: int = 1440,
    dark: bool = False,
    language: str = "en",
    scope: str | None = None,
    script: bool = True,
) -> Page:
    """A page of a new context, with the session of a scope; that logging in works is a test of its own."""
    context = chromium.new_context(
        base_url=api.url,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        locale={"en": "en-GB", "zh": "zh-CN"}[language],
        reduced_motion="reduce",
        java_script_enabled=script,
    )
    context.set_default_timeout(1000 * PATIENCE)
    if scope is not None:
        session = house_browser(api, scope).cookies
        # As the log-in sets it: playwright's own way would be a cookie that goes along from anywhere.
        kept = [
            {"name": name, "value": text, "url": api.url, "httpOnly": True, "sameSite": "Strict"}
            for name, text in session.items()
        ]
        context.add_cookies(kept)
    return context.new_page()
