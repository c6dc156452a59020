"""LiteLLM's proxy as an arm, in an environment of its own that is thrown away."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.benchmarks.rig import UNDER_TEST, Arm, pinned, wait_for
from tests.ports import free_port

PACKAGE = "litellm[proxy]"
INSTALL_SECONDS, START_SECONDS = 900.0, 120.0
ALONE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "LITELLM_TELEMETRY": "False",
    # It ends a stream that says the same a hundred times over, as the scripted engine's do.
    "REPEATED_STREAMING_CHUNK_LIMIT": "1000000",
    # It listens on loopback for as long as the benchmark runs, and holds no key worth stealing.
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
"""So that it asks nobody on the internet, starts without a key, and hands every event on."""


class CannotRun(RuntimeError):
    """It cannot be installed, started, or does not answer."""


@contextmanager
def litellm(folder: Path, upstream: int, *, name: str) -> Iterator[Arm]:
    """Installed from the package index, one worker on the core under test, in front of a port."""
    home = folder / "litellm"
    python = home / "bin" / "python"
    print("installing LiteLLM's proxy, which takes a few minutes", file=sys.stderr, flush=True)
    for command in (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE],
    ):
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise CannotRun(f"not installed within {INSTALL_SECONDS:g} s") from error
        if ran.returncode:
            raise CannotRun(f"not installed: {ran.stderr.strip()[-500:]}")
    port = free_port()
    shape = {
        "model_list": [
            {
                "model_name": "m",
                "litellm_params": {
                    "model": "openai/m",
                    "api_base": f"http://127.0.0.1:{upstream}/v1",
                    "api_key": "none",
                },
            }
        ],
        "litellm_settings": {"telemetry": False},
    }
    (home / "config.yaml").write_text(yaml.safe_dump(shape))
    command = [
        str(python.with_name("litellm")),
        "--config", str(home / "config.yaml"),
        "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1",
    ]  # fmt: skip
    log = folder / "litellm.log"
    with pinned(UNDER_TEST, command, log=log, environ=ALONE) as process:
        try:
            wait_for(port, START_SECONDS, log=log)
            _ask(port)
        except OSError as error:
            raise CannotRun(str(error)) from error
        yield Arm(name=name, port=port, pid=process.pid)


def _ask(port: int) -> None:
    """OSError unless it passes a request on."""
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60):
        return
