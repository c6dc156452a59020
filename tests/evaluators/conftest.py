"""The public suites, and builders of requests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.exchange import Endpoint, Message, Request


@pytest.fixture(scope="session")
def suites() -> Path:
    """Where the public test data lie: `TIERGATE_SUITES`, or `../shared/suites` beside the repository."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "suites"
    found = Path(os.environ.get("TIERGATE_SUITES", beside))
    if not found.is_dir():
        pytest.skip(f"public test suites are not at {found}; set TIERGATE_SUITES to their folder")
    return found


@pytest.fixture
def make_request() -> Callable[..., Request]:
    """A chat request of one user message, or of (role, text) pairs."""

    def make(*turns: str | tuple[str, str], **fields: Any) -> Request:
        messages = tuple(
            Message(role="user", text=turn) if isinstance(turn, str) else Message(role=turn[0], text=turn[1])
            for turn in turns or ("hi",)
        )
        return Request(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", messages=messages, **fields)

    return make
