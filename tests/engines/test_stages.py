"""Prefix counters and time by stage, from pages as engines write them."""

from __future__ import annotations

from pathlib import Path

from service.capacity.prefix_gate import Advice, Reading, judge, window_of
from service.engines.stages import prefix_look, prefix_reading
from tests.demo.test_llama_server import ask, serving
from tests.demo.tiny_llama import write_tiny_llama

VLLM = """\
vllm:prefix_cache_queries_total{engine="0",model_name="smollm2"} 150.0
vllm:prefix_cache_hits_total{engine="0",model_name="smollm2"} 48.0
vllm:request_prefill_time_seconds_sum{engine="0",model_name="smollm2"} 0.5
vllm:request_prefill_time_seconds_sum{engine="1",model_name="smollm2"} 0.25
vllm:request_prefill_time_seconds_count{engine="0",model_name="smollm2"} 4.0
vllm:request_decode_time_seconds_sum{engine="0",model_name="smollm2"} 2.0
"""
SGLANG = """\
sglang:prompt_tokens_total{model_name="m"} 900.0
sglang:cached_tokens_total{cache_source="device",model_name="m"} 300.0
"""


def test_vllm_tells_tokens_and_seconds_over_all_engines() -> None:
    found = prefix_reading(VLLM)
    assert found is not None
    assert (found.prefill_tokens, found.reused_tokens) == (150, 48)
    assert (found.prefill_seconds, found.decode_seconds) == (0.75, 2.0)


def test_sglang_tells_tokens() -> None:
    found = prefix_reading(SGLANG)
    assert found is not None
    assert (found.prefill_tokens, found.reused_tokens, found.prefill_seconds) == (900, 300, None)


def test_llama_cpp_tells_what_it_computed_and_what_it_reused() -> None:
    found = prefix_reading(
        "llamacpp:prompt_tokens_total 600\nllamacpp:prompt_tokens_cached_total 200\n"
        "llamacpp:prompt_seconds_total 1.5\nllamacpp:tokens_predicted_seconds_total 4.5\n"
        "llamacpp:tokens_predicted_total 90\n"
    )
    assert found == Reading(prefill_tokens=800, reused_tokens=200, prefill_seconds=1.5, decode_seconds=4.5)
    assert prefix_reading("llamacpp:prompt_tokens_total 600\n") is None, "builds of before"


def test_a_real_engine_s_rate_is_that_of_the_tokens_its_answers_tell(tmp_path: Path) -> None:
    """A prompt in common, sent four times with ends of their own: the first computes all of it."""
    model = tmp_path / "tiny.gguf"
    write_tiny_llama(model)
    with serving(model) as (http, _):
        before = prefix_reading(http.get("/metrics").text)
        prompts = ["a" * 300 + each * 50 for each in "bcde"]
        told = [http.post("/v1/chat/completions", json=ask(each)).json()["usage"] for each in prompts]
        after = prefix_reading(http.get("/metrics").text)
    assert before is not None
    assert after is not None
    window = window_of([before, after], hours=24)
    cached = [each["prompt_tokens_details"]["cached_tokens"] for each in told]
    assert window.reused_tokens == sum(cached) > 2 * 300
    assert window.prefill_tokens == sum(each["prompt_tokens"] for each in told)
    assert window.prefill_share is not None
    assert 0 < window.prefill_share < 1
    assert judge(window).advice in {Advice.LINEAR, Advice.OWN_POOL}, "by how its time divides"


def test_what_is_no_number_is_not_counted() -> None:
    found = prefix_reading(VLLM.replace(" 2.0", " NaN").replace(" 0.25", " soon"))
    assert found is not None
    assert (found.prefill_seconds, found.decode_seconds) == (0.5, None)


def test_a_page_without_a_prefix_cache_is_none() -> None:
    assert prefix_reading("vllm:num_requests_running 1.0\n") is None
    assert prefix_reading("go_goroutines 7\n") is None


def test_a_look_tells_how_busy_it_is_besides() -> None:
    page = f"{VLLM}vllm:num_requests_running 7.0\nvllm:kv_cache_usage_perc 0.5\n"
    found = prefix_look(page, backend="http://a", at=9.0)
    assert found is not None
    assert (found.backend, found.at, found.running, found.kv_usage, found.evicted) == (
        "http://a",
        9,
        7,
        0.5,
        None,
    )
    assert found.reading == prefix_reading(VLLM)
    evicting = prefix_look(f"{SGLANG}sglang:evicted_tokens_total 32.0\n", backend="http://b", at=9.0)
    assert evicting is not None
    assert evicting.evicted == 32


def test_a_page_without_a_prefix_cache_is_no_look() -> None:
    assert prefix_look("vllm:num_requests_running 1.0\n", backend="http://a", at=9.0) is None
