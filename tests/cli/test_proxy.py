"""What `tiergate proxy` says before it answers anybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port
from tests.proxy.commanded import commanded

NO_REDIS = "no Redis is named"


@pytest.fixture
def content(tmp_path: Path) -> dict[str, Any]:
    """A proxy of one model whose backend is not there."""
    ladder = [{"tier": "t0", "backends": [f"http://127.0.0.1:{free_port()}"]}]
    return {
        "models": {"m": {"ladder": ladder}},
        "proxy": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"},
        "store": {"state_dir": str(tmp_path / "state")},
    }


def test_without_a_redis_it_says_where_captures_would_go(content: dict[str, Any], tmp_path: Path) -> None:
    with commanded(tmp_path, content) as proxy:
        assert NO_REDIS in proxy.log
        assert proxy.stop() == 0


@pytest.mark.parametrize("change", [{"store": {"redis": "redis://127.0.0.1:1/0"}}, {"mirror": {"sample": 0}}])
def test_it_says_nothing_of_it_where_one_is_named_or_nothing_is_captured(
    content: dict[str, Any], tmp_path: Path, change: dict[str, Any]
) -> None:
    changed = content | {key: content.get(key, {}) | inner for key, inner in change.items()}
    with commanded(tmp_path, changed) as proxy:
        assert NO_REDIS not in proxy.log
        assert proxy.stop() == 0
