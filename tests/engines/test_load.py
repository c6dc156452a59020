"""Metrics as engines tell them, by version; text of our own after their pages."""

from __future__ import annotations

import pytest

from service.engines.load import EngineLoad, engine_load, own_words

VLLM_0_32 = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="qwen"} 5.0
vllm:num_requests_waiting{engine="0",model_name="qwen"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="qwen",reason="capacity"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="qwen"} 0.25
vllm:prefix_cache_queries_total{engine="0",model_name="qwen"} 1.5e+03
vllm:prefix_cache_queries_created{engine="0",model_name="qwen"} 1.79e+09
vllm:prefix_cache_hits_total{engine="0",model_name="qwen"} 600.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="qwen"} 7.0
vllm:num_preemptions_total{engine="0",model_name="qwen"} 3.0
vllm:e2e_request_latency_seconds_bucket{engine="0",le="0.3",model_name="qwen"} 1.0
"""


def test_vllm_tells_everything() -> None:
    assert engine_load(VLLM_0_32) == EngineLoad(
        running=5, waiting=2, kv_usage=0.25, preemptions=3, prefix_queries=1500, prefix_hits=600
    )


def test_old_names_of_vllm_are_read_and_both_at_once_count_once() -> None:
    old = VLLM_0_32.replace("kv_cache_usage", "gpu_cache_usage").replace(":prefix_cache", ":gpu_prefix_cache")
    assert engine_load(old) == engine_load(VLLM_0_32)
    assert engine_load(VLLM_0_32 + old) == engine_load(VLLM_0_32)


def test_replicas_behind_one_page_add_up_and_the_fullest_cache_counts() -> None:
    second = VLLM_0_32.replace('engine="0"', 'engine="1"').replace("0.25", "0.75")
    found = engine_load(VLLM_0_32 + second)
    assert found is not None
    assert (found.running, found.kv_usage, found.prefix_queries) == (10, 0.75, 3000)


def test_sglang_tells_once_for_all_ranks_of_a_replica() -> None:
    page = "".join(
        f'sglang:num_running_reqs{{model_name="q",tp_rank="{rank}"}} 4.0\n'
        f'sglang:num_queue_reqs{{model_name="q",tp_rank="{rank}"}} 1.0\n'
        f'sglang:token_usage{{model_name="q",tp_rank="{rank}"}} 0.5\n'
        for rank in range(2)
    )
    page += (
        'sglang:num_retracted_requests_total{model_name="q"} 2.0\n'
        'sglang:realtime_tokens_total{mode="prefill_compute",model_name="q"} 300.0\n'
        'sglang:realtime_tokens_total{mode="prefill_cache",model_name="q"} 100.0\n'
        'sglang:realtime_tokens_total{mode="decode",model_name="q"} 900.0\n'
    )
    assert engine_load(page) == EngineLoad(
        running=4, waiting=1, kv_usage=0.5, preemptions=2, prefix_queries=400, prefix_hits=100
    )


@pytest.mark.parametrize(
    "page",
    [
        'sglang:prefill_effective_tokens_total{mode="input"} 60\n'
        'sglang:prefill_effective_tokens_total{mode="device_hit"} 30\n'
        'sglang:prefill_effective_tokens_total{mode="host_hit"} 10\n',
        'sglang:prompt_tokens_total{model_name="q"} 100\n'
        'sglang:cached_tokens_total{cache_source="device"} 30\n'
        'sglang:cached_tokens_total{cache_source="host"} 10\n',
    ],
)
def test_sglangs_prefix_hits_are_counted_in_tokens_by_any_of_its_names(page: str) -> None:
    found = engine_load(page)
    assert found is not None
    assert (found.prefix_queries, found.prefix_hits) == (100, 40)


def test_llama_cpp_and_tgi_tell_what_they_have() -> None:
    assert engine_load("llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n") == EngineLoad(
        running=2, waiting=1
    )
    assert engine_load("tgi_batch_current_size 3\ntgi_queue_size 0\n") == EngineLoad(running=3, waiting=0)


def test_zero_is_told_and_absent_is_unknown() -> None:
    found = engine_load("vllm:num_requests_running 0.0\n")
    assert found == EngineLoad(running=0.0)


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<html>no</html>",
        "python_gc_objects_collected_total 3\n",
        "vllm:num_requests_running NaN\n",
        "vllm:num_requests_running\n",
        'vllm:num_requests_running{engine="0"} busy\n',
        'vllm:prefix_cache_hits_total{engine="0"} 3\n',
    ],
)
def test_a_page_that_tells_nothing_of_an_engine_is_none(page: str) -> None:
    assert engine_load(page) is None


def test_labels_may_hold_braces_and_blanks() -> None:
    assert engine_load('vllm:num_requests_running{model_name="a } b"} 2 1790000000\n') == EngineLoad(
        running=2
    )


def test_sglang_tells_tokens_that_left_its_prefix_cache() -> None:
    page = "".join(
        f'sglang:evicted_tokens_total{{model_name="q",tp_rank="{rank}"}} 42.0\n' for rank in range(2)
    )
    assert engine_load(page) == EngineLoad(evicted_tokens=42)


def test_memory_of_the_process_is_told_beside_an_engine_and_makes_none() -> None:
    found = engine_load(VLLM_0_32 + "process_resident_memory_bytes 7.5e+08\n")
    assert found is not None
    assert (found.resident_bytes, found.running) == (7.5e8, 5)
    assert engine_load("process_resident_memory_bytes 7.5e+08\n") is None


def test_an_engines_own_words_are_the_lines_that_only_its_work_changes() -> None:
    idle = "# HELP x\nprocess_cpu_seconds_total 1.5\nvllm:num_requests_running 0.0\nhttp_requests_total 3\n"
    assert own_words(idle) == own_words(idle.replace("1.5", "1.6").replace("total 3", "total 4"))
    assert own_words(idle) != own_words(idle.replace("running 0.0", "running 1.0"))
    assert own_words("process_cpu_seconds_total 1.5\n") == ""
