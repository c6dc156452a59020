"""`tiergate api` as a process: it starts, answers, stops in order, and says what is wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

import evaluators
from tests.conftest import ValkeyServer
from tests.leash import Leashed


def command(folder: Path, redis_url: str, port: int, **store: str) -> subprocess.Popen[str]:
    """The command with a configuration of its own."""
    backend = "http://127.0.0.1:9"
    configuration = {
        "models": {
            "org/model": {
                "ladder": [{"tier": "bf16", "backends": [backend]}, {"tier": "w8a8", "backends": [backend]}]
            }
        },
        "api": {"listen": f"127.0.0.1:{port}", "allowed_hosts": ["tiergate.example"]},
        "store": {"redis": redis_url, "state_dir": str(folder), **store},
    }
    file = folder / "tiergate.yaml"
    file.write_text(yaml.safe_dump(configuration))
    environ = {name: text for name, text in os.environ.items() if not name.startswith("TIERGATE_")}
    return Leashed(
        [sys.executable, "-m", "service.cli", "api", "-c", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environ,
    )


@contextmanager
def running(folder: Path, redis_url: str, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    url = f"http://127.0.0.1:{port}"
    process = command(folder, redis_url, port)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if httpx.get(f"{url}/readyz", trust_env=False).is_success:
                    break
            except httpx.TransportError:
                pass
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield process, url
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has loaded is read from /proc")
def test_what_a_decision_needs_is_loaded_before_it_listens(
    tmp_path: Path, valkey: ValkeyServer, free_port: int
) -> None:
    with running(tmp_path, valkey.url, free_port) as (process, _):
        assert "/scipy/optimize/_zeros" in Path(f"/proc/{process.pid}/maps").read_text()


def test_what_is_loaded_for_good_is_out_of_the_collectors_sight() -> None:
    code = (
        "import gc, service.approval.app; from service.cli.api import settle; settle(); "
        "print(gc.get_freeze_count(), len(gc.get_objects()))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    frozen, seen = map(int, told.split())
    assert frozen > 100 * seen


def test_it_answers_and_stops_in_order(tmp_path: Path, valkey: ValkeyServer, free_port: int) -> None:
    with running(tmp_path, valkey.url, free_port) as (process, url):
        with httpx.Client(base_url=url, trust_env=False) as client:
            models = client.get("/api/v1/models").json()
            assert models["models"][0]["model"] == "org/model"
            page = client.get("/")
            assert "org/model" in page.text
            assert client.get("/docs").status_code == 200
            assert client.get("/assets/site.css").status_code == 200
            # Others know it by this name: whoever asks by it shows a token, wherever they are.
            assert client.get("/", headers={"Host": "tiergate.example"}).status_code == 401
            assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
            verdict = client.get("/api/v1/models/org/model/tiers/w8a8/verdict").json()
            assert len(verdict["epoch"]) == 64
            assert [finding["criterion"] for finding in verdict["findings"]] == [
                evaluator.name for evaluator in evaluators.ALL
            ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_port_in_use_says_by_what_key_it_is_named(tmp_path: Path, valkey: ValkeyServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = command(tmp_path, valkey.url, taken.getsockname()[1])
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "api.listen" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("sqlite:///{folder}/broken.db", "restore a backup"),
        ("postgresql://nobody@127.0.0.1:{port}/none", "TIERGATE_DATABASE_URL"),
    ],
)
def test_a_database_that_cannot_be_used_says_what_to_do(
    tmp_path: Path, valkey: ValkeyServer, free_port: int, url: str, advice: str
) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database" * 1000)
    process = command(tmp_path, valkey.url, free_port, database=url.format(folder=tmp_path, port=free_port))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert advice in output
    assert "Traceback" not in output
