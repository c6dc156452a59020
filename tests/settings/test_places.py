"""Where things are, beyond what `test_load` and `test_variables` show of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.proxy.config import AccessLogPlan
from tests.settings.test_load import Loaded, Problems


def with_log(minimal: dict[str, Any], **keys: object) -> dict[str, Any]:
    return {**minimal, "proxy": {"access_log": keys}}


def test_no_access_log_is_written_unless_it_is_asked_for(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(minimal).proxy.access_log is None
    assert loaded(with_log(minimal, sample="100%")).proxy.access_log is None


def test_the_access_log_goes_to_a_stream_by_its_name(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(with_log(minimal, to="stdout")).proxy.access_log == AccessLogPlan(to="stdout")
    assert loaded(with_log(minimal, to="stderr", sample="5%", errors=0)).proxy.access_log == AccessLogPlan(
        to="stderr", sample=0.05, errors=0.0
    )


def test_the_file_of_the_access_log_is_relative_to_the_configuration(
    minimal: dict[str, Any], loaded: Loaded, tmp_path: Path
) -> None:
    plan = loaded(with_log(minimal, to="logs/access.jsonl")).proxy.access_log
    assert plan is not None
    assert plan.to == str(tmp_path / "logs/access.jsonl")
    plan = loaded(with_log(minimal, to="/var/log/tiergate/access.jsonl")).proxy.access_log
    assert plan is not None
    assert plan.to == "/var/log/tiergate/access.jsonl"


@pytest.mark.parametrize(
    ("key", "value"), [("to", ""), ("to", 3), ("sample", "101%"), ("sample", "often"), ("errors", "always")]
)
def test_a_value_the_access_log_cannot_have_names_its_place(
    key: str, value: object, minimal: dict[str, Any], problems: Problems
) -> None:
    (problem,) = problems(with_log(minimal, **{key: value}))
    assert problem.startswith(f"proxy.access_log.{key} (line ")
