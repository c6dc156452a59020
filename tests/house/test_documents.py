"""Documents that can go stale are tested: links, commands, decisions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from service.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
COMMANDS: Any = get_command(app)
COMMAND = re.compile(r"(?:^|[`$ ])tiergate ([a-z][a-z-]*)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_it_names_exists(page: Path) -> None:
    known = set(COMMANDS.commands)
    text = page.read_text()
    code = "\n".join(re.findall(r"```(?:\w*)\n(.*?)```", text, re.DOTALL) + re.findall(r"`[^`\n]+`", text))
    assert set(COMMAND.findall(code)) <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_it_gives_a_command_exists(page: Path) -> None:
    text = page.read_text()
    code = re.findall(r"```(?:\w*)\n(.*?)```", text, re.DOTALL) + re.findall(r"`[^`\n]+`", text)
    unknown = [
        (words[0], option)
        for line in "\n".join(code).splitlines()
        for given in re.findall(r"(?:^|[`$ ])tiergate ([a-z][^`#|&;]*)", line)
        if (words := given.split())
        for option in re.findall(r"(?:^| )(--?[a-z][a-z-]*)", given)
        if option not in _options(words)
    ]
    assert unknown == []


def _options(words: list[str]) -> set[str]:
    command = COMMANDS
    for word in words:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}


def test_every_decision_is_listed() -> None:
    listed = set(re.findall(r"\((\d{4}-[a-z0-9-]+\.md)\)", (ROOT / "docs/adr/README.md").read_text()))
    assert listed == {path.name for path in (ROOT / "docs/adr").glob("0*.md")}


@pytest.mark.parametrize("path", sorted((ROOT / "docs/adr").glob("0*.md")), ids=lambda path: path.stem)
def test_a_decision_fits_a_page_and_names_what_was_rejected(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 60
    for heading in ("## Context", "## Decision", "## Consequences", "## Rejected"):
        assert heading in text


def test_both_readmes_tell_the_same_story() -> None:
    english, chinese = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
    assert english.count("\n## ") == chinese.count("\n## ")
    assert re.findall(r"```(\w*)\n", english) == re.findall(r"```(\w*)\n", chinese)
