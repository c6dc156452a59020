"""The shape of a model from its Hugging Face `config.json`.

What would change the answer and is not understood is refused, never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from service.capacity.shape import Attention, Latent, Layer, Recurrent, Shape

_FULL = {"full_attention", "attention", "global_attention", "*"}
_WINDOWED = {"sliding_attention", "local_attention", "sliding_window"}
_LINEAR = {"linear_attention"}
_MAMBA = {"mamba", "mamba2", "M"}
_NONE = {"-", "mlp", "moe", "E"}

_NOT_UNDERSTOOD = {
    "block_configs": "layers differ from one another (DeciLM)",
    "global_head_dim": "full layers have heads of another size",
    "num_global_key_value_heads": "full layers have another number of KV heads",
    "index_head_dim": "an indexer keeps keys of its own (DeepSeek-V3.2)",
    "attention_types": "layers are named in a form of its own (GPT-Neo)",
    "cla_share_factor": "layers share caches",
}


class NotUnderstood(ValueError):
    """This configuration tells too little, or something that this reader does not know."""


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The layers that keep something; `NotUnderstood` with what is missing."""
    inner = next(
        (config[name] for name in ("text_config", "llm_config") if isinstance(config.get(name), Mapping)),
        config,
    )
    for name, why in _NOT_UNDERSTOOD.items():
        if inner.get(name) is not None:
            raise NotUnderstood(f"{name}: {why}, which is not understood; give the numbers instead")
    depth = _whole(inner, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    kinds = _kinds(inner, depth)
    shared = _optional(inner, "num_kv_shared_layers") or 0
    if shared >= depth:
        raise NotUnderstood(f"num_kv_shared_layers is {shared} of {depth} layers")
    counted = Counter(kinds[: depth - shared])
    layers = tuple((count, layer) for kind, count in counted.items() if (layer := _layer(inner, kind)))
    if not layers:
        raise NotUnderstood("no layer keeps anything")
    return Shape(
        layers=layers,
        hidden_size=_optional(inner, "hidden_size", "n_embd", "d_model"),
        vocabulary=_optional(inner, "vocab_size"),
        context=_optional(inner, "max_position_embeddings", "n_positions", "seq_length"),
    )


def _kinds(config: Mapping[str, Any], depth: int) -> list[str]:
    """The kind of each layer, in order."""
    pattern = config.get("hybrid_override_pattern")
    named = config.get("layer_types") or config.get("layers_block_type") or (pattern and list(pattern))
    if named:
        if not isinstance(named, list) or len(named) != depth or not all(isinstance(x, str) for x in named):
            raise NotUnderstood(f"layer types are not a list of {depth} names, one a layer")
        return named
    if interval := _optional(config, "full_attention_interval"):
        return ["full_attention" if (at + 1) % interval == 0 else "linear_attention" for at in range(depth)]
    if period := _optional(config, "attn_layer_period"):
        offset = _optional(config, "attn_layer_offset") or 0
        return ["attention" if at % period == offset else "mamba" for at in range(depth)]
    if _window(config) is None:
        return ["full_attention"] * depth
    pattern_of = _optional(config, "sliding_window_pattern", "_sliding_window_pattern")
    if pattern_of is None and str(config.get("model_type", "")).startswith("gemma2"):
        pattern_of = 2
    if pattern_of is not None:
        return [
            "full_attention" if (at + 1) % pattern_of == 0 else "sliding_attention" for at in range(depth)
        ]
    first = _optional(config, "max_window_layers") if "use_sliding_window" in config else None
    full = min(first or 0, depth)  # Qwen2: the layers below slide only from here on
    return ["full_attention"] * full + ["sliding_attention"] * (depth - full)


def _window(config: Mapping[str, Any]) -> int | None:
    if config.get("use_sliding_window") is False:
        return None
    return _optional(config, "sliding_window", "sliding_window_size")


def _layer(config: Mapping[str, Any], kind: str) -> Layer | None:
    if kind in _NONE:
        return None
    if kind in _MAMBA:
        return _mamba(config)
    if kind in _LINEAR:
        return _linear(config)
    if kind in _FULL:
        return _attention(config, None)
    if kind in _WINDOWED:
        window = _window(config)
        if window is None:
            raise NotUnderstood(f"layers of type {kind!r} have no sliding_window")
        return _attention(config, window)
    if kind == "chunked_attention":
        return _attention(config, _whole(config, "attention_chunk_size"))
    raise NotUnderstood(f"layer type {kind!r} is not known; give the numbers instead")


def _attention(config: Mapping[str, Any], window: int | None) -> Layer:
    rank = _optional(config, "kv_lora_rank")
    if rank is not None:
        if window is not None:
            raise NotUnderstood("latent attention with a window is not known")
        return Latent(rank=rank, rope=_whole(config, "qk_rope_head_dim"))
    heads = _whole(config, "num_attention_heads", "n_head", "n_heads")
    kv_heads = _optional(config, "num_key_value_heads", "num_kv_heads", "n_head_kv")
    if config.get("multi_query_attention") is True:  # ChatGLM
        kv_heads = _whole(config, "multi_query_group_num")
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):
        kv_heads = 1  # GPT-BigCode, Falcon 7B
    size = _optional(config, "head_dim", "kv_channels", "attention_head_dim")
    if size is None:
        hidden = _whole(config, "hidden_size", "n_embd", "d_model")
        if hidden % heads:
            raise NotUnderstood(f"head_dim is missing, and {hidden} is no multiple of {heads} heads")
        size = hidden // heads
    value = _optional(config, "v_head_dim")
    return Attention(kv_heads=kv_heads or heads, head_size=size, value_size=value, window=window)


def _linear(config: Mapping[str, Any]) -> Recurrent:
    """Gated delta nets (Qwen3-Next): an FP32 matrix a value head, and the convolution's last inputs."""
    key, value = _whole(config, "linear_key_head_dim"), _whole(config, "linear_value_head_dim")
    keys, values = _whole(config, "linear_num_key_heads"), _whole(config, "linear_num_value_heads")
    width = 2 * keys * key + values * value
    kernel = _whole(config, "linear_conv_kernel_dim")
    return Recurrent(state_bytes=4 * values * key * value + 2 * width * (kernel - 1))


def _mamba(config: Mapping[str, Any]) -> Recurrent:
    """Mamba-2 where it has heads, Mamba-1 else: the state in FP32, and the convolution's last inputs."""
    state = _whole(config, "ssm_state_size", "mamba_d_state")
    kernel = _whole(config, "conv_kernel", "mamba_d_conv")
    heads = _optional(config, "mamba_num_heads", "mamba_n_heads")
    if heads is None:
        inner = _whole(config, "mamba_expand") * _whole(config, "hidden_size")
        return Recurrent(state_bytes=4 * inner * state + 2 * inner * (kernel - 1))
    inner = heads * _whole(config, "mamba_head_dim", "mamba_d_head")
    groups = _whole(config, "n_groups", "mamba_n_groups")
    return Recurrent(state_bytes=4 * inner * state + 2 * (inner + 2 * groups * state) * (kernel - 1))


def _optional(config: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        found = config.get(name)
        if found is None:
            continue
        if type(found) is not int or found < 0:
            raise NotUnderstood(f"{name} is {found!r}, not a whole number from 0")
        return found
    return None


def _whole(config: Mapping[str, Any], *names: str) -> int:
    found = _optional(config, *names)
    if not found:
        raise NotUnderstood(f"{names[0]} is missing" if found is None else f"{names[0]} is 0")
    return found
