"""A configuration as a mapping, written to a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings import Settings, SettingsError, load

Write = Callable[[object], Path]


@pytest.fixture
def minimal() -> dict[str, Any]:
    """What suffices: models, tiers, backends."""
    return {
        "models": {
            "qwen": {
                "ladder": [
                    {"tier": "bf16", "backends": ["http://gpu-a:8000"]},
                    {"tier": "w8a8", "backends": ["http://gpu-b:8000"]},
                ]
            }
        }
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes text, or anything else as YAML."""

    def to_file(content: object) -> Path:
        path = tmp_path / "tiergate.yaml"
        path.write_text(
            content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False),
            encoding="utf-8",
        )
        return path

    return to_file


@pytest.fixture
def loaded(write: Write) -> Callable[..., Settings]:
    """The settings of a configuration, with this environment alone."""
    return lambda content, environ=None: load(write(content), environ or {})


@pytest.fixture
def problems(write: Write) -> Callable[..., list[str]]:
    """The problems of a wrong configuration, as printed."""

    def found(content: object, environ: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(SettingsError) as caught:
            load(write(content), environ or {})
        return [str(problem) for problem in caught.value.problems]

    return found
