"""What load runs and the gates that they decide are held to (statistics A9, A10); a part of the policy."""

from __future__ import annotations

from dataclasses import dataclass

from service.decision.clusters import ASSUMED_CORRELATION
from service.decision.failure_chain import RETRY_OR_ESCALATE, FailureChain


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Fixed before a run: a run that is judged by what it showed shows nothing."""

    slo_margin: float = 0.01
    """delta_slo: the largest tolerable rise of the share of requests that miss the SLO."""
    least_blocks: int = 8
    """Of each arm; with fewer, limits over blocks are too narrow whatever their formula."""
    most_baseline_misses: float = 0.03
    """Beyond this share of misses the rate was too high: what both arms miss together says nothing."""
    power: float = 0.9
    """Chance of passing an equal tier for which a run extends its window."""
    least_power: float = 0.8
    """With less, the run is not worth its load."""
    block_correlation: float = ASSUMED_CORRELATION
    """Of requests within a block, assumed while fewer than 20 blocks are discordant."""
    failure: FailureChain = RETRY_OR_ESCALATE
    """What one failed answer costs."""

    def __post_init__(self) -> None:
        if not 0 < self.slo_margin < 1:
            raise ValueError(f"slo_margin must be in (0, 1), got {self.slo_margin}")
        if self.least_blocks < 2:
            raise ValueError(f"limits over blocks need at least 2 of them, got {self.least_blocks}")
        if not 0 < self.most_baseline_misses <= 1:
            raise ValueError(f"most_baseline_misses must be in (0, 1], got {self.most_baseline_misses}")
        if not 0 < self.least_power <= self.power < 1:
            raise ValueError(
                f"least_power and power must rise within (0, 1), got {self.least_power} and {self.power}"
            )
        if not 0 <= self.block_correlation <= 1:
            raise ValueError(f"block_correlation must be in [0, 1], got {self.block_correlation}")


DEFAULT_TERMS = Terms()
