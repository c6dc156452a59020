"""One llama.cpp server as a process: it serves, it caches as told, it ends when told."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from service.demo.llama_server import command
from service.demo.quantise import requantise
from service.demo.tiers import KvType, Scheme
from tests.demo.tiny_llama import write_tiny_llama
from tests.leash import Leashed
from tests.ports import free_port

PATIENCE = 40.0


@contextmanager
def serving(
    model: Path, *, kv: KvType = KvType.F16
) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """The server in a process of its own, once it is healthy."""
    port = free_port()
    server = Leashed(command(model, port=port, name="tiny", kv=kv), stdout=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            _healthy(http, server)
            yield http, server
    finally:
        server.kill()
        server.wait()


def _healthy(http: httpx.Client, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert server.poll() is None
        assert time.monotonic() < deadline
        try:
            if http.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)


def ask(text: str, **further: object) -> dict[str, object]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 8, **further}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_tiny_llama(path)
    return path


def test_it_answers_alike_whether_streamed_or_not_and_ends_on_sigterm(model: Path) -> None:
    with serving(model) as (http, server):
        assert http.get("/v1/models").json()["data"][0]["id"] == "tiny"
        whole = http.post("/v1/chat/completions", json=ask("hello", temperature=0)).json()
        streamed = http.post("/v1/chat/completions", json=ask("hello", temperature=0, stream=True)).text
        chunks = [
            json.loads(line.removeprefix("data: "))
            for line in streamed.splitlines()
            if line.startswith("data: {")
        ]
        pieces = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"]]
        assert "".join(pieces) == whole["choices"][0]["message"]["content"]
        assert whole["usage"]["completion_tokens"] == 8
        assert "llamacpp:" in http.get("/metrics").text
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0


def test_a_prompt_whose_slot_was_taken_over_is_not_paid_for_again(model: Path) -> None:
    def cached(http: httpx.Client, text: str) -> int:
        usage = http.post("/v1/chat/completions", json=ask(text)).json()["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    with serving(model) as (http, _):
        first = "a" * 200
        assert cached(http, first) == 0
        cached(http, "b" * 200)
        assert cached(http, first) > 150


@pytest.mark.parametrize("scheme", [Scheme.Q8_0, Scheme.Q4_0, Scheme.MXFP4, Scheme.Q2_K])
def test_what_the_quantiser_writes_can_be_served(model: Path, tmp_path: Path, scheme: Scheme) -> None:
    requantise(model, tmp_path / "made.gguf", scheme)
    with serving(tmp_path / "made.gguf") as (http, _):
        assert http.post("/v1/chat/completions", json=ask("hello")).status_code == 200


def test_a_quantised_cache_can_be_served(model: Path) -> None:
    with serving(model, kv=KvType.Q8_0) as (http, _):
        assert http.post("/v1/chat/completions", json=ask("hello")).status_code == 200


def test_a_model_that_is_not_there_says_so(tmp_path: Path) -> None:
    missing = command(tmp_path / "none.gguf", port=1, name="tiny", kv=KvType.F16)
    told = subprocess.run(missing, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert f"there is no model file {tmp_path / 'none.gguf'}" in told.stderr
