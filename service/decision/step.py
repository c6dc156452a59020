"""One link of the chain from counts to decision, for two readers (`explain`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Number = int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """It follows from those before it."""

    title: str
    sentence: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    """By name, in the order of reading; texts are formulas."""
