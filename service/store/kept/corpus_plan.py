"""How much of traffic the corpus keeps, and for how long. No SQL, so that settings can use it."""

from __future__ import annotations

from dataclasses import dataclass

TRAFFIC = "traffic"
"""The corpus that is drawn from captures; all others are imported, and stay until they are forgotten."""
PERIODS = 4
"""Periods in a retention: requests of one come and go together, and are kept for 3/4 of it or longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPlan:
    """How much is kept, and for how long."""

    per_stratum: int = 20
    """Requests of one stratum and period; 0 = none are drawn."""
    retention_seconds: float = 28 * 86_400.0
    max_bytes: int = 256 * 1024 * 1024
    """Of all sealed requests; beyond, the fullest stratum gives up the one that ranks last."""

    def period_of(self, at: float) -> tuple[float, float]:
        """When the period of a moment began, and when all of it expires (unix seconds)."""
        length = self.retention_seconds / PERIODS
        start = at // length * length
        return start, start + self.retention_seconds
