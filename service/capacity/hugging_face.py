"""The shape of a model from its Hugging Face `config.json`.

What would change the answer and is not understood is refused, never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from service.capacity.layer_kinds import CHUNKED, FULL, LINEAR, MAMBA, NOTHING, WINDOWED, kinds_of, window_of
from service.capacity.model_keys import KV_HEADS, NotUnderstood, completed, optional, some, whole
from service.capacity.shape import Attention, Latent, Layer, Recurrent, Shape

_INNER = ("text_config", "llm_config", "language_config")
"""Of a model of text and images."""

_NOT_UNDERSTOOD = {
    "block_configs": "layers differ from one another (DeciLM)",
    "num_key_value_heads_per_layer": "layers differ from one another (DeciLM)",
    "global_head_dim": "full layers have heads of another size",
    "num_global_key_value_heads": "full layers have another number of KV heads",
    "swa_num_key_value_heads": "windowed layers have another number of KV heads",
    "swa_head_dim": "windowed layers have heads of another size",
    "index_head_dim": "an indexer keeps keys of its own (DeepSeek-V3.2)",
    "attention_hidden_size": "attention has a width of its own (Zamba, RWKV)",
    "cross_attention_layers": "some layers attend to images (Llama 3.2 Vision)",
    "is_encoder_decoder": "a decoder keeps the encoder's keys and values besides its own",
}
MOST_LAYERS = 10_000
"""No model has more: what is counted by layer is bounded."""
_TYPES_NOT_UNDERSTOOD = {"longcat_flash": "a layer has two attentions"}


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The layers that keep something; `NotUnderstood` with what is missing."""
    inner = next((config[name] for name in _INNER if isinstance(config.get(name), Mapping)), config)
    inner = completed(inner, is_nested=inner is not config)
    _refuse(inner)
    depth = whole(inner, "num_hidden_layers", "n_layer", "n_layers", "num_layers", most=MOST_LAYERS)
    kinds = kinds_of(inner, depth)
    shared = optional(inner, "num_kv_shared_layers") or 0
    if shared >= depth:
        raise NotUnderstood(f"num_kv_shared_layers is {shared} of {depth} layers")
    counted = Counter(kinds[: depth - shared])
    layers = tuple((count, layer) for kind, count in counted.items() if (layer := _layer(inner, kind)))
    if not layers:
        raise NotUnderstood("no layer keeps anything")
    return Shape(
        layers=layers,
        hidden_size=optional(inner, "hidden_size", "n_embd", "d_model") or None,
        vocabulary=optional(inner, "vocab_size"),
        context=optional(inner, "max_position_embeddings", "n_positions", "seq_length", "max_seq_len")
        or None,
    )


def _refuse(config: Mapping[str, Any]) -> None:
    for name, why in _NOT_UNDERSTOOD.items():
        if config.get(name) not in (None, False, []):
            raise NotUnderstood(f"{name}: {why}, which is not understood; give the numbers instead")
    kind = config.get("model_type")
    if isinstance(kind, str) and kind in _TYPES_NOT_UNDERSTOOD:
        why = _TYPES_NOT_UNDERSTOOD[kind]
        raise NotUnderstood(f"{kind}: {why}, which is not understood; give the numbers instead")
    if config.get("use_cla"):
        raise NotUnderstood("use_cla: layers share caches, which is not understood; give the numbers instead")


def _layer(config: Mapping[str, Any], kind: str) -> Layer | None:
    if kind in NOTHING:
        return None
    if kind in MAMBA:
        return _mamba(config)
    if kind in LINEAR:
        return _linear(config)
    if kind in FULL:
        return _attention(config, None)
    if kind in WINDOWED:
        window = window_of(config)
        if window is None:
            raise NotUnderstood(f"layers of type {kind!r} have no sliding_window")
        return _attention(config, window)
    if kind == CHUNKED:
        return _attention(config, whole(config, "attention_chunk_size"))
    raise NotUnderstood(f"layer type {kind!r} is not known; give the numbers instead")


def _attention(config: Mapping[str, Any], window: int | None) -> Layer:
    rank = optional(config, "kv_lora_rank")
    if rank is not None:
        if window is not None:
            raise NotUnderstood("latent attention with a window is not known")
        return Latent(rank=rank, rope=whole(config, "qk_rope_head_dim"))
    heads = whole(config, "num_attention_heads", "n_head", "n_heads")
    size = some(config, "head_dim", "kv_channels", "attention_head_dim")
    if size is None:
        hidden = whole(config, "hidden_size", "n_embd", "d_model")
        if hidden % heads:
            raise NotUnderstood(f"head_dim is missing, and {hidden} is no multiple of {heads} heads")
        size = hidden // heads
    return Attention(
        kv_heads=_kv_heads(config, heads),
        head_size=size,
        value_size=some(config, "v_head_dim"),
        window=window,
    )


def _kv_heads(config: Mapping[str, Any], heads: int) -> int:
    """As many as heads where nothing else is said."""
    found = some(config, *KV_HEADS)
    if config.get("multi_query_attention") is True:  # ChatGLM
        found = whole(config, "multi_query_group_num")
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):
        found = 1  # GPT-BigCode, Falcon 7B
    inner = config.get("attn_config")  # MPT, DBRX
    if isinstance(inner, Mapping):
        found = some(inner, "kv_n_heads") or found
        if inner.get("attn_type") == "multiquery_attention":
            found = 1
    found = found or heads
    if heads % found:
        raise NotUnderstood(f"{heads} heads are no multiple of {found} KV heads")
    return found


def _linear(config: Mapping[str, Any]) -> Recurrent:
    """Gated delta nets (Qwen3-Next): an FP32 matrix a value head, and the convolution's last inputs."""
    key, value = whole(config, "linear_key_head_dim"), whole(config, "linear_value_head_dim")
    keys, values = whole(config, "linear_num_key_heads"), whole(config, "linear_num_value_heads")
    width = 2 * keys * key + values * value
    kernel = whole(config, "linear_conv_kernel_dim")
    return Recurrent(state_bytes=4 * values * key * value + 2 * width * (kernel - 1))


def _mamba(config: Mapping[str, Any]) -> Recurrent:
    """Mamba-2 where it has heads, Mamba-1 else: the state in FP32, and the convolution's last inputs."""
    state = whole(config, "ssm_state_size", "mamba_d_state")
    kernel = whole(config, "conv_kernel", "mamba_d_conv")
    heads = optional(config, "mamba_num_heads", "mamba_n_heads")
    if heads is None:
        inner = whole(config, "mamba_expand") * whole(config, "hidden_size")
        return Recurrent(state_bytes=4 * inner * state + 2 * inner * (kernel - 1))
    if config.get("mamba_d_head") == "auto":
        inner = whole(config, "mamba_expand") * whole(config, "hidden_size")
    else:
        inner = heads * whole(config, "mamba_head_dim", "mamba_d_head")
    groups = whole(config, "n_groups", "mamba_n_groups")
    return Recurrent(state_bytes=4 * inner * state + 2 * (inner + 2 * groups * state) * (kernel - 1))
