"""From numbers to places, and which numbers to write at an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FINEST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A line of numbers laid from `start` to `end`, straight or by their logarithms."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a scale needs two finite numbers in order, got {self.low} and {self.high}")
        if self.logarithmic and self.low <= 0:
            raise ValueError(f"a logarithmic scale starts above 0, got {self.low}")

    def __call__(self, number: float) -> float:
        """The place of a number; beyond the ends, the end."""
        share = (self._of(number) - self._of(self.low)) / (self._of(self.high) - self._of(self.low))
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def holds(self, number: float) -> bool:
        """Whether a number is on the scale."""
        return self.low <= number <= self.high

    def ticks(self, most: int = 6) -> list[float]:
        """At most about `most` round numbers on the scale."""
        return log_ticks(self.low, self.high, most) if self.logarithmic else ticks(self.low, self.high, most)

    def _of(self, number: float) -> float:
        if not self.logarithmic:
            return number
        return math.log(max(number, self.low * 1e-3))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten within the limits."""
    step = _step(high - low, most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(count * step, 12) + 0.0 for count in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """1, 2 and 5 times the powers of ten within the limits, or the powers alone where those are too many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [
            digit * 10.0**power
            for power in range(first, last + 1)
            for digit in digits
            if low * (1 - 1e-9) <= digit * 10.0**power <= high * (1 + 1e-9)
        ]
        if len(found) <= most:
            break
    return found[:: math.ceil(len(found) / most)] if found else [low, high]


def spread(numbers: Iterable[float], *, room: float = 0.06, from_zero: bool = False) -> tuple[float, float]:
    """Limits that hold all finite numbers with some room; (0, 1) without any."""
    known = [number for number in numbers if math.isfinite(number)]
    if from_zero:
        known.append(0.0)
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if high - low < FINEST * max(1.0, abs(high)):
        half = abs(high) / 2 or 0.5
        return (0.0, 2 * half) if from_zero and high >= 0 else (low - half, high + half)
    more = room * (high - low)
    return (low if from_zero and low == 0 else low - more), (high if from_zero and high == 0 else high + more)


def written(numbers: Sequence[float]) -> list[str]:
    """Ticks as texts, all with as many decimals as the finest of them needs."""
    decimals = next(
        (
            places
            for places in range(12)
            if all(abs(round(number, places) - number) <= 1e-9 * max(1e-3, abs(number)) for number in numbers)
        ),
        12,
    )
    return [f"{round(number, decimals) + 0.0:,.{decimals}f}" for number in numbers]


def brief(number: float) -> str:
    """A number of a logarithmic axis by itself: no more digits than it needs."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _step(extent: float, most: int) -> float:
    rough = max(extent, FINEST) / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough * (1 - 1e-9))
