"""Numbers of a `config.json` by the names that families give them; what is no such number is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 1 << 40
"""Of any number: beyond it something else is meant."""

_GEMMA = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096}
_DEFAULTS: dict[str, dict[str, int]] = {
    "gemma": {"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256},
    "gemma2": _GEMMA,
    "gemma3_text": _GEMMA,
    "cohere2": {"sliding_window": 4096},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "mixtral": {"num_key_value_heads": 8},
    "llama4_text": {"num_key_value_heads": 8, "head_dim": 128, "attention_chunk_size": 8192},
    "qwen3": {"head_dim": 128},
}
"""What Transformers takes for a key that is not there, where that is not what this reader would take."""
_AS_MANY_KV_HEADS_AS_HEADS = frozenset({"llama", "phi3", "cohere", "cohere2", "stablelm", "olmo", "olmo2"})
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")


class NotUnderstood(ValueError):
    """This configuration tells too little, or something that this reader does not know."""


def completed(config: Mapping[str, Any], *, is_nested: bool) -> Mapping[str, Any]:
    """With the defaults of its family.

    A nested configuration is written without them, so that KV heads that are missing in one, of a family
    that is not known here, are refused.
    """
    family = str(config.get("model_type"))
    added = {name: told for name, told in _DEFAULTS.get(family, {}).items() if name not in config}
    told = {**config, **added}
    knows = any(told.get(name) is not None for name in (*KV_HEADS, "kv_lora_rank", "multi_query"))
    if is_nested and not knows and family not in _AS_MANY_KV_HEADS_AS_HEADS:
        raise NotUnderstood("num_key_value_heads is missing")
    return told


def optional(config: Mapping[str, Any], *names: str, most: int = MOST) -> int | None:
    """The first that is there; a whole number from 0."""
    for name in names:
        found = config.get(name)
        if found is None:
            continue
        if type(found) is not int or found < 0:
            raise NotUnderstood(f"{name} is {found!r:.80}, not a whole number from 0")
        if found > most:
            raise NotUnderstood(f"{name} is above {most:,}")
        return found
    return None


def some(config: Mapping[str, Any], *names: str, most: int = MOST) -> int | None:
    """The first that is there; a whole number from 1."""
    found = optional(config, *names, most=most)
    if found == 0:
        raise NotUnderstood(f"{next(name for name in names if config.get(name) is not None)} is 0")
    return found


def whole(config: Mapping[str, Any], *names: str, most: int = MOST) -> int:
    """The same of what must be there."""
    found = some(config, *names, most=most)
    if found is None:
        raise NotUnderstood(f"{names[0]} is missing")
    return found
