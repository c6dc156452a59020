"""`tiergate up`: everything starts, is found, is told to stop or killed, and nothing stays behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.launch import PortUnusable
from service.launch.ports import check_free
from service.settings.units import Listen
from tests.conftest import ValkeyServer
from tests.launch.conftest import eventually, models_page, runs, serving
from tests.leash import Leashed
from tests.ports import free_port

pytestmark = pytest.mark.timeout(300)

WELL = {"/health": (200, ""), "/v1/models": (200, models_page("qwen")), "/extra": (200, "{}")}
PARTS = ["valkey", "api", "guard", "worker", "load", "beat", "proxy"]


@pytest.fixture
def backend() -> Iterator[str]:
    with serving(WELL) as url:
        yield url


def configuration(directory: Path, backend: str, *, proxy: int = 0, api: int = 0) -> None:
    (directory / "tiergate.yaml").write_text(
        "models:\n  qwen:\n    ladder:\n"
        f"      - {{tier: bf16, backends: ['{backend}'], shadow: ['{backend}']}}\n"
        f"      - {{tier: w8a8, backends: ['{backend}']}}\n"
        f"proxy: {{listen: '127.0.0.1:{proxy}', admin: '127.0.0.1:0'}}\n"
        f"api: {{listen: '127.0.0.1:{api}'}}\n"
    )


def start(directory: Path, **environ: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIERGATE_")}
    return Leashed(
        [sys.executable, "-m", "service.cli", "up"],
        cwd=directory,
        env={**clean, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextmanager
def up(directory: Path, **environ: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs it until everything is ready; yields the process and what it has printed."""
    with start(directory, **environ) as child:
        assert child.stdout is not None
        printed = ""
        for line in child.stdout:
            printed += line
            if line.startswith("Ctrl-C stops"):
                break
        try:
            assert "Tiergate runs." in printed, printed
            yield child, printed
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            child.communicate(timeout=120)


def refusal(directory: Path, **environ: str) -> str:
    """What it prints when it does not start; its exit status is not 0."""
    with start(directory, **environ) as child:
        printed, _ = child.communicate(timeout=120)
    assert child.returncode not in (0, None), printed
    assert "Traceback" not in printed
    return printed


def descendants(state_dir: Path) -> list[int]:
    """Every process that was given this state directory, whoever its parent is by now."""
    mark = f"TIERGATE_STATE_DIR={state_dir}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0") and runs(int(entry.name)):
                    found.append(int(entry.name))
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue
    return found


def address(printed: str, name: str) -> str:
    found = re.search(rf"^  {name} +(http://[0-9.:]+)", printed, re.MULTILINE)
    assert found is not None, printed
    return found[1]


def status_of(url: str, *, token: str | None = None) -> int:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_everything_runs_is_found_and_is_gone_after_a_stop_signal(tmp_path: Path, backend: str) -> None:
    configuration(tmp_path, backend)
    state_dir = tmp_path / ".tiergate"
    with up(tmp_path) as (child, printed):
        ready = re.findall(r"(\w+) is ready", printed)
        assert (ready[0], sorted(ready)) == ("valkey", sorted(PARTS))
        proxy, api = address(printed, "proxy"), address(printed, "API")
        token_file = state_dir / "token"
        assert str(token_file) in printed
        assert f"export TIERGATE_URL={api}\n" in printed
        assert token_file.stat().st_mode & 0o777 == 0o600
        token = token_file.read_text().strip()
        assert token not in printed
        with urllib.request.urlopen(f"{proxy}/v1/models", timeout=20) as answer:
            assert [model["id"] for model in json.load(answer)["data"]] == ["qwen"]
        assert status_of(f"{api}/api/v1/ledger", token=token) == 200
        assert status_of(f"{api}/docs") == 200
        assert status_of(f"{address(printed, 'dashboard')}/") == 200
        metrics = re.findall(r"http://\S+/metrics", printed)
        assert len(metrics) == 6
        assert [status_of(url, token=token) for url in metrics] == [200] * len(metrics)
        assert sorted(file.stem for file in (state_dir / "logs").iterdir()) == sorted(PARTS)

        second = refusal(tmp_path)
        assert f"in use by pid {child.pid}" in second
        port = proxy.rpartition(":")[2]
        taken = refusal(
            tmp_path, TIERGATE_STATE_DIR=str(tmp_path / "other"), TIERGATE_PROXY_LISTEN=f"127.0.0.1:{port}"
        )
        assert f"proxy.listen: 127.0.0.1:{port} is already in use" in taken

        assert len(descendants(state_dir)) >= len(PARTS)
        child.send_signal(signal.SIGTERM)
        rest, _ = child.communicate(timeout=120)
    assert child.returncode == 0, rest
    stopped = re.findall(r"stopping (\w+)", rest)
    assert stopped == PARTS[::-1]
    assert "killed" not in rest
    assert descendants(state_dir) == []
    assert not (state_dir / "redis.url").exists()


