"""How full a KV cache is, from a few lines of a long page."""

from __future__ import annotations

import pytest

from service.engines.load import engine_load
from service.engines.pressure import Pressure, pressure

VLLM = """\
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 9.0
vllm:num_requests_running_by_nobody{engine="1"} 99.0
vllm:num_requests_waiting{engine="1",model_name="m"} 2.0"""
OTHERS = "".join(f'vllm:request_seconds_bucket{{le="{bound}"}} {bound}.0\n' for bound in range(2000))


@pytest.mark.parametrize("page", [VLLM, f"{OTHERS}{VLLM}\n{OTHERS}", f"{VLLM}\n"])
def test_the_fullest_replica_and_all_requests_are_told(page: str) -> None:
    assert pressure(page) == Pressure(usage=0.75, running=12, waiting=2)


def test_it_is_what_reading_the_whole_page_tells() -> None:
    load = engine_load(f"{OTHERS}{VLLM}\n{OTHERS}")
    assert load is not None
    assert (load.kv_usage, load.running, load.waiting) == (0.75, 12, 2)


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("sglang:token_usage 0.5\nsglang:num_running_reqs 4\n", Pressure(usage=0.5, running=4)),
        ("llamacpp:kv_cache_usage_ratio 0.9\n", Pressure(usage=0.9)),
        ("llamacpp:requests_processing 1\n", None),
        ("vllm:kv_cache_usage_perc NaN\n", None),
        ("tgi_batch_current_size 3\n", None),
        ("", None),
    ],
)
def test_engines_tell_it_by_their_own_names_or_not_at_all(page: str, told: Pressure | None) -> None:
    assert pressure(page) == told


def test_a_metric_whose_name_begins_alike_is_another() -> None:
    page = (
        "vllm:kv_cache_usage_perc_peak 0.9\nvllm:kv_cache_usage_perc 0.25\nvllm:num_requests_running_now 3\n"
    )
    assert pressure(page) == Pressure(usage=0.25)


def test_the_older_name_counts_where_the_newer_is_not() -> None:
    assert pressure("vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_percent 0.7\n") == Pressure(usage=0.5)
