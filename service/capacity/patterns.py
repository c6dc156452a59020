"""Three patterns that cost more when switched on, told from data; what is not told is never ruled out.

idle cache      few requests, many prefixes: each is pushed out, or old, before it is asked for again
empty batch     a limit of sequences far above what ever runs: memory and graphs are kept for nobody
blunt weights   few bits where answers must be exact: retries and failures eat what they save
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LEAST_RETURNS = 1.0
"""Requests an hour for each prefix, below which a prefix cache is idle."""
LINEAR = 0.30
"""Rate of tokens from which a prefix cache gains in any case."""
MOST_LIMIT = 4.0
"""Limit of sequences by the most that ran."""
FEW_BITS = 4
SENSITIVE = 0.2
"""Share of traffic whose answers must be exact."""


class Pattern(StrEnum):
    """Its name in reports."""

    IDLE_CACHE = "idle cache"
    EMPTY_BATCH = "empty batch"
    BLUNT_WEIGHTS = "blunt weights"


class State(StrEnum):
    """Whether it is there."""

    FOUND = "found"
    ABSENT = "absent"
    NOT_TOLD = "not_told"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What is known of a tier and its traffic; `None` is unknown."""

    requests_per_second: float | None = None
    prefixes: int | None = None
    """Distinct ones."""
    prefix_rate: float | None = None
    """Of tokens, 0 to 1."""
    sequences_limit: int | None = None
    """`max-num-seqs`."""
    most_running: float | None = None
    """At once, ever."""
    bits: int | None = None
    """The fewest of weights and KV cache."""
    sensitive_share: float | None = None
    """Of requests with structured output, tools, code or long context."""
    accepted: bool | None = None
    """Whether a verdict accepted the tier; `None` while it is undecided."""

    def __post_init__(self) -> None:
        for name in ("requests_per_second", "most_running"):
            if (told := getattr(self, name)) is not None and not 0 <= told < float("inf"):
                raise ValueError(f"{name} is finite and not below 0, got {told}")
        for name in ("prefix_rate", "sensitive_share"):
            if (told := getattr(self, name)) is not None and not 0 <= told <= 1:
                raise ValueError(f"{name} is a share from 0 to 1, got {told}")
        for name, least in (("prefixes", 0), ("sequences_limit", 1), ("bits", 1)):
            if (told := getattr(self, name)) is not None and told < least:
                raise ValueError(f"{name} is at least {least}, got {told}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One pattern, and why it is there or not."""

    pattern: Pattern
    state: State
    reason: str


def sightings(traffic: Traffic) -> tuple[Sighting, ...]:
    """All three, in their order."""
    found = (_idle_cache(traffic), _empty_batch(traffic), _blunt_weights(traffic))
    return tuple(
        Sighting(pattern=pattern, state=state, reason=reason)
        for pattern, (state, reason) in zip(Pattern, found, strict=True)
    )


def _idle_cache(told: Traffic) -> tuple[State, str]:
    if told.requests_per_second is None or told.prefixes is None:
        return State.NOT_TOLD, "needs the rate of requests and the number of distinct prefixes"
    if not told.prefixes:
        return State.ABSENT, "no prefix is shared"
    returns = told.requests_per_second * 3600 / told.prefixes
    seen = f"each of {told.prefixes:,} prefixes is asked for {returns:.2g} times an hour"
    if told.prefix_rate is not None:
        seen += f", and {told.prefix_rate:.1%} of tokens are reused"
        if told.prefix_rate >= LINEAR:
            return State.ABSENT, seen
    if returns >= LEAST_RETURNS:
        return State.ABSENT, seen
    return State.FOUND, f"{seen}: switch the prefix cache off, or route a prefix to one backend"


def _empty_batch(told: Traffic) -> tuple[State, str]:
    if told.sequences_limit is None or told.most_running is None:
        return State.NOT_TOLD, "needs max-num-seqs and the most that ran at once"
    seen = f"up to {told.sequences_limit:,} may run at once, and {told.most_running:.4g} did at most"
    if told.sequences_limit < MOST_LIMIT * max(1.0, told.most_running):
        return State.ABSENT, seen
    return State.FOUND, f"{seen}: lower max-num-seqs, and give the memory to the KV cache"


def _blunt_weights(told: Traffic) -> tuple[State, str]:
    if told.bits is None or (told.bits <= FEW_BITS and told.sensitive_share is None):
        return State.NOT_TOLD, "needs the bits and the share of traffic that must be exact"
    if told.bits > FEW_BITS or told.sensitive_share is None:
        return State.ABSENT, f"{told.bits} bits"
    seen = f"{told.bits} bits, and {told.sensitive_share:.0%} of requests must be exact"
    if told.sensitive_share < SENSITIVE:
        return State.ABSENT, seen
    if told.accepted:
        return State.ABSENT, f"{seen}; a verdict shows that they are"
    shown = "no verdict shows that they are" if told.accepted is None else "a verdict rejects it"
    return State.FOUND, f"{seen}; {shown}: serve those from a tier of more bits"
