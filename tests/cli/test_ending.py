"""What a command ends with that cannot tell what it found: nothing that means a finding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.cli.ending import DEFECT, NOT_TOLD
from tests.ports import free_port

STATS = ("stats", "--n", "1000", "--harm", "3", "--benefit", "2")
"""Its own ends are 0 and 2."""
ASKED = [("schema",), STATS, (*STATS, "--json"), ("--help",), ("stats", "--help"), ("check", "--offline")]
"""Printed by us, by Rich, and by Typer."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "tiergate.yaml").write_text(
        "models: {模型: {ladder: [{tier: bf16, backends: ['http://a:1']}]}}\n", encoding="utf-8"
    )
    return tmp_path


def tiergate(
    *arguments: str | bytes, here: Path, stdout: int = subprocess.PIPE, **environ: str
) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIERGATE_")}
    return subprocess.run(
        [sys.executable, "-m", "service.cli", *arguments],
        cwd=here,
        env={**clean, "NO_COLOR": "1", **environ},
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )


@pytest.mark.parametrize("arguments", ASKED)
def test_a_pipe_that_nobody_reads_is_no_finding_and_no_traceback(
    arguments: tuple[str, ...], here: Path
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = tiergate(*arguments, here=here, stdout=writes)
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (NOT_TOLD, b"")


@pytest.mark.parametrize("arguments", ASKED)
def test_a_full_disk_under_the_output_is_told_and_no_finding(arguments: tuple[str, ...], here: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = tiergate(*arguments, here=here, stdout=full.fileno())
    assert done.returncode == NOT_TOLD
    assert done.stderr == b"the output cannot be written: No space left on device\n"


def test_what_an_encoding_lacks_is_spelled_out(here: Path) -> None:
    done = tiergate("check", "--offline", here=here, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert rb"warn  \u6a21\u578b: the ladder has one tier" in done.stdout


def test_a_name_that_is_no_text_is_refused_as_any_other_wrong_command_line(here: Path) -> None:
    done = tiergate("verdict", b"\xff", "w8a8", here=here, TIERGATE_URL=f"http://127.0.0.1:{free_port()}")
    assert done.returncode == NOT_TOLD
    assert rb"a name here is not UTF-8 text: '\udcff'" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_defect_is_told_as_one_and_is_no_finding() -> None:
    broken = "from service.cli.ending import ended; ended(lambda: 1 / 0)"
    done = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, check=False)
    assert done.returncode == NOT_TOLD
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.rstrip().endswith(DEFECT)
