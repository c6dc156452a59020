from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.launch import StateDirInUse, owning
from tests.leash import Leashed

HOLDER = """
import sys, time
from pathlib import Path
from service.launch.lock import owning
with owning(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(300)
"""


def test_a_second_owner_is_refused_with_the_pid_of_the_first_and_what_to_do(tmp_path: Path) -> None:
    with Leashed([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StateDirInUse) as caught, owning(tmp_path):
            pass
        assert f"in use by pid {holder.pid}" in str(caught.value)
        assert "TIERGATE_STATE_DIR" in str(caught.value)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with owning(tmp_path):
            pass


def test_a_lock_file_left_behind_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1\n")
    with owning(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_new_state_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    with owning(tmp_path / "deep" / "state"):
        assert (tmp_path / "deep" / "state").stat().st_mode & 0o777 == 0o700
