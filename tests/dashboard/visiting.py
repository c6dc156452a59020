"""The dashboard behind the API's door, as `tiergate api` serves it, and a browser's side of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx

from service.dashboard.rooms import front_of
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi, live_api


@contextmanager
def dashboard_over(db: Database, captures: Captures, **config: Any) -> Iterator[LiveApi]:
    """An API with the dashboard over these stores; `config` as of `live_api`."""
    with live_api(db, captures, front=front_of(), **config) as api:
        yield api


def logged_in(api: LiveApi, scope: str) -> httpx.Client:
    """A browser after a log-in with the token of a scope; it asks for pages and follows nothing."""
    browser = api.client(**{"Accept": "text/html"})
    answer = browser.post("/login", data={"token": api.secrets[scope], "next": "/"})
    assert answer.status_code == 303, answer.text
    return browser


def csrf_of(page: str) -> str:
    """The token of the page's forms."""
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert found is not None, "the page has no form of a session"
    return found[1]


def words_of(page: str) -> str:
    """What a reader sees, in one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page))).strip()
