"""A test run that is killed leaves no process behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.conftest import eventually, runs
from tests.leash import Leashed
from tests.patience import PATIENCE

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
RUN = """
import signal, subprocess, sys
from tests.leash import Leashed
sleeping = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
started = [Leashed(sleeping, stdout=subprocess.PIPE) for _ in range(3)]
assert all(each.stdout.readline() == b"up\\n" for each in started)
started[0].kill()
started[0].wait()
started[1].send_signal(signal.SIGSTOP)
print(started[1].pid, started[2].pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_what_a_run_started_ends_with_it_killed_or_not_frozen_or_not(killed: bool) -> None:
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with Leashed([sys.executable, "-c", RUN], cwd=ROOT, text=True, **piped) as run:
        left = [int(pid) for pid in run.stdout.readline().split()]
        assert [runs(pid) for pid in left] == [True, True]
        if killed:
            run.kill()
        run.communicate(timeout=PATIENCE)
    assert eventually(lambda: not any(map(runs, left))), "they outlive their test run"


def test_every_process_that_tests_start_in_the_background_is_leashed() -> None:
    loose = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if "Popen(" in path.read_text()}
    hears_ctrl_c_with_what_it_waits_for = "benchmarks/__main__.py"
    assert loose == {"leash.py", "house/test_leash.py", hears_ctrl_c_with_what_it_waits_for}
