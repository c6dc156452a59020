"""Of which kind each layer of a `config.json` is: by name, by a pattern, or all alike.

Where all are alike nothing says so, and where they differ families say it in keys of their own. So a key that
sounds as if layers differed is refused, unless they are named in a way that is known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from service.capacity.model_keys import NotUnderstood, optional

FULL = frozenset({"full_attention", "attention", "global_attention", "*"})
WINDOWED = frozenset({"sliding_attention", "local_attention", "sliding_window"})
CHUNKED = "chunked_attention"
LINEAR = frozenset({"linear_attention"})
MAMBA = frozenset({"mamba", "mamba2", "M"})
NOTHING = frozenset({"-", "mlp", "moe", "E"})

_PATTERNS = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4}
"""Each so many layers the last is full, where the configuration does not say it."""
_ALL_SLIDE = frozenset({"mistral", "mixtral", "phi3", "starcoder2"})
_TELLTALE = re.compile(
    r"(^|_)(mamba|ssm|kda|lightning|recurrent|linear_attn|linear_key|linear_value|linear_num|sliding|swa|window|"
    r"chunk|block_types?|layer_types?|layers_block_type|layer_pattern|override_pattern|attn_type|"
    r"attention_types?|attn_layer|full_attention|layer_group_size)(_|$)"
)
_HANDLED = frozenset({"sliding_window", "sliding_window_size", "use_sliding_window", "max_window_layers"})
"""Keys that sound so and are read here."""


def kinds_of(config: Mapping[str, Any], depth: int) -> list[str]:
    """One kind for each layer, in order; `NotUnderstood` where they may differ in a way that is not known."""
    found = _named(config, depth) or _every_few(config, depth)
    if found is None:
        _refuse_telltales(config)
        found = ["full_attention"] * depth if window_of(config) is None else _windows(config, depth)
    return found


def window_of(config: Mapping[str, Any]) -> int | None:
    """Tokens; `None` where there is no window, or it is switched off."""
    if config.get("use_sliding_window") is False:
        return None
    return optional(config, "sliding_window", "sliding_window_size") or None


def _named(config: Mapping[str, Any], depth: int) -> list[str] | None:
    letters = config.get("hybrid_override_pattern")
    if letters is not None and not isinstance(letters, str):
        raise NotUnderstood("hybrid_override_pattern is not a text of one letter a layer")
    named = config.get("layer_types") or config.get("layers_block_type") or (letters and list(letters))
    if not named:
        return None
    if not isinstance(named, list) or len(named) != depth or not all(isinstance(x, str) for x in named):
        raise NotUnderstood(f"layer types are not a list of {depth} names, one a layer")
    return named


def _every_few(config: Mapping[str, Any], depth: int) -> list[str] | None:
    """By a period of layers, or by their numbers."""
    if interval := optional(config, "full_attention_interval"):
        return _last_of_each(interval, depth, "linear_attention")
    if period := optional(config, "attn_layer_period"):
        offset = optional(config, "attn_layer_offset") or 0
        return ["attention" if at % period == offset else "mamba" for at in range(depth)]
    if numbers := config.get("attn_layer_indices"):
        if not isinstance(numbers, list) or not all(type(at) is int and 0 <= at < depth for at in numbers):
            raise NotUnderstood(f"attn_layer_indices are not numbers of layers from 0 to {depth - 1}")
        full = set(numbers)
        return ["attention" if at in full else "mamba" for at in range(depth)]
    if config.get("model_type") == "llama4_text" and optional(config, "attention_chunk_size"):
        return _chunked(config, depth)
    if window_of(config) is None:
        return None
    pattern = optional(config, "sliding_window_pattern", "_sliding_window_pattern")
    pattern = pattern or _PATTERNS.get(str(config.get("model_type")))
    return _last_of_each(pattern, depth, "sliding_attention") if pattern else None


def _chunked(config: Mapping[str, Any], depth: int) -> list[str]:
    """Llama 4: layers with rotary positions look back within a chunk, those without at everything."""
    rotary = config.get("no_rope_layers")
    if not rotary:
        return _last_of_each(optional(config, "no_rope_layer_interval") or 4, depth, CHUNKED)
    if not isinstance(rotary, list) or len(rotary) < depth or any(each not in (0, 1) for each in rotary):
        raise NotUnderstood(f"no_rope_layers is not a list of {depth} times 0 or 1")
    return [CHUNKED if each else "full_attention" for each in rotary[:depth]]


def _last_of_each(period: int, depth: int, others: str) -> list[str]:
    return ["full_attention" if (at + 1) % period == 0 else others for at in range(depth)]


def _windows(config: Mapping[str, Any], depth: int) -> list[str]:
    """Of a window that no pattern belongs to."""
    window, context = window_of(config), optional(config, "max_position_embeddings")
    if window is not None and context is not None and window >= context:
        return ["full_attention"] * depth
    if "use_sliding_window" in config:  # Qwen2
        first = optional(config, "max_window_layers")
        if first is None:
            raise NotUnderstood("max_window_layers is missing: from which layer on the window is")
        full = min(first, depth)
        return ["full_attention"] * full + ["sliding_attention"] * (depth - full)
    if str(config.get("model_type")) not in _ALL_SLIDE:
        raise NotUnderstood("sliding_window: which layers it is of is not told; name them in layer_types")
    return ["sliding_attention"] * depth


def _refuse_telltales(config: Mapping[str, Any]) -> None:
    for name, told in config.items():
        if name in _HANDLED or not told or not isinstance(name, str) or not _TELLTALE.search(name):
            continue
        if name == "attn_type_list" and isinstance(told, list) and all(each == 1 for each in told):
            continue  # MiniMax: 1 is full attention
        raise NotUnderstood(
            f"{name}: layers may differ by it, in a way that is not understood; give the numbers instead"
        )
