"""Where commands run: away from whoever runs the tests, on a configuration whose backends are nobody's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.settings.variables import KNOWN
from service.store.sql.database import Database, open_database

CONFIGURATION = """
models:
  m:
    ladder:
      - {tier: bf16, backends: ["http://127.0.0.1:9"]}
      - {tier: w8a8, backends: ["http://127.0.0.1:9"]}
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, without a configuration or a token; nor does the environment name any."""
    monkeypatch.chdir(tmp_path)
    for name in KNOWN:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file with `CONFIGURATION`; its state directory is not there yet."""
    path = tmp_path / "tiergate.yaml"
    path.write_text(CONFIGURATION)
    return path


@pytest.fixture
def db(config: Path) -> Iterator[Database]:
    """The database of that configuration, without rows."""
    state = config.parent / ".tiergate"
    state.mkdir()
    database = open_database(f"sqlite:///{state / 'tiergate.db'}", part="api")
    yield database
    database.close()
