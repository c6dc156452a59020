"""How many bytes a number in a KV cache takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """One way to store keys and values."""

    name: str
    bits: int
    """Of one number."""
    scale_bytes: int = 0
    """Of the scale that belongs to one head's key, or value, of one token; 0 where scales are per layer."""

    def vector_bytes(self, numbers: int) -> int:
        """Bytes of one key or value of that many numbers, its scale included."""
        return -(-numbers * self.bits // 8) + self.scale_bytes


FP16 = Precision(name="fp16", bits=16)
"""BF16 takes as much."""
FP8 = Precision(name="fp8", bits=8)
INT8 = Precision(name="int8", bits=8, scale_bytes=4)
"""Assumes an FP32 scale for each token and head (`int8_per_token_head`); scales per layer take nothing."""
INT4 = Precision(name="4-bit", bits=4, scale_bytes=4)
"""The same, at half a byte a number."""

PRECISIONS = (FP16, FP8, INT8, INT4)

_NAMES = {
    **dict.fromkeys(("auto", "fp16", "bf16", "float16", "bfloat16"), FP16),
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2"), FP8),
    **dict.fromkeys(("int8", "int8_per_token_head"), INT8),
    **dict.fromkeys(("4-bit", "int4", "int4_per_token_head"), INT4),
}

_VLLM_NAMES = {"int8": "int8_per_token_head", "int4": "int4_per_token_head", "4-bit": "int4_per_token_head"}
"""What `--kv-cache-dtype` calls what is also known otherwise."""


def vllm_name_of(name: str) -> str:
    """The value of vLLM's `--kv-cache-dtype` for a precision that is known; 16 bits are `auto`."""
    lower = name.strip().lower()
    return "auto" if precision_of(lower) is FP16 else _VLLM_NAMES.get(lower, lower)


def precision_of(name: str) -> Precision:
    """By an engine's name for it; `auto` is taken for 16 bits. `ValueError` for one that is not known."""
    found = _NAMES.get(name.strip().lower())
    if found is None:
        raise ValueError(f"KV precision {name!r} is not known; known are: {', '.join(_NAMES)}")
    return found
