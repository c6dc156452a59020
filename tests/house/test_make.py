"""`make` on a machine that lacks what it needs: what it says, before anything is half made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "Makefile", tmp_path)
    return tmp_path


def make(checkout: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": path or "/usr/bin:/bin"}
    command = [str(shutil.which("make")), *arguments]
    return subprocess.run(command, cwd=checkout, env=environ, capture_output=True, text=True, check=False)


def python(checkout: Path, *, exits: int) -> Path:
    """An interpreter that ends so when it is asked for its version."""
    fake = checkout / "python"
    fake.write_text(f"#!/bin/sh\nexit {exits}\n")
    fake.chmod(0o755)
    return fake


@pytest.mark.parametrize("target", ["demo", "test", "check"])
def test_an_old_python_is_refused_before_anything_is_made(checkout: Path, target: str) -> None:
    old = python(checkout, exits=1)
    refused = make(checkout, target, f"PYTHON={old}")
    assert refused.returncode != 0
    assert (
        refused.stdout == f"Tiergate needs Python 3.11 or newer; {old} is none; set PYTHON=/path/to/python\n"
    )
    assert not (checkout / ".venv").exists()


def test_where_there_is_no_python_at_all_it_says_what_is_needed(checkout: Path) -> None:
    bare = checkout / "bin"
    bare.mkdir()
    for tool in ("sh", "grep", "sed", "expand"):
        (bare / tool).symlink_to(str(shutil.which(tool)))
    refused = make(checkout, "demo", path=str(bare))
    assert refused.returncode != 0
    assert refused.stdout == "Tiergate needs Python 3.11 or newer; set PYTHON=/path/to/python\n"


def test_every_target_that_people_use_is_told(checkout: Path) -> None:
    told = make(checkout).stdout
    for target in ("demo", "test", "coverage", "check", "format", "bench", "simulate", "clean"):
        assert f"\n{target} " in f"\n{told}"
