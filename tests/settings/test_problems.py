from __future__ import annotations

from pathlib import Path

import pytest

from service.settings import Problem, SettingsError
from service.settings.problems import Place, spell


@pytest.mark.parametrize(
    ("place", "spelt"),
    [
        ((), ""),
        (("models", "qwen", "ladder", 1, "backends", 0), "models.qwen.ladder[1].backends[0]"),
        (("models", "qwen2.5 72b"), 'models."qwen2.5 72b"'),
        (("models", ""), 'models.""'),
    ],
)
def test_a_place_is_spelt_as_a_path(place: Place, spelt: str) -> None:
    assert spell(place) == spelt


def test_problems_are_told_in_the_order_of_the_file_under_its_name() -> None:
    error = SettingsError(
        Path("tiergate.yaml"),
        [
            Problem(place=("proxy",), line=9, message="second"),
            Problem(place=("models",), line=1, message="first"),
            Problem(message="of the environment"),
        ],
    )
    assert str(error).splitlines() == [
        "tiergate.yaml: 3 problems",
        "  of the environment",
        "  models (line 1): first",
        "  proxy (line 9): second",
    ]
