from __future__ import annotations

from dataclasses import replace

import pytest

from service.engines.facts import EngineFacts
from service.engines.words import kv_doubt, kv_ratio, same_engine, same_kv_dtype
from tests.engines.test_pages import vllm_facts

BF16, FP8 = vllm_facts("auto", 46592), vllm_facts("fp8_e5m2", 93184)


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
    assert same_engine(declared, EngineFacts(engine="vllm", version="0.32.0")) is same


def test_a_llama_cpp_build_agrees_by_its_number() -> None:
    engine = EngineFacts(engine="llama.cpp", version="b6999-1c398dc9e")
    assert same_engine("llama.cpp b6999", engine)
    assert same_engine("llama.cpp-b6999-1c398dc9e", engine)
    assert not same_engine("llama.cpp b699", engine)


def test_an_engine_that_does_not_tell_its_version_agrees_with_no_version() -> None:
    assert same_engine("sglang", EngineFacts(engine="sglang"))
    assert not same_engine("sglang 0.5", EngineFacts(engine="sglang"))


def test_a_kv_cache_of_8_bits_is_proved_by_holding_twice_the_tokens() -> None:
    assert kv_ratio(BF16, FP8) == 2.0
    assert kv_doubt("fp8", BF16, FP8) is None
    # Whatever its label: `auto` follows the checkpoint.
    assert kv_doubt("fp8", BF16, replace(FP8, kv_dtype="auto")) is None


def test_a_kv_cache_declared_as_8_bits_that_holds_no_more_is_doubted_with_both_numbers() -> None:
    doubt = kv_doubt("fp8", BF16, replace(BF16, kv_dtype="fp8_e4m3"))
    assert doubt is not None
    assert "declares kv_cache 'fp8', but its KV cache holds 46592 tokens and the baseline's 46592" in doubt
    assert kv_doubt("auto", BF16, BF16) is None
    assert kv_doubt("fp8", replace(BF16, kv_dtype="fp8"), BF16) is None, "the baseline has 8 bits as well"


def test_tokens_are_compared_in_like_memory_only() -> None:
    twice = replace(BF16, kv_bytes=2 * 1073741824, kv_tokens=93184)
    assert kv_ratio(BF16, twice) == 1.0
    shares = replace(BF16, kv_bytes=None), replace(FP8, kv_bytes=None)
    assert kv_ratio(*shares) == 2.0
    assert kv_ratio(shares[0], replace(shares[1], memory_utilisation=0.5)) is None
    assert kv_ratio(shares[0], replace(shares[1], memory_utilisation=None)) is None
    assert kv_ratio(BF16, replace(FP8, kv_tokens=None)) is None
