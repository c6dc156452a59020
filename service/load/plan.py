"""What one block of a load run is to do, told in advance: which tier, which arrivals, for how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum


class Part(StrEnum):
    """What a block is measured for (design section 11)."""

    SLO = "slo"
    """Every arm under the same arrivals: latencies and the SLO pass rate."""
    SWEEP = "sweep"
    """One rate on the way to the tier's best; selected, hence never a cost."""
    COST = "cost"
    """A fresh block at the tier's own best rate."""
    CONCURRENCY = "concurrency"
    """So many requests at once, closed loop, on the way to the most that keep TPOT."""


class Arrivals(StrEnum):
    """How requests follow one another."""

    CONSTANT = "constant"
    """At equal distances."""
    POISSON = "poisson"
    """Independent of one another: exponential distances."""
    TRACE = "trace"
    """As in a recorded trace, told apart; a rate stretches or presses its clock."""
    CLOSED = "closed"
    """The next one when one has ended: only with a concurrency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """One block of one arm. Equal arrivals, rate, seed and seconds: the same requests at the same times."""

    tier: str
    part: Part
    arrivals: Arrivals = Arrivals.POISSON
    rate: float | None = None
    """Requests a second, offered; None for a trace at its own pace, and with a concurrency."""
    concurrency: int | None = None
    """Requests at once; None in an open loop."""
    seed: int = 0
    """Of the arrivals and of which requests are sent."""
    warm_up_seconds: float = 180.0
    """Sent and not counted."""
    window_seconds: float = 600.0
    """Counted: requests that are scheduled in it."""
    cool_down_seconds: float = 30.0
    """The load goes on, uncounted, for so long at most, until the window's last request has ended."""

    def __post_init__(self) -> None:
        closed = self.arrivals is Arrivals.CLOSED
        if closed != (self.concurrency is not None):
            raise ValueError("a concurrency goes with closed arrivals, and only with them")
        if self.concurrency is not None and self.concurrency < 1:
            raise ValueError(f"the concurrency must be at least 1, got {self.concurrency}")
        if closed and self.rate is not None:
            raise ValueError("a closed loop has no rate")
        if self.rate is None and self.arrivals in (Arrivals.CONSTANT, Arrivals.POISSON):
            raise ValueError(f"{self.arrivals} arrivals need a rate")
        if self.rate is not None and not (self.rate > 0 and math.isfinite(self.rate)):
            raise ValueError(f"the rate must be above 0 and finite, got {self.rate}")
        if not (self.warm_up_seconds >= 0 and math.isfinite(self.warm_up_seconds)):
            raise ValueError(f"the warm-up must be at least 0 s, got {self.warm_up_seconds}")
        if not (self.cool_down_seconds >= 0 and math.isfinite(self.cool_down_seconds)):
            raise ValueError(f"the cool-down must be at least 0 s, got {self.cool_down_seconds}")
        if not (self.window_seconds > 0 and math.isfinite(self.window_seconds)):
            raise ValueError(f"the window must be above 0 s, got {self.window_seconds}")

    @property
    def seconds(self) -> float:
        """From the start of the block to the end of its window."""
        return self.warm_up_seconds + self.window_seconds

    def counts(self, scheduled: float) -> bool:
        """Whether a request that is due then, in seconds from the start, is one of the window's."""
        return self.warm_up_seconds <= scheduled < self.seconds

    def document(self) -> dict[str, object]:
        """As JSON objects have it."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, object]) -> BlockPlan:
        """From what `document` gave; ValueError for anything else."""
        try:
            told = dict(document)
            told["part"] = Part(str(told["part"]))
            told["arrivals"] = Arrivals(str(told["arrivals"]))
            return cls(**told)  # type: ignore[arg-type]
        except (KeyError, TypeError) as error:
            raise ValueError(f"no plan of a block: {error}") from error
