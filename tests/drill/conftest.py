"""The scripted backend of the walk as a process of its own, and a configuration whose baseline it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.acceptance.conftest import BACKEND, MODEL, until
from tests.leash import Leashed
from tests.ports import free_port


@dataclass(frozen=True, slots=True)
class Scripted:
    """A running scripted backend."""

    url: str

    def script(self, **behaviour: Any) -> None:
        httpx.post(f"{self.url}/_script", json=behaviour).raise_for_status()

    def seen(self) -> dict[str, int]:
        return dict(httpx.get(f"{self.url}/_seen").json())


@pytest.fixture(scope="module")
def process() -> Iterator[str]:
    port = free_port()
    backend = Leashed([sys.executable, str(BACKEND), str(port), MODEL])
    url = f"http://127.0.0.1:{port}"
    try:
        until("a scripted backend", lambda: httpx.get(f"{url}/health").is_success)
        yield url
    finally:
        backend.terminate()
        backend.wait(timeout=30)


@pytest.fixture
def backend(process: str) -> Iterator[Scripted]:
    scripted = Scripted(process)
    yield scripted
    scripted.script(mode="ok", pause=0)


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, backend: Scripted) -> Write:
    """Writes a configuration; keyword arguments are sections that replace the usual ones."""

    def write(*, shadow_backends: tuple[str, ...] | None = None, **sections: Any) -> Path:
        baseline = {
            "tier": "bf16",
            # Nobody is there: a drill has no business with backends that serve.
            "backends": ["http://127.0.0.1:9"],
            "shadow": list((backend.url,) if shadow_backends is None else shadow_backends),
        }
        content = {
            "models": {MODEL: {"ladder": [baseline, {"tier": "w8a8", "backends": ["http://127.0.0.1:9"]}]}},
            "shadow": {"timeout": "20s", "retries": 1},
            "probe": {"per_capture": 2, "min_context_chars": 200, "max_tokens": 32},
        } | sections
        path = tmp_path / "tiergate.yaml"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    return write
