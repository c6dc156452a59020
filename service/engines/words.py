"""Words that people declare against words that engines use for the same."""

from __future__ import annotations

from service.engines.facts import EngineFacts

SIXTEEN_BITS = frozenset({"auto", "bf16", "bfloat16", "fp16", "float16", "f16", "half"})
"""Declared types that an engine's `auto` can mean; it follows the checkpoint."""
HALVED = 1.5
"""A KV cache of 8 bits holds twice the tokens of one of 16 in the same memory; nearer to once than that is
none."""


def same_kv_dtype(declared: str, told: str) -> bool:
    """Whether an engine's word for its KV cache type is what was declared; `fp8` is any 8-bit float."""
    one, other = declared.lower(), told.lower()
    if other == "auto":
        return one in SIXTEEN_BITS
    if one == other:
        return True
    families = [SIXTEEN_BITS - {"auto"}, {"fp8", "fp8_e4m3", "fp8_e4m3fn"}, {"fp8", "fp8_e5m2"}]
    return any(one in family and other in family for family in families)


def same_engine(declared: str, engine: EngineFacts) -> bool:
    """Whether `vllm`, `vllm 0.32` or `vllm-0.32.0` describes it; a short version covers longer ones."""
    text = declared.lower().replace("-", " ").replace("=", " ").replace(":", " ")
    name, _, version = text.partition(" ")
    if name != engine.engine:
        return False
    wanted, told = version.strip().removeprefix("v"), (engine.version or "").lower().removeprefix("v")
    return not wanted or _begins(told.replace("-", " "), wanted)


def kv_ratio(baseline: EngineFacts, candidate: EngineFacts) -> float | None:
    """Tokens of the candidate's KV cache for one of the baseline's in like memory; None when not told.

    In bytes given for it, or else in the same share of memory, where smaller weights leave more of it.
    """
    if baseline.kv_tokens is None or candidate.kv_tokens is None:
        return None
    ratio = candidate.kv_tokens / baseline.kv_tokens
    if baseline.kv_bytes and candidate.kv_bytes:
        return ratio * baseline.kv_bytes / candidate.kv_bytes
    if baseline.memory_utilisation is None or baseline.memory_utilisation != candidate.memory_utilisation:
        return None
    return ratio


def kv_doubt(declared: str, baseline: EngineFacts, candidate: EngineFacts) -> str | None:
    """Why a KV cache declared as 8 bits cannot be one: it holds no more tokens than the baseline's.

    The engine's label is no proof: `auto` follows the checkpoint. None when nothing speaks against it.
    """
    eight = declared.lower().startswith(("fp8", "int8", "q8"))
    baseline_has_16 = baseline.kv_dtype is None or baseline.kv_dtype.lower() in SIXTEEN_BITS
    ratio = kv_ratio(baseline, candidate)
    if not eight or not baseline_has_16 or ratio is None or ratio >= HALVED:
        return None
    return (
        f"declares kv_cache {declared!r}, but its KV cache holds {candidate.kv_tokens} tokens and the "
        f"baseline's {baseline.kv_tokens}: twice as many were to be expected in the same memory"
    )


def _begins(told: str, wanted: str) -> bool:
    return told.startswith(wanted) and not told[len(wanted) :][:1].isalnum()
