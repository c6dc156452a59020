from __future__ import annotations

import re
from pathlib import Path

import pytest

from service.settings import SettingsError, load
from service.settings.variables import KNOWN, complaints_of, misspelt

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"TIERGATE_[A-Z_]*[A-Z]")


def test_every_variable_that_is_read_is_known_and_documented() -> None:
    sources = [path for room in ("service", "workers") for path in (ROOT / room).rglob("*.py")]
    read = {name for path in sources for name in NAME.findall(path.read_text()) if name != "TIERGATE_PORT"}
    assert read == KNOWN
    assert set(NAME.findall((ROOT / "docs/configuration.md").read_text())) >= KNOWN


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TIERGATE_REDIS_ULR", "TIERGATE_REDIS_URL"),
        ("TIERGATE_DATABASEURL", "TIERGATE_DATABASE_URL"),
        ("TIERGATE_STATEDIR", "TIERGATE_STATE_DIR"),
        ("TIERGATECONFIG", "TIERGATE_CONFIG"),
    ],
)
def test_a_slip_is_refused_and_the_nearest_named(name: str, meant: str, tmp_path: Path) -> None:
    assert misspelt([name, "PATH"]) == [(name, meant)]
    file = tmp_path / "tiergate.yaml"
    file.write_text("models: {m: {ladder: [{tier: a, backends: ['http://h:1']}]}}\n")
    with pytest.raises(SettingsError, match=f"{name} is no variable of Tiergate; did you mean {meant}"):
        load(file, {name: "redis://h:1"})


def test_a_log_level_that_is_none_is_refused() -> None:
    (complaint,) = complaints_of({"TIERGATE_LOG_LEVEL": "loud"})
    assert "DEBUG" in complaint
    assert "'loud'" in complaint
    assert complaints_of({"TIERGATE_LOG_LEVEL": "debug"}) == []


@pytest.mark.parametrize(
    "name", ["TIERGATE_PORT", "TIERGATE_SERVICE_HOST", "TIERGATE_TOKEN_2", *sorted(KNOWN)]
)
def test_what_is_known_or_somebody_elses_is_left_alone(name: str) -> None:
    assert misspelt([name]) == []
