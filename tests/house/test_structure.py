"""The layout is a promise: what a module may be called, and how long it may get."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("service", "workers", "evaluators")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in MODULES}
DRAWERS = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "manager",
    "handler",
    "base",
    "core",
    "info",
}
TOP_LEVEL = {
    "pyproject.toml",
    "README.md",
    "README.zh-CN.md",
    "Makefile",
    "constraints.txt",
    "CHANGELOG.md",
    "LICENSE",
    "compose.yaml",
    "service",
    "workers",
    "evaluators",
    "tests",
    "docs",
    "deploy",
}


def test_a_module_is_short_enough_to_be_read_at_once() -> None:
    lines = {str(path.relative_to(ROOT)): len(text.splitlines()) for path, text in TEXTS.items()}
    assert {path: count for path, count in lines.items() if count > 350} == {}


def test_a_module_says_what_it_is() -> None:
    silent = [path for path, text in TEXTS.items() if len(docstring(text)) <= 20]
    assert silent == [], "no docstring, or one that says nothing"


def docstring(text: str) -> str:
    first = text.lstrip()
    return first.split('"""')[1].strip() if first.startswith('"""') else ""


def test_no_module_is_a_drawer() -> None:
    assert [path for path in MODULES if path.stem in DRAWERS or path.parent.name in DRAWERS] == []


def test_a_module_and_a_package_never_share_a_name() -> None:
    assert [path for path in MODULES if path.with_suffix("").is_dir()] == []


def test_the_top_level_holds_what_the_plan_lists() -> None:
    ignored = {line.strip("/\n") for line in (ROOT / ".gitignore").read_text().splitlines()}
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    found = {name for name in found if name not in ignored and not name.endswith(".egg-info")}
    assert found <= TOP_LEVEL


def test_the_rooms_that_are_held_to_their_coverage_are_those_that_are_pure() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [pure] = [each for each in contracts if each["name"] == "The pure rooms do no I/O"]
    [told] = re.findall(r"^PURE := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    rooms = [path.removesuffix("/*").removesuffix(".py").replace("/", ".") for path in told.split(",")]
    assert sorted(rooms) == sorted(pure["source_modules"])
