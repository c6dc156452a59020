"""Every install is the same: what pyproject.toml asks for is pinned in constraints.txt."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    pinned = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    pinned = {normal(name): version for name, version in pinned.items()}
    for requirement in asked:
        found = re.match(r"([\w.-]+)(?:\[[^]]*\])?(?:>=([\d.a-z]+))?$", requirement)
        assert found is not None, requirement
        assert normal(found[1]) in pinned, f"{requirement} is not in constraints.txt"
        assert numbers(pinned[normal(found[1])]) >= numbers(found[2] or "0"), requirement


def numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
