"""Pages as engines give them; the numbers of vLLM are of 0.32 on CPU, bf16 and fp8_e5m2 KV cache in 1 GiB."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.launch import engines
from service.launch.engines import Engine, mixed, same_engine, same_kv_dtype


def vllm_metrics(cache_dtype: str, tokens: int) -> str:
    return (
        "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
        "# TYPE vllm:cache_config_info gauge\n"
        f'vllm:cache_config_info{{block_size="128",cache_dtype="{cache_dtype}",enable_prefix_caching="True",'
        f'engine="0",gpu_memory_utilization="0.92",kv_cache_size_tokens="{tokens}"}} 1.0\n'
    )


SGLANG = json.dumps(
    {
        "kv_cache_dtype": "fp8_e5m2",
        "mem_fraction_static": 0.836,
        "served_model_name": "qwen",
        "max_total_num_tokens": 20480,
        "version": "0.5.9",
    }
)
LLAMA_CPP = json.dumps({"build_info": "b6999-1c398dc9e", "total_slots": 1, "chat_template": ""})


@pytest.mark.parametrize(("dtype", "tokens"), [("auto", 46592), ("fp8_e5m2", 93184)])
def test_vllm_tells_version_and_kv_cache(dtype: str, tokens: int) -> None:
    assert engines.vllm('{"version":"0.32.0"}', vllm_metrics(dtype, tokens)) == Engine(
        name="vllm", version="0.32.0", kv_dtype=dtype, kv_tokens=tokens
    )


@pytest.mark.parametrize(
    "metrics",
    ["", "<html>", 'vllm:cache_config_info{block_size="16"} 1.0\n', "# TYPE x gauge\nx{broken 1\n"],
)
def test_vllm_without_that_metric_leaves_the_kv_cache_untold(metrics: str) -> None:
    assert engines.vllm('{"version":"0.9.1"}', metrics) == Engine(name="vllm", version="0.9.1")


def test_sglang_and_llama_cpp_tell_what_they_know() -> None:
    assert engines.sglang(SGLANG) == Engine(
        name="sglang", version="0.5.9", kv_dtype="fp8_e5m2", kv_tokens=20480
    )
    assert engines.llama_cpp(LLAMA_CPP) == Engine(name="llama.cpp", version="b6999-1c398dc9e")


@pytest.mark.parametrize("page", ["", "{}", "[]", "null", '"x"', "<html>", '{"version": 3}'])
def test_the_page_of_something_else_is_nobodys(page: str) -> None:
    assert engines.vllm(page, "") is None
    assert engines.sglang(page) is None
    assert engines.llama_cpp(page) is None


@pytest.mark.parametrize("page", ["[]", '{"data": 3}', "{}", "<html>"])
def test_a_page_without_a_list_of_models_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="no list of models"):
        engines.served_models(page)


def test_models_are_listed_in_order() -> None:
    assert engines.served_models('{"data": [{"id": "a"}, {"root": "x"}, 7, {"id": "b"}]}') == ("a", "b")


@pytest.mark.parametrize(
    ("declared", "told", "same"),
    [
        ("fp8", "fp8_e4m3", True),
        ("fp8", "fp8_e5m2", True),
        ("fp8_e4m3", "fp8_e5m2", False),
        ("FP8_E5M2", "fp8_e5m2", True),
        ("bf16", "bfloat16", True),
        ("bf16", "auto", True),  # auto follows a 16-bit checkpoint
        ("fp8", "auto", False),
        ("int8", "fp8", False),
        ("nvfp4", "nvfp4", True),
        ("bf16", "fp8_e4m3", False),
    ],
)
def test_words_for_the_same_kv_cache_agree(declared: str, told: str, same: bool) -> None:
    assert same_kv_dtype(declared, told) is same


@pytest.mark.parametrize(
    ("declared", "same"),
    [
        ("vllm", True),
        ("vllm 0.32.0", True),
        ("vllm-0.32", True),
        ("vllm==0.32.0", True),
        ("vLLM v0.32.0", True),
        ("vllm 0.3", False),  # 0.3 is another version than 0.32
        ("vllm 0.32.1", False),
        ("sglang", False),
    ],
)
def test_a_declared_engine_agrees_by_name_and_beginning_of_version(declared: str, same: bool) -> None:
    assert same_engine(declared, Engine(name="vllm", version="0.32.0")) is same


def test_a_llama_cpp_build_agrees_by_its_number() -> None:
    engine = Engine(name="llama.cpp", version="b6999-1c398dc9e")
    assert same_engine("llama.cpp b6999", engine)
    assert same_engine("llama.cpp-b6999-1c398dc9e", engine)
    assert not same_engine("llama.cpp b699", engine)


def test_an_engine_that_does_not_tell_its_version_agrees_with_no_version() -> None:
    assert same_engine("sglang", Engine(name="sglang"))
    assert not same_engine("sglang 0.5", Engine(name="sglang"))


def test_replicas_are_mixed_when_one_differs() -> None:
    one, other = Engine(name="vllm", version="0.32.0"), Engine(name="vllm", version="0.31.0")
    assert mixed([one, other])
    assert not mixed([one, one])
    assert not mixed([])


@given(st.text(), st.text())
def test_no_page_makes_a_reader_fail(version: str, metrics: str) -> None:
    engines.vllm(version, metrics)
    engines.vllm('{"version": "1"}', metrics)
    engines.sglang(version)
    engines.llama_cpp(version)
