"""Where things are, beyond what `test_load` and `test_variables` show of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.proxy.config import AccessLogPlan, RoutesFrom
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


def with_routes(minimal: dict[str, Any], **keys: object) -> dict[str, Any]:
    return {**minimal, "proxy": {"routes": keys}}


def test_a_proxy_asks_nobody_for_routes_unless_it_is_told_whom(
    minimal: dict[str, Any], loaded: Loaded, tmp_path: Path
) -> None:
    assert loaded(minimal).proxy.routes_from is None
    (tmp_path / "token").write_text("tg_1_secret\n")
    asked = loaded(with_routes(minimal, url="https://api.example:8081", token_file="token")).proxy
    assert asked.routes_from == RoutesFrom(url="https://api.example:8081", token="tg_1_secret")
    assert "secret" not in repr(asked)


@pytest.mark.parametrize(
    ("keys", "place", "told"),
    [
        ({"url": "api.example:8081"}, "proxy.routes.url", "line"),
        ({"url": "http://user:pass@api.example"}, "proxy.routes.url", "line"),
        (
            {"url": "http://api.example", "token_file": "none"},
            "proxy.routes.token_file",
            "tiergate token new",
        ),
        ({}, "proxy.routes", "url"),
    ],
)
def test_a_place_of_routes_that_cannot_be_used_is_named(
    keys: dict[str, object], place: str, told: str, minimal: dict[str, Any], problems: Problems
) -> None:
    (problem,) = problems(with_routes(minimal, **keys))
    assert problem.startswith(place)
    assert told in problem
