"""Packages that offer evaluators, written to a directory as an installer leaves them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "evaluators.md"


def install(directory: Path, name: str, modules: Mapping[str, str], offered: Mapping[str, str]) -> None:
    """Modules and metadata of one package: whoever has `directory` on PYTHONPATH has it installed."""
    directory.mkdir(exist_ok=True)
    for module, text in modules.items():
        (directory / f"{module}.py").write_text(text, encoding="utf-8")
    metadata = directory / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = ["[tiergate.evaluators]", *(f"{key} = {value}" for key, value in offered.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def documented(language: str) -> str:
    """The block of the worked example in `docs/evaluators.md` that is written in a language."""
    adding = PAGE.read_text(encoding="utf-8").partition("## Adding one")[2]
    found = re.search(rf"^```{language}\n(.*?)^```$", adding, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the page has no example in {language}"
    return found.group(1)


def install_example(directory: Path) -> None:
    """The worked example, from its page."""
    project = tomllib.loads(documented("toml"))
    [file] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    install(
        directory,
        project["project"]["name"],
        {file.removesuffix(".py"): documented("python")},
        project["project"]["entry-points"]["tiergate.evaluators"],
    )
