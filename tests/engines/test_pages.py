"""Pages as engines give them: vLLM 0.32 on CPU with 1 GiB of KV cache, llama.cpp out of xllamacpp 2026.10."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engines import pages
from service.engines.facts import EngineFacts


def vllm_metrics(cache_dtype: str, tokens: int, **labels: str) -> str:
    """The decisive lines of a page of vLLM's metrics."""
    told = {
        "block_size": "128",
        "cache_dtype": cache_dtype,
        "enable_prefix_caching": "True",
        "engine": "0",
        "gpu_memory_utilization": "0.92",
        "kv_cache_memory_bytes": "1073741824",
        "kv_cache_size_tokens": str(tokens),
        "num_gpu_blocks": str(tokens // 128),
        "kv_offloading_size": "None",
        **labels,
    }
    labelled = ",".join(f'{name}="{value}"' for name, value in told.items())
    return (
        "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
        "# TYPE vllm:cache_config_info gauge\n"
        f"vllm:cache_config_info{{{labelled}}} 1.0\n"
    )


def vllm_facts(cache_dtype: str, tokens: int) -> EngineFacts:
    return EngineFacts(
        engine="vllm",
        version="0.32.0",
        kv_dtype=cache_dtype,
        kv_tokens=tokens,
        kv_bytes=1073741824,
        prefix_caching=True,
        memory_utilisation=0.92,
    )


SGLANG = json.dumps(
    {
        "kv_cache_dtype": "fp8_e5m2",
        "mem_fraction_static": 0.836,
        "served_model_name": "qwen",
        "max_total_num_tokens": 20480,
        "version": "0.5.9",
        "context_length": 32768,
        "disable_radix_cache": False,
        "chat_template": None,
        "quantization": "w8a8_int8",
        "sampling_defaults": "model",
        "preferred_sampling_params": None,
        "random_seed": 893842,
    }
)
SGLANG_FACTS = EngineFacts(
    engine="sglang",
    version="0.5.9",
    weights="w8a8_int8",
    kv_dtype="fp8_e5m2",
    kv_tokens=20480,
    max_model_len=32768,
    prefix_caching=True,
    memory_utilisation=0.836,
    sampling='{"sampling_defaults":"model"}',
)
LLAMA_CPP = json.dumps(
    {
        "default_generation_settings": {
            "params": {"seed": 4294967295, "temperature": 0.8, "top_k": 40, "stream": False, "lora": []},
            "n_ctx": 2048,
        },
        "total_slots": 1,
        "model_alias": "m",
        "model_ftype": "Q2_K - Medium",
        "media_marker": "<__media_AQWZAqYzgygXnpkU2K4L1UcCH2zQp4is__>",
        "chat_template": "{% for message in messages %}...",
        "build_info": "b6999-1c398dc9e",
    }
)
LLAMA_CPP_FACTS = EngineFacts(
    engine="llama.cpp",
    version="b6999-1c398dc9e",
    weights="Q2_K - Medium",
    max_model_len=2048,
    chat_template="sha256:09dbd19dd2b5cc9889da8f1e719854a1612897443ed87b435c4fedacd63eb7fd",
    sampling='{"seed":4294967295,"temperature":0.8,"top_k":40}',
)


@pytest.mark.parametrize(("dtype", "tokens"), [("auto", 46592), ("fp8_e5m2", 93184)])
def test_vllm_tells_version_kv_cache_and_memory(dtype: str, tokens: int) -> None:
    assert pages.vllm('{"version":"0.32.0"}', vllm_metrics(dtype, tokens)) == vllm_facts(dtype, tokens)


@pytest.mark.parametrize(
    "metrics",
    ["", "<html>", 'vllm:cache_config_info{engine="0"} 1.0\n', "vllm:cache_config_info{broken 1\n"],
)
def test_vllm_without_that_metric_leaves_all_but_its_version_untold(metrics: str) -> None:
    assert pages.vllm('{"version":"0.9.1"}', metrics) == EngineFacts(engine="vllm", version="0.9.1")


def test_what_is_broken_elsewhere_in_the_page_does_not_matter() -> None:
    page = f"# TYPE x gauge\nx{{broken 1\n{vllm_metrics('auto', 46592)}vllm:other{{unfinished="
    assert pages.vllm('{"version":"0.32.0"}', page) == vllm_facts("auto", 46592)


def test_labels_that_later_versions_add_change_nothing() -> None:
    page = vllm_metrics("auto", 46592, use_kda_recoverssm="False", mamba_cache_mode="none")
    assert pages.vllm('{"version":"0.32.0"}', page) == vllm_facts("auto", 46592)


def test_a_version_that_does_not_count_tokens_tells_them_by_blocks() -> None:
    page = vllm_metrics("auto", 46592).replace('kv_cache_size_tokens="46592",', "")
    assert pages.vllm('{"version":"0.32.0"}', page) == vllm_facts("auto", 46592)


def test_a_none_of_python_is_not_told() -> None:
    page = vllm_metrics("None", 0, kv_cache_size_tokens="None", num_gpu_blocks="None")
    facts = pages.vllm('{"version":"0.32.0"}', page)
    assert facts is not None
    assert (facts.kv_dtype, facts.kv_tokens) == (None, None)


def test_a_page_that_is_cut_short_tells_less_and_nothing_else() -> None:
    """By a gateway that says that this was all: what a number or a word begins with is not it."""
    page, whole = vllm_metrics("fp8_e5m2", 93184), vllm_facts("fp8_e5m2", 93184)
    for end in range(len(page)):
        cut = pages.vllm('{"version":"0.32.0"}', page[:end])
        assert cut is not None
        told = {name: value for name, value in asdict(cut).items() if value is not None}
        assert told.items() <= asdict(whole).items(), page[:end]


@pytest.mark.parametrize("odd", ["NaN", "inf", "-0.5", "0", "1.5", "9" * 5000, "1e999", "", "0,92"])
def test_a_share_of_memory_that_cannot_be_one_is_not_told(odd: str) -> None:
    facts = pages.vllm('{"version":"0.32.0"}', vllm_metrics("auto", 46592, gpu_memory_utilization=odd))
    assert facts == replace(vllm_facts("auto", 46592), memory_utilisation=None)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp037"])
def test_a_page_in_another_encoding_is_nobodys(encoding: str) -> None:
    """Read as UTF-8, as every page is."""
    version, metrics = (
        text.encode(encoding).decode("utf-8", "replace")
        for text in ('{"version":"0.32.0"}', vllm_metrics("auto", 46592))
    )
    assert pages.vllm(version, metrics) is None
    assert pages.vllm('{"version":"0.32.0"}', metrics) == EngineFacts(engine="vllm", version="0.32.0")


def test_sglang_and_llama_cpp_tell_what_they_know() -> None:
    assert pages.sglang(SGLANG) == SGLANG_FACTS
    assert pages.llama_cpp(LLAMA_CPP) == LLAMA_CPP_FACTS


def test_what_changes_with_every_start_of_a_server_is_no_fact() -> None:
    other = json.loads(LLAMA_CPP) | {"media_marker": "<__media_other__>", "model_alias": "n"}
    assert pages.llama_cpp(json.dumps(other)) == LLAMA_CPP_FACTS
    assert pages.sglang(json.dumps(json.loads(SGLANG) | {"random_seed": 1})) == SGLANG_FACTS


def test_an_older_llama_cpp_lists_its_defaults_beside_the_context() -> None:
    page = {"build_info": "b4000", "default_generation_settings": {"n_ctx": 4096, "temperature": 0.5}}
    facts = pages.llama_cpp(json.dumps(page))
    assert facts == EngineFacts(
        engine="llama.cpp", version="b4000", max_model_len=4096, sampling='{"temperature":0.5}'
    )


@pytest.mark.parametrize("page", ["", "{}", "[]", "null", '"x"', "<html>", '{"version": 3}', "[" * 100_000])
def test_the_page_of_something_else_is_nobodys(page: str) -> None:
    assert pages.vllm(page, "") is None
    assert pages.sglang(page) is None
    assert pages.llama_cpp(page) is None


@pytest.mark.parametrize("page", ["[]", '{"data": 3}', "{}", "<html>"])
def test_a_page_without_a_list_of_models_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="no list of models"):
        pages.served_models(page)


