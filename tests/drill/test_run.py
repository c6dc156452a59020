"""Whole drills: the real proxy, worker, Valkey and database before a scripted backend."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from service.cli import app
from service.settings.units import LONGEST_SOCKET
from tests.acceptance.conftest import descendants, until
from tests.drill.conftest import Scripted, Write
from tests.launch.conftest import runs
from tests.leash import Leashed

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


def drill(path: Path, *options: str, status: int) -> Result:
    ran = CliRunner().invoke(app, ["drill", "-c", str(path), *options], env={"COLUMNS": "160"})
    for kept in re.findall(r"the logs are kept in (\S+)/logs", ran.stderr):
        shutil.rmtree(kept)
    assert ran.exit_code == status, f"{ran.output}\n{ran.exception!r}"
    return ran


@pytest.fixture(autouse=True)
def own_temporary_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Another drill on this machine leaves nothing here; the path is short, for sockets are in it."""
    tmp_path_factory.getbasetemp()  # made where it always is, before that place is another
    with tempfile.TemporaryDirectory(prefix="d-") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        monkeypatch.setenv("TMPDIR", directory)
        yield


def left_behind() -> set[str]:
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "tiergate-drill-*")))


def test_a_sound_instrument_notices_everything_and_nothing_stays(write: Write, backend: Scripted) -> None:
    before, left = backend.seen(), left_behind()
    path = write()
    ran = drill(path, "--json", status=0)
    outcome = json.loads(ran.stdout)
    assert outcome["outcome"] == "pass"
    signs = {(sign["act"], sign["defect"]): sign for sign in outcome["signs"]}
    assert len(signs) == 3 + 3 + 3 + 2
    for (act, _), sign in signs.items():
        assert sign["seen"], sign
        assert (sign["log_e"] >= sign["log_threshold"]) == (act != "healthy"), sign
        wanted = {"healthy": (False, False), "damaged": (True, False), "swapped": (False, True)}
        if act in wanted:
            assert (sign["harm"] > 0, sign["benefit"] > 0) == wanted[act], sign
    seen = backend.seen()
    assert seen["replays"] - before.get("replays", 0) == outcome["requests"]
    assert seen.get("live", 0) == before.get("live", 0)
    assert "at most" in ran.stderr
    assert left_behind() <= left
    assert not (path.parent / ".tiergate").exists(), "nothing is made where production keeps its things"


def test_a_blind_policy_fails_and_each_blindness_is_named(write: Write) -> None:
    policy = {
        "criteria": {
            "structured_output": {"margin": "99pp"},
            "long_context_recall": {"role": "muted"},
            "refusal": {},
        },
        "gates": {"control": "off"},
    }
    told = " ".join(drill(write(policy=policy), "--pairs", "16", status=1).stdout.split())
    assert "BLIND: damaged, structured_output: the margin of 0.99 hides a difference" in told
    assert "BLIND: damaged, long_context_recall: policy.criteria.long_context_recall.role is muted" in told
    assert "BLIND: crossed, refusal: policy.gates.control is off" in told
    assert "FAIL:" in told


def test_recall_that_is_never_asked_is_named(write: Write) -> None:
    path = write(probe={"per_capture": 0, "min_context_chars": 200})
    told = drill(path, "--defect", "recall", status=1).stdout
    assert "BLIND: damaged, long_context_recall: probe.per_capture is 0: recall is never asked" in told


def test_a_drill_that_is_told_to_stop_leaves_nothing_behind(write: Write, backend: Scripted) -> None:
    backend.script(pause=0.5)
    path, left = write(), left_behind()
    running = Leashed(
        [sys.executable, "-m", "service.cli", "drill", "-c", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    before = backend.seen().get("replays", 0)
    until("the drill asks", lambda: backend.seen().get("replays", 0) > before)
    children = descendants(running.pid)
    assert any("celery" in line for line in children.values())
    running.send_signal(signal.SIGTERM)
    told, _ = running.communicate(timeout=120)
    assert running.returncode == 3, told
    assert "told to stop: the drill says nothing" in told
    assert not [line for pid, line in children.items() if runs(pid)]
    assert left_behind() <= left


def test_a_drill_ends_with_the_shadow_budget_and_says_nothing(write: Write) -> None:
    shadow = {"timeout": "20s", "retries": 0, "tokens_per_day": 24 * 600}
    told = drill(write(shadow=shadow), "--defect", "json", status=3).stdout
    assert "UNFINISHED: the shadow budget of an hour" in told


def test_a_directory_too_deep_for_sockets_is_told_and_left_as_it_was(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * LONGEST_SOCKET)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    told = drill(write(), status=3).stderr
    assert f"{deep} is too long a path for the drill's sockets" in told
    assert "TMPDIR" in told
    assert list(deep.iterdir()) == []


def test_a_baseline_that_fails_by_itself_tells_nothing(write: Write, backend: Scripted) -> None:
    backend.script(mode="broken")
    told = drill(write(), "--defect", "json", "--pairs", "8", status=3).stderr
    assert "the baseline itself fails 100% of 8 structured_output pairs" in told


def test_a_backend_that_answers_errors_breaks_the_drill(write: Write, backend: Scripted) -> None:
    backend.script(mode="error")
    told = drill(write(), "--defect", "refusal", status=3).stderr
    assert "the logs are kept in" in told
    assert "the baseline's backends do not answer the drill" in told
    assert "500" in told
