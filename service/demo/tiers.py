"""The demo's ladders: how the weights and the KV cache of each tier are stored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scheme(StrEnum):
    """How weights are stored, in the words of llama.cpp."""

    F16 = "f16"
    Q8_0 = "q8_0"
    """8 bits; llama.cpp multiplies by 8-bit activations: the W8A8 of this setting."""
    Q4_0 = "q4_0"
    """4 bits, one scale per 32 weights."""
    MXFP4 = "mxfp4"
    """4-bit floats with power-of-two scales, made for models that were trained with them."""
    Q2_K = "q2_k"
    """2.6 bits where the rows allow it, Q4_0 elsewhere, as llama-quantize does."""


class KvType(StrEnum):
    """How keys and values are cached."""

    F16 = "f16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTier:
    """One tier: a requantised model and how its server caches."""

    name: str
    weights: Scheme
    kv: KvType = KvType.F16


BASELINE = DemoTier(name="f16", weights=Scheme.F16)
QUICK_LADDER = (
    BASELINE,
    DemoTier(name="q8_0", weights=Scheme.Q8_0),
    DemoTier(name="q2_k", weights=Scheme.Q2_K),
)
FULL_LADDER = (
    BASELINE,
    DemoTier(name="q8_0", weights=Scheme.Q8_0),
    DemoTier(name="q4_0", weights=Scheme.Q4_0),
    DemoTier(name="mxfp4", weights=Scheme.MXFP4),
    DemoTier(name="q2_k", weights=Scheme.Q2_K),
)
