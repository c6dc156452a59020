"""What is advised about one tier's capacity, as a report has it: it decides nothing."""

from __future__ import annotations

from dataclasses import dataclass

from service.report.measured import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A concurrency, or why there is none."""

    concurrency: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """From the curve by concurrency."""

    start: Begin
    """`max-num-seqs` to begin with."""
    cheapest: Begin | None = None
    """At which a million tokens that met the SLO cost least; None without a price."""
    turn: Begin | None = None
    """From which more tokens a second cost more each."""
    pool: str = ""
    """What work that waits for nobody gains, in a sentence."""
    pool_gain: float | None = None
    chunk: str = "not_told"
    """cap, keep or not_told."""
    chunk_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """Of the prefix caches of a tier that serves, over a day."""

    advice: str
    reason: str
    hours: float
    rate: Figure | None = None
    """Of tokens; counted, so without limits."""
    speed_up: float | None = None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseTold:
    """Why a stage missed its limit."""

    stage: str
    cause: str
    hurts: str
    evidence: str
    remedies: tuple[str, ...]
    experiment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternTold:
    """One of three that cost more when switched on."""

    pattern: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """All of it."""

    batch: Batch | None = None
    """None where the run did not search for the most at once."""
    prefix: Prefix | None = None
    causes: tuple[CauseTold, ...] = ()
    not_judged: tuple[str, ...] = ()
    """Stages of which nothing is known."""
    patterns: tuple[PatternTold, ...] = ()
