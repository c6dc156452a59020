"""`.ci/run` promises that nothing is skipped: the promise is kept by a hook, and the hook by this."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.fixture
def server():
    pytest.skip("no PostgreSQL here")

def test_of_a_server(server): ...

@pytest.mark.skip(reason="later")
def test_put_off(): ...

def test_of_a_suite():
    pytest.skip("public test suites are not at /nowhere")

def test_of_a_busy_machine():
    pytest.xfail("no time for the generator")

def test_fine(): ...
"""


@pytest.mark.parametrize(
    ("forbidden", "workers", "told"),
    [
        ("1", "0", "1 passed, 1 skipped, 1 xfailed, 2 errors"),
        ("1", "2", "1 passed, 1 skipped, 1 xfailed, 2 errors"),
        ("", "0", "1 passed, 3 skipped, 1 xfailed"),
    ],
)
def test_a_skip_is_a_failure_where_skips_are_forbidden(
    forbidden: str, workers: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            workers,
            "-p",
            "tests.skips",
            "-c",
            "pytest.ini",
            f"{tmp_path}",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TIERGATE_FORBID_SKIPS": forbidden},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told in ran.stdout, ran.stdout
    assert ran.returncode == (1 if forbidden else 0)


def test_ci_forbids_skips() -> None:
    assert "export TIERGATE_FORBID_SKIPS=1" in (ROOT / ".ci/run").read_text()