def test_a_crashed_part_comes_back_and_a_killed_supervisor_leaves_nobody(
    tmp_path: Path, backend: str
) -> None:
    configuration(tmp_path, backend)
    state_dir = tmp_path / ".tiergate"
    with up(tmp_path) as (child, printed):
        api = address(printed, "API")
        (victim,) = [pid for pid in descendants(state_dir) if b"\0api\0" in command_of(pid)]
        os.kill(victim, signal.SIGKILL)
        assert eventually(lambda: victim not in descendants(state_dir))
        assert eventually(lambda: answers(f"{api}/healthz"), seconds=60)
        assert len(descendants(state_dir)) >= len(PARTS)
        child.kill()
        child.wait()
        assert eventually(lambda: descendants(state_dir) == [], seconds=30)
    token = (state_dir / "token").read_text()
    with up(tmp_path):
        assert (state_dir / "token").read_text() == token


def four_free_ports() -> int:
    """The first of four in a row."""
    while True:
        first = free_port()
        with contextlib.suppress(OSError, PortUnusable):
            for place in range(4):
                check_free(Listen(host="127.0.0.1", port=first + place), "")
            return first


def test_a_redis_of_ones_own_is_used_and_metrics_are_where_one_wants_them(
    tmp_path: Path, backend: str, own_valkey: ValkeyServer
) -> None:
    configuration(tmp_path, backend)
    port = four_free_ports()
    listen = f"127.0.0.1:{port}"
    with up(tmp_path, TIERGATE_REDIS_URL=own_valkey.url, TIERGATE_WORKER_LISTEN=listen) as (_, printed):
        assert "valkey is ready" not in printed
        metrics = re.findall(r"http://\S+/metrics", printed)
        assert metrics[2:] == [f"http://127.0.0.1:{port + place}/metrics" for place in range(4)]
        assert [status_of(url) for url in metrics[2:]] == [200] * 4
        assert "proxy is ready" in printed
        with own_valkey.client() as client:
            assert client.dbsize() > 0


def test_a_dead_baseline_is_refused_with_what_to_do(tmp_path: Path) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    configuration(tmp_path, dead)
    printed = refusal(tmp_path)
    assert f"qwen/bf16 {dead}: cannot be reached" in printed
    assert "--no-check" in printed
    assert not (tmp_path / ".tiergate" / "logs").exists()


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path: Path, backend: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        configuration(tmp_path, backend, api=port)
        printed = refusal(tmp_path)
    assert f"api.listen: 127.0.0.1:{port} is already in use" in printed
    assert "TIERGATE_API_LISTEN" in printed
    assert not (tmp_path / ".tiergate" / "logs").exists()


def test_metrics_addresses_that_cannot_be_had_are_refused(tmp_path: Path, backend: str) -> None:
    configuration(tmp_path, backend)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        printed = refusal(tmp_path, TIERGATE_WORKER_LISTEN=f"127.0.0.1:{port}")
    assert f"TIERGATE_WORKER_LISTEN: 127.0.0.1:{port} is already in use" in printed
    assert "set TIERGATE_WORKER_LISTEN to another address" in printed
    for wrong in ("8083", "127.0.0.1:65534"):
        assert "TIERGATE_WORKER_LISTEN: " in refusal(tmp_path, TIERGATE_WORKER_LISTEN=wrong)
    assert not (tmp_path / ".tiergate" / "logs").exists()


