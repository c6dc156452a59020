"""How large a run is: its tiers, its traffic, and how long it may go on."""

from __future__ import annotations

from dataclasses import dataclass

from service.demo.tiers import FULL_LADDER, QUICK_LADDER, DemoTier
from service.demo.workload import Load

CLIENT_MODEL = "smollm2"
"""The name clients send."""
MARGIN = 0.2
"""20 percentage points: a handful of pairs can show it. Production asks for 1."""
MIN_PAIRS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """One size of the demo."""

    ladder: tuple[DemoTier, ...]
    load: Load
    """At most; a run ends as soon as every tier is decided."""
    probes: int
    """Recall questions per text."""
    traffic_seconds: float
    """After which no further prompt is sent."""
    clients: int = 3
    """Requests under way at once."""
    backlog: int = 6
    """Most requests that wait for the worker before the clients pause."""


QUICK = DemoPlan(
    ladder=QUICK_LADDER,
    # Half as many questions: every answer counts for the refusal criterion, theirs and the others'.
    load=Load(extractions=30, notes=30, questions=15, sentences=11, facts=3),
    probes=3,
    traffic_seconds=225,
)
FULL = DemoPlan(
    ladder=FULL_LADDER,
    load=Load(extractions=60, notes=72, questions=36, sentences=24, facts=4),
    probes=4,
    traffic_seconds=15 * 60,
)