def test_models_are_listed_in_order_with_their_longest_context() -> None:
    listing = '{"data": [{"id": "a", "max_model_len": 4096}, {"root": "x"}, 7, {"id": "b"}]}'
    assert list(pages.served_models(listing).items()) == [("a", 4096), ("b", None)]


@pytest.mark.parametrize("odd", [-1, 0, True, "x", 1e9, None, [], "9" * 40, 10**40])
def test_a_count_that_cannot_be_one_is_not_told(odd: object) -> None:
    page = json.dumps(json.loads(SGLANG) | {"max_total_num_tokens": odd, "context_length": odd})
    facts = pages.sglang(page)
    assert facts is not None
    assert (facts.kv_tokens, facts.max_model_len) == (None, None)


@given(st.text(), st.text())
def test_no_page_makes_a_reader_fail(page: str, metrics: str) -> None:
    pages.vllm(page, metrics)
    pages.vllm('{"version": "1"}', f"vllm:cache_config_info{{{metrics}}} 1.0")
    pages.sglang(page)
    pages.llama_cpp(page)


@given(
    st.dictionaries(
        st.sampled_from(["build_info", "chat_template", "default_generation_settings", "version",
                         "mem_fraction_static", "kv_cache_dtype", "disable_radix_cache", "quantization"]),
        st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists),
    )
)  # fmt: skip
def test_no_value_in_a_page_makes_a_reader_fail(page: dict[str, object]) -> None:
    for read in (pages.sglang, pages.llama_cpp):
        facts = read(json.dumps(page))
        assert facts is None or facts.as_json()