def test_a_corrupt_database_is_refused_with_what_to_do(tmp_path: Path, backend: str) -> None:
    configuration(tmp_path, backend)
    (tmp_path / ".tiergate").mkdir()
    (tmp_path / ".tiergate" / "tiergate.db").write_bytes(b"no database" * 1000)
    printed = refusal(tmp_path)
    assert "restore a backup, or move it away" in printed


def test_a_missing_key_is_refused_with_how_to_make_one(tmp_path: Path, backend: str) -> None:
    configuration(tmp_path, backend)
    printed = refusal(tmp_path, TIERGATE_CAPTURE_KEY_FILE=str(tmp_path / "no.key"))
    assert f"there is no file {tmp_path / 'no.key'}" in printed


def test_a_redis_that_is_not_there_is_refused_with_what_to_do(tmp_path: Path, backend: str) -> None:
    configuration(tmp_path, backend)
    printed = refusal(tmp_path, TIERGATE_REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    assert "TIERGATE_REDIS_URL" in printed


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def answers(url: str) -> bool:
    try:
        return status_of(url) == 200
    except OSError:
        return False


def test_a_reload_ends_nobody_and_names_what_waits_for_a_restart(tmp_path: Path, backend: str) -> None:
    configuration(tmp_path, backend, proxy=free_port())
    file = tmp_path / "tiergate.yaml"
    with up(tmp_path) as (child, printed):
        before = set(descendants(tmp_path / ".tiergate"))
        proxy = address(printed, "proxy")
        admin = re.findall(r"(http://\S+)/metrics", printed)[0]
        assert reload(admin) == ("unchanged", [])
        written = file.read_text()
        file.write_text(re.sub(r"proxy: \{listen: '[0-9.:]+'", "proxy: {listen: '127.0.0.1:1'", written))
        assert reload(admin) == ("unchanged", ["proxy.listen"])
        assert "proxy.listen: a new value is taken at the next start" in log_of(tmp_path, "proxy")
        file.write_text(written.replace("admin: '127.0.0.1:0'", "admin: '127.0.0.1:1'"))
        assert reload(admin) == ("unchanged", ["proxy.admin"])
        file.write_text(written + "store: {state_dir: other}\n")
        assert "store.state_dir" in reload(admin)[1]
        file.write_text(written)
        assert reload(admin) == ("unchanged", [])

        assert status_of(f"{proxy}/extra") == 404
        file.write_text(written.replace("proxy: {", "proxy: {forward_paths: [/extra], "))
        child.send_signal(signal.SIGHUP)
        assert eventually(lambda: "configuration is read again: applied" in log_of(tmp_path, "proxy"))
        assert eventually(lambda: status_of(f"{proxy}/extra") == 200)
        file.write_text("models: [")
        child.send_signal(signal.SIGHUP)
        assert eventually(lambda: "configuration is not taken" in log_of(tmp_path, "proxy"))
        assert status_of(f"{proxy}/v1/models") == 200
        # Whoever read what it says may leave: a reload is said to nobody then, and made.
        assert child.stdout is not None
        child.stdout.close()
        file.write_text(written)
        child.send_signal(signal.SIGHUP)
        assert eventually(lambda: status_of(f"{proxy}/extra") == 404)
        assert set(descendants(tmp_path / ".tiergate")) == before
        assert child.poll() is None


def reload(admin: str) -> tuple[str, list[str]]:
    """What became of it, and which keys wait."""
    with urllib.request.urlopen(f"{admin}/reload", data=b"", timeout=30) as answer:
        told = json.load(answer)
    return told["outcome"], told["needs_restart"]


def log_of(directory: Path, part: str) -> str:
    return (directory / ".tiergate" / "logs" / f"{part}.log").read_text()
