"""Shapes from configurations, with the values that their makers publish."""

from __future__ import annotations

from typing import Any

import pytest

from service.capacity.hugging_face import shape_of
from service.capacity.model_keys import NotUnderstood
from service.capacity.precision import FP16
from service.capacity.shape import Attention, Latent, Recurrent

SMOLLM2 = {
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "num_hidden_layers": 30,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
}
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {
        **{"hidden_size": 2560, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256},
        **{"num_hidden_layers": 34, "sliding_window": 1024, "sliding_window_pattern": 6},
    },
}
QWEN3_NEXT = {
    **{"hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256},
    **{"num_hidden_layers": 48, "full_attention_interval": 4, "linear_conv_kernel_dim": 4},
    **{"linear_key_head_dim": 128, "linear_value_head_dim": 128},
    **{"linear_num_key_heads": 16, "linear_num_value_heads": 32},
}
DEEPSEEK_V3 = {
    **{"hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128, "num_hidden_layers": 61},
    **{"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128},
}
QWEN2 = {
    **{"hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28},
    **{"sliding_window": 131072, "max_window_layers": 20},
}
MAMBA2 = {"ssm_state_size": 128, "conv_kernel": 4, "mamba_num_heads": 8, "mamba_head_dim": 64, "n_groups": 8}


def test_grouped_queries() -> None:
    shape = shape_of(SMOLLM2)
    assert shape.layers == ((30, Attention(kv_heads=3, head_size=64)),)
    assert (shape.vocabulary, shape.context, shape.hidden_size) == (49152, 8192, 576)
    assert shape.token_bytes(FP16) == 23_040


def test_as_many_kv_heads_as_heads_where_none_are_named() -> None:
    gpt2 = {"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024}
    assert shape_of(gpt2).layers == ((12, Attention(kv_heads=12, head_size=64)),)


def test_one_query_group() -> None:
    starcoder = {"n_embd": 6144, "n_head": 48, "n_layer": 40, "multi_query": True}
    assert shape_of(starcoder).layers == ((40, Attention(kv_heads=1, head_size=128)),)
    chatglm = {
        **{"hidden_size": 4096, "num_attention_heads": 32, "num_layers": 28, "kv_channels": 128},
        **{"multi_query_attention": True, "multi_query_group_num": 2},
    }
    assert shape_of(chatglm).layers == ((28, Attention(kv_heads=2, head_size=128)),)


def test_latent_attention() -> None:
    assert shape_of(DEEPSEEK_V3).layers == ((61, Latent(rank=512, rope=64)),)


def test_windows_by_a_pattern_in_a_model_of_text_and_images() -> None:
    window, full = (Attention(kv_heads=4, head_size=256, window=size) for size in (1024, None))
    assert shape_of(GEMMA3).layers == ((29, window), (5, full))


def test_a_window_that_is_switched_off_is_none() -> None:
    assert shape_of({**QWEN2, "use_sliding_window": False}).layers == (
        (28, Attention(kv_heads=4, head_size=128)),
    )
    full, window = (Attention(kv_heads=4, head_size=128, window=size) for size in (None, 131072))
    assert shape_of({**QWEN2, "use_sliding_window": True}).layers == ((20, full), (8, window))


def test_a_window_on_every_layer() -> None:
    assert shape_of({**SMOLLM2, "model_type": "mistral", "sliding_window": 4096}).layers == (
        (30, Attention(kv_heads=3, head_size=64, window=4096)),
    )


def test_linear_attention_keeps_a_state() -> None:
    state = Recurrent(state_bytes=4 * 32 * 128 * 128 + 2 * (2 * 16 * 128 + 32 * 128) * 3)
    assert shape_of(QWEN3_NEXT).layers == ((36, state), (12, Attention(kv_heads=2, head_size=256)))


def test_layers_named_by_letters() -> None:
    nemotron = {**SMOLLM2, **MAMBA2, "num_hidden_layers": 6, "hybrid_override_pattern": "M-M*E-"}
    state = Recurrent(state_bytes=4 * 512 * 128 + 2 * (512 + 2 * 8 * 128) * 3)
    assert shape_of(nemotron).layers == ((2, state), (1, Attention(kv_heads=3, head_size=64)))


def test_attention_every_few_layers() -> None:
    jamba = {
        **{**SMOLLM2, "num_hidden_layers": 16, "attn_layer_period": 8, "attn_layer_offset": 4},
        **{"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
    }
    state = Recurrent(state_bytes=4 * 1152 * 16 + 2 * 1152 * 3)
    assert shape_of(jamba).layers == ((14, state), (2, Attention(kv_heads=3, head_size=64)))


def test_layers_that_use_the_cache_of_others_are_not_counted() -> None:
    shared = {**SMOLLM2, "num_kv_shared_layers": 10}
    assert shape_of(shared).depth == 20


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers is missing"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True, not a whole number"),
        ({"num_attention_heads": "9"}, "num_attention_heads is '9'"),
        ({"num_attention_heads": 7}, "576 is no multiple of 7 heads"),
        ({"num_key_value_heads": [3, 3]}, r"num_key_value_heads is \[3, 3\]"),
        ({"layer_types": ["full_attention"]}, "not a list of 30 names"),
        ({"layer_types": ["striped"] * 30}, "layer type 'striped' is not known"),
        ({"layer_types": ["sliding_attention"] * 30}, "have no sliding_window"),
        ({"layer_types": ["mlp"] * 30}, "no layer keeps anything"),
        ({"layer_types": ["mamba"] * 30}, "ssm_state_size is missing"),
        ({"block_configs": [{}]}, "block_configs: layers differ"),
        ({"index_head_dim": 128}, "index_head_dim: an indexer"),
        ({"num_kv_shared_layers": 30}, "30 of 30 layers"),
        (
            {
                **{"kv_lora_rank": 512, "sliding_window": 10, "qk_rope_head_dim": 64},
                "layer_types": ["sliding_attention"] * 30,
            },
            "with a window",
        ),
    ],
)
def test_what_is_not_understood_is_refused(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(NotUnderstood, match=told):
        shape_of({**SMOLLM2, **changed})
