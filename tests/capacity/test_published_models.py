"""What a token takes by configurations as their makers publish them, computed here by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.capacity.hugging_face import shape_of
from service.capacity.memory import Cache
from service.capacity.model_keys import NotUnderstood
from service.capacity.precision import FP8, FP16
from service.capacity.shape import Shape

LLAMA_3_1_8B: dict[str, Any] = {
    **{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"num_hidden_layers": 32, "max_position_embeddings": 131_072, "vocab_size": 128_256},
}
LLAMA_2_7B: dict[str, Any] = {
    **{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}
}
QWEN3_8B: dict[str, Any] = {
    **{"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32},
    **{"num_key_value_heads": 8, "num_hidden_layers": 36, "max_position_embeddings": 40_960},
    **{"sliding_window": None, "use_sliding_window": False, "max_window_layers": 36},
}
QWEN2_5_7B: dict[str, Any] = {
    **{"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4},
    **{"num_hidden_layers": 28, "max_position_embeddings": 32_768, "max_window_layers": 28},
    **{"sliding_window": 131_072, "use_sliding_window": False},
}
FALCON_7B: dict[str, Any] = {
    **{"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "num_kv_heads": 71},
    **{"num_hidden_layers": 32, "multi_query": True, "new_decoder_architecture": False},
}
FALCON_40B: dict[str, Any] = {
    **{"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8},
    **{"num_hidden_layers": 60, "multi_query": True, "new_decoder_architecture": True},
}
DBRX: dict[str, Any] = {
    **{"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32_768},
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "rope_theta": 500_000},
}
DEEPSEEK_V2_LITE: dict[str, Any] = {
    **{"model_type": "deepseek_v2", "hidden_size": 2048, "num_attention_heads": 16, "kv_lora_rank": 512},
    **{"num_key_value_heads": 16, "num_hidden_layers": 27, "qk_rope_head_dim": 64, "v_head_dim": 128},
}
MISTRAL_NEMO: dict[str, Any] = {
    **{"model_type": "mistral", "hidden_size": 5120, "head_dim": 128, "num_attention_heads": 32},
    **{"num_key_value_heads": 8, "num_hidden_layers": 40, "sliding_window": None},
}
GEMMA_3_27B: dict[str, Any] = {
    "model_type": "gemma3",
    "text_config": {
        **{"model_type": "gemma3_text", "hidden_size": 5376, "head_dim": 128, "num_attention_heads": 32},
        **{"num_key_value_heads": 16, "num_hidden_layers": 62, "sliding_window": 1024},
    },
    "vision_config": {"hidden_size": 1152, "num_attention_heads": 16, "num_hidden_layers": 27},
}
"""Says neither which layers slide nor how long a context it has."""
GEMMA_3_12B: dict[str, Any] = {
    "model_type": "gemma3",
    "text_config": {
        **{"model_type": "gemma3_text", "hidden_size": 3840, "num_attention_heads": 16},
        **{"num_key_value_heads": 8, "num_hidden_layers": 48, "sliding_window": 1024},
    },
}
"""Heads of 256, which it does not say: 3,840 by 16 heads would be 240."""
GEMMA_3_4B: dict[str, Any] = {
    "model_type": "gemma3",
    "text_config": {
        **{"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024},
    },
}
"""8 heads, 4 of keys, of 256, by the family's defaults alone."""
GEMMA_2_9B: dict[str, Any] = {
    **{"model_type": "gemma2", "hidden_size": 3584, "head_dim": 256, "num_attention_heads": 16},
    **{"num_key_value_heads": 8, "num_hidden_layers": 42, "sliding_window": 4096},
    "max_position_embeddings": 8192,
}
GPT_OSS_20B: dict[str, Any] = {
    **{"model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64, "num_attention_heads": 64},
    **{"num_key_value_heads": 8, "num_hidden_layers": 24, "sliding_window": 128},
    "layer_types": ["sliding_attention", "full_attention"] * 12,
}
LLAMA_4_SCOUT: dict[str, Any] = {
    "model_type": "llama4",
    "text_config": {
        **{"model_type": "llama4_text", "hidden_size": 5120, "head_dim": 128, "num_attention_heads": 40},
        **{"num_key_value_heads": 8, "num_hidden_layers": 48, "attention_chunk_size": 8192},
        **{"no_rope_layers": [], "max_position_embeddings": 10_485_760},
    },
}
BAMBA_9B: dict[str, Any] = {
    **{"model_type": "bamba", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"num_hidden_layers": 32, "attn_layer_indices": [9, 18, 27], "mamba_d_conv": 4, "mamba_d_head": "auto"},
    **{"mamba_d_state": 128, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 128},
}
GIB = 1 << 30


@pytest.mark.parametrize(
    ("config", "token", "fp8"),
    [
        (LLAMA_3_1_8B, 2 * 32 * 8 * 128 * 2, 65_536),
        (LLAMA_2_7B, 2 * 32 * 32 * 128 * 2, 262_144),
        (QWEN3_8B, 2 * 36 * 8 * 128 * 2, 73_728),
        (QWEN2_5_7B, 2 * 28 * 4 * 128 * 2, 28_672),
        (FALCON_7B, 2 * 32 * 1 * 64 * 2, 4_096),
        (FALCON_40B, 2 * 60 * 8 * 64 * 2, 61_440),
        (DBRX, 2 * 40 * 8 * 128 * 2, 81_920),
        (DEEPSEEK_V2_LITE, 27 * (512 + 64) * 2, 15_552),
        (MISTRAL_NEMO, 2 * 40 * 8 * 128 * 2, 81_920),
        (GEMMA_3_27B, 2 * 62 * 16 * 128 * 2, 253_952),
        (GEMMA_3_12B, 2 * 48 * 8 * 256 * 2, 196_608),
        (GEMMA_3_4B, 2 * 34 * 4 * 256 * 2, 69_632),
        (GEMMA_2_9B, 2 * 42 * 8 * 256 * 2, 172_032),
        (GPT_OSS_20B, 2 * 24 * 8 * 64 * 2, 24_576),
        (LLAMA_4_SCOUT, 2 * 48 * 8 * 128 * 2, 98_304),
        (BAMBA_9B, 2 * 3 * 8 * 128 * 2, 6_144),
    ],
)
def test_a_token_takes_what_its_makers_numbers_say(config: dict[str, Any], token: int, fp8: int) -> None:
    shape = shape_of(config)
    assert (shape.token_bytes(FP16), shape.token_bytes(FP8)) == (token, fp8)


def by_hand(tokens: int, *kinds: tuple[int, int, int | None], block: int = 16) -> int:
    """Of layers, bytes of a token in each, and the window: whole blocks, and one more where it moves."""
    total = 0
    for layers, token, window in kinds:
        blocks = -(-tokens // block)
        if window is not None:
            blocks = min(blocks, -(-window // block) + 1)
        total += layers * token * blocks * block
    return total


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        (LLAMA_3_1_8B, [(32, 4096, None)]),
        (GEMMA_3_27B, [(52, 8192, 1024), (10, 8192, None)]),
        (GEMMA_3_12B, [(40, 8192, 1024), (8, 8192, None)]),
        (GEMMA_3_4B, [(29, 4096, 1024), (5, 4096, None)]),
        (GEMMA_2_9B, [(21, 8192, 4096), (21, 8192, None)]),
        (GPT_OSS_20B, [(12, 2048, 128), (12, 2048, None)]),
        (LLAMA_4_SCOUT, [(36, 4096, 8192), (12, 4096, None)]),
    ],
)
@pytest.mark.parametrize("tokens", [1, 16, 1000, 1024, 1041, 32_768])
def test_a_sequence_takes_its_windows_once_they_are_full(
    config: dict[str, Any], kinds: list[tuple[int, int, int | None]], tokens: int
) -> None:
    cache = Cache(shape=shape_of(config), precision=FP16, memory=80 * GIB)
    assert cache.sequence_bytes(tokens) == by_hand(tokens, *kinds)
    assert cache.concurrency(tokens) == 80 * GIB // by_hand(tokens, *kinds)


def test_a_hybrid_keeps_a_state_a_layer_however_its_head_is_told() -> None:
    """8,192 numbers by 128 in FP32, and 3 inputs of 8,192 + 2 x 128 in 16 bits, 29 times."""
    state = 29 * (4 * 8192 * 128 + 2 * 3 * (8192 + 256))
    for config in (BAMBA_9B, {**BAMBA_9B, "mamba_d_head": 64}):
        cache = Cache(shape=shape_of(config), precision=FP16, memory=GIB)
        assert cache.sequence_bytes(160) == state + 160 * 12_288


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({**LLAMA_3_1_8B, "hybrid_layer_pattern": [0, 1] * 16}, "hybrid_layer_pattern: layers may differ"),
        ({**LLAMA_3_1_8B, "attn_type_list": [0, 0, 1, 1] * 8}, "attn_type_list: layers may differ"),
        ({**LLAMA_3_1_8B, "linear_attn_config": {"kda_layers": [1]}}, "linear_attn_config: layers may"),
        ({**LLAMA_3_1_8B, "block_types": ["recurrent"], "attention_window_size": 2048}, "layers may differ"),
        ({**LLAMA_3_1_8B, "mamba_d_ssm": 1536}, "mamba_d_ssm: layers may differ"),
        ({**LLAMA_3_1_8B, "layer_group_size": 8}, "layer_group_size: layers may differ"),
        ({**LLAMA_3_1_8B, "cross_attention_layers": [3, 8]}, "some layers attend to images"),
        ({**LLAMA_3_1_8B, "is_encoder_decoder": True}, "a decoder keeps the encoder's"),
        ({**LLAMA_3_1_8B, "sliding_window": 4096}, "which layers it is of is not told"),
        ({**LLAMA_3_1_8B, "use_cla": True, "cla_share_factor": 2}, "layers share caches"),
        ({**LLAMA_3_1_8B, "model_type": "longcat_flash"}, "a layer has two attentions"),
        ({**QWEN2_5_7B, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": None}, "max_w"),
        ({**LLAMA_3_1_8B, "num_key_value_heads_per_layer": [4, 8]}, "layers differ from one another"),
        ({**LLAMA_3_1_8B, "num_key_value_heads": 0}, "num_key_value_heads is 0"),
        ({**LLAMA_3_1_8B, "num_key_value_heads": 5}, "32 heads are no multiple of 5 KV heads"),
        ({**LLAMA_3_1_8B, "head_dim": 0}, "head_dim is 0"),
        ({**LLAMA_3_1_8B, "head_dim": 1e2}, "head_dim is 100.0, not a whole number"),
        ({**LLAMA_3_1_8B, "hidden_size": float("nan")}, "hidden_size is nan, not a whole number"),
        ({**LLAMA_3_1_8B, "num_hidden_layers": 10**12}, "num_hidden_layers is above 10,000"),
        ({**LLAMA_3_1_8B, "head_dim": 10**400}, "head_dim is above"),
        ({**BAMBA_9B, "attn_layer_indices": [9, 99]}, "not numbers of layers from 0 to 31"),
        ({**BAMBA_9B, "attn_layer_indices": None}, "mamba_d_"),
        ({**BAMBA_9B, "hybrid_override_pattern": 7}, "not a text of one letter a layer"),
        ({"model_type": "new", "text_config": {**LLAMA_2_7B, "model_type": "newer"}}, "heads is missing"),
        ({"text_config": {**LLAMA_4_SCOUT["text_config"], "no_rope_layers": [1, 2]}}, "48 times 0 or 1"),
        ({**LLAMA_2_7B, "text_config": {"model_type": "llama"}}, "num_hidden_layers is missing"),
        ({}, "num_hidden_layers is missing"),
    ],
)
def test_what_may_change_the_answer_and_is_not_known_is_refused(config: dict[str, Any], told: str) -> None:
    with pytest.raises(NotUnderstood, match=told):
        shape_of(config)


@pytest.mark.parametrize(
    "harmless",
    [
        {"attn_type_list": [1] * 32},
        {"use_cla": False, "cla_share_factor": 2},
        {"sliding_window": 0},
        {"sliding_window": 131_072},
        {"chunk_size_feed_forward": 0, "is_encoder_decoder": False, "cross_attention_hidden_size": None},
        {"layer_types": ["full_attention"] * 32, "sliding_window": 4096},
        {"sliding_window_pattern": 0},
    ],
)
def test_keys_that_say_that_nothing_is_special_change_nothing(harmless: dict[str, Any]) -> None:
    assert shape_of({**LLAMA_3_1_8B, **harmless}) == shape_of(LLAMA_3_1_8B)


def test_a_family_that_keeps_all_heads_may_leave_them_out_where_it_is_nested() -> None:
    assert shape_of({"text_config": LLAMA_2_7B}) == shape_of(LLAMA_2_7B)


@pytest.mark.parametrize(
    "config",
    [
        GEMMA_2_9B,
        {**LLAMA_3_1_8B, "model_type": "mistral", "sliding_window": 4096},
        {**LLAMA_3_1_8B, "model_type": "cohere2", "sliding_window": 4096},
    ],
)
def test_a_window_that_is_its_family_s_default_is_left_out_where_it_is_nested(config: dict[str, Any]) -> None:
    inner = {name: told for name, told in config.items() if name != "sliding_window"}
    assert shape_of({"text_config": inner}) == shape_of(config)
    assert shape_of({"text_config": {**inner, "sliding_window": None}}) != shape_of(config)


PUBLISHED = (LLAMA_3_1_8B, QWEN3_8B, DBRX, DEEPSEEK_V2_LITE, GPT_OSS_20B, BAMBA_9B)
OTHERS = {
    *("full_attention_interval", "sliding_window_pattern", "attn_layer_period", "layers_block_type"),
    *("hybrid_override_pattern", "num_kv_shared_layers", "v_head_dim", "conv_kernel", "linear_key_head_dim"),
    *LLAMA_4_SCOUT["text_config"],
}
KEYS = st.sampled_from(sorted(OTHERS.union(*PUBLISHED)))
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 70) | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=6,
)


@given(st.sampled_from([LLAMA_3_1_8B, GEMMA_3_27B, BAMBA_9B, {}]), st.dictionaries(KEYS, ODD, max_size=5))
def test_any_configuration_has_a_shape_or_is_refused(config: dict[str, Any], odd: dict[str, Any]) -> None:
    try:
        shape = shape_of({**config, **odd})
    except ValueError:
        return
    assert isinstance(shape, Shape)
    assert shape.token_bytes(FP16) >= 0
