"""What the guard reads of engines: a real llama.cpp server, and names as others write them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from service.engines.load import engine_load
from service.engines.pressure import Pressure, pressure
from service.fleet import KvGuard
from tests.demo.test_llama_server import ask, serving
from tests.demo.tiny_llama import write_tiny_llama
from tests.patience import PATIENCE
from tests.proxy.standing import StartProxy, eventually, ladder
from tests.proxy.test_kv_guard import gauges, guarded, server_of

GUARD = KvGuard(above=0.9, below=0.8, every=0.05, stale=0.1)


async def test_a_real_llama_cpp_server_tells_no_use_of_its_cache_and_the_guard_says_so_and_holds_nobody(
    tmp_path: Path, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    model = tmp_path / "tiny.gguf"
    write_tiny_llama(model)
    with serving(model) as (direct, _):
        url = str(direct.base_url).rstrip("/")
        proxy = await start_proxy(guarded(ladder(url, model="tiny"), GUARD))
        server = server_of(proxy, model="tiny")
        told = f"backend {url} does not tell its KV cache, so that its guard is open: "
        await eventually(lambda: f"{told}its /metrics has no usage of a KV cache" in caplog.text)
        assert gauges(proxy, server) == {"kv_guard_closed": 0, "kv_guard_blind": 1}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{proxy.port}", timeout=PATIENCE) as client:
            questions = [client.post("/v1/chat/completions", json=ask(f"question {n}")) for n in range(3)]
            answers = await asyncio.gather(*questions)
        assert [each.status_code for each in answers] == [200, 200, 200]
        assert server.most is None
        page = direct.get("/metrics").text
    load = engine_load(page)
    assert load is not None, "what runs and what waits it does tell"
    assert (load.running, load.waiting, load.kv_usage) == (0, 0, None)
    assert pressure(page) is None


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ('vllm:kv_cache_usage_perc{engine="0"} 0.5\nvllm:num_requests_running{engine="0"} 4\n', (0.5, 4)),
        ("vllm:gpu_cache_usage_perc 0.5\nvllm:num_requests_running 4\n", (0.5, 4)),
        ("sglang:full_token_usage 0.5\nsglang:token_usage 0.4\nsglang:num_running_reqs 4\n", (0.5, 4)),
        ("sglang:token_usage 0.5\nsglang:num_running_reqs 4\n", (0.5, 4)),
        ("llamacpp:kv_cache_usage_ratio 0.5\nllamacpp:requests_processing 4\n", (0.5, 4)),
        ("llamacpp:n_busy_slots_per_decode 3\nllamacpp:requests_processing 4\n", None),
        ("tgi_batch_current_max_tokens 300\ntgi_batch_current_size 4\n", None),
        ("vllm:cpu_cache_usage_perc 0.5\nvllm:num_requests_running 4\n", None),
    ],
)
def test_each_engine_is_read_by_the_names_of_its_versions(
    page: str, told: tuple[float, float] | None
) -> None:
    assert pressure(page) == (None if told is None else Pressure(usage=told[0], running=told[1]))
