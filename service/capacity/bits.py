"""How many bits a tier's declared words mean: `int4`, `w4a16`, `q4_K_M`, `fp8_e4m3`, `bf16`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_BITS = re.compile(r"(?<![a-z0-9])(?:int|uint|bfloat|float|bf|fp|nf|mxfp|nvfp|iq|w|q|f|i|u)(\d{1,2})(?!\d)")
_WHOLE = re.compile(r"(?<![a-z0-9.])(\d{1,2})[- _]?bits?\b")
MOST_BITS = 32
KEYS = ("weights", "kv_cache")
"""Of what a tier declares: activations are computed and not kept."""


def bits_of(word: str) -> int | None:
    """Of one declared word; `None` where it says none, such as `auto` or `awq`."""
    lower = word.lower()
    found = _BITS.search(lower) or _WHOLE.search(lower)
    bits = int(found[1]) if found else None
    return bits if bits is not None and 1 <= bits <= MOST_BITS else None


def fewest_bits(declares: Mapping[str, str]) -> int | None:
    """The fewest of weights and KV cache; `None` where the weights say nothing."""
    if bits_of(declares.get("weights", "")) is None:
        return None
    told = [bits_of(declares[key]) for key in KEYS if key in declares]
    return min((each for each in told if each is not None), default=None)
