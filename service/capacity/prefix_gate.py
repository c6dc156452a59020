"""Is a prefix cache worth its memory? From counters of tokens over a day, never from hits per request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import inf
from statistics import pstdev

WINDOW_HOURS = 24.0
"""A day has its own rhythm: a shorter window judges an hour of it."""
OFF, NOISE, DIMINISHING = 0.25, 0.30, 0.85
OWN_POOL_RATE, OWN_POOL_SHARE = 0.60, 0.40
LEAST_PREFIX = 512
LEAST_PREFIXES = 10
"""`Tens` of distinct prefixes: with fewer, one of them decides the rate."""
LEAST_CONCURRENCY = 8.0
MOST_JITTER = 0.10
"""Standard deviation of the rate between readings, from which a cache that is full is thrashing."""


class Advice(StrEnum):
    """What the rate says."""

    WAIT = "wait"
    SWITCH_OFF = "switch_off"
    NOISE = "noise"
    LINEAR = "linear"
    DIMINISHING = "diminishing"
    THRASHING = "thrashing"
    OWN_POOL = "own_pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Counters of an engine at one moment. They only grow; one that fell began anew."""

    prefill_tokens: float
    """Looked up in the prefix cache since the engine started."""
    reused_tokens: float
    """Found there."""
    prefill_seconds: float | None = None
    decode_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What happened between the first reading and the last."""

    hours: float
    prefill_tokens: float
    reused_tokens: float
    prefill_share: float | None
    """Prefill time by prefill and decode time; `None` where the engine does not tell."""
    jitter: float | None = None
    """Standard deviation of the rate between readings; `None` for fewer than 3 readings."""
    restarts: int = 0
    evictions: float | None = None
    """Blocks that were pushed out, where that is known."""
    requests: int | None = None
    requests_hit: int | None = None
    prefix_tokens: float | None = None
    """Of a typical shared prefix."""
    prefixes: int | None = None
    """Distinct ones."""
    concurrency: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.reused_tokens <= self.prefill_tokens < inf or not 0 < self.hours < inf:
            raise ValueError("reused tokens lie between 0 and prefill tokens, in a window of some hours")
        if self.prefill_share is not None and not 0 <= self.prefill_share <= 1:
            raise ValueError("a prefill share lies between 0 and 1")
        if (self.requests is None) != (self.requests_hit is None):
            raise ValueError("requests, and those that hit, are given together")
        if self.requests is not None and not 0 <= (self.requests_hit or 0) <= self.requests:
            raise ValueError("requests that hit are no more than requests")

    @property
    def rate(self) -> float | None:
        """Reused by prefill tokens; `None` without prefill."""
        return self.reused_tokens / self.prefill_tokens if self.prefill_tokens else None

    @property
    def request_rate(self) -> float | None:
        """Hits per request: shown to see how far it misleads, judged by nothing."""
        return (self.requests_hit or 0) / self.requests if self.requests else None

    @property
    def speed_up(self) -> float | None:
        """1 / (1 - rate x prefill share): Amdahl's, for requests one at a time."""
        if self.rate is None or self.prefill_share is None:
            return None
        kept = 1 - self.rate * self.prefill_share
        return 1 / kept if kept > 0 else None


def window_of(readings: Sequence[Reading], *, hours: float) -> Window:
    """Growth of the counters over readings that are equally far apart; `ValueError` for fewer than two."""
    if len(readings) < 2:
        raise ValueError("at least two readings: counters tell by how much they grew")
    parts = [grown(before, after) for before, after in pairwise(readings)]
    rates = [min(1.0, each.reused_tokens / each.prefill_tokens) for each in parts if each.prefill_tokens]
    prefill = sum(each.prefill_tokens for each in parts)
    return Window(
        hours=hours,
        prefill_tokens=prefill,
        # A hit is counted a moment after its look-up: at the edge of a window there may be one more.
        reused_tokens=min(prefill, sum(each.reused_tokens for each in parts)),
        prefill_share=prefill_share_of(parts),
        jitter=pstdev(rates) if len(rates) >= 2 else None,
        restarts=sum(began_anew(before, after) for before, after in pairwise(readings)),
    )


def began_anew(before: Reading, after: Reading) -> bool:
    """Whether the engine did in between: all counters are its own, so one that fell tells it of the others,
    which may have passed what they were before.
    """
    return any(
        one is not None and other is not None and other < one
        for one, other in zip(_counters(before), _counters(after), strict=True)
    )


def grown(before: Reading, after: Reading) -> Reading:
    """By how much; of an engine that began anew, from 0. What either does not tell did not grow visibly."""
    anew = began_anew(before, after)
    prefill, reused, prefilled, decoded = (
        None if one is None or other is None else other - (0.0 if anew else one)
        for one, other in zip(_counters(before), _counters(after), strict=True)
    )
    return Reading(
        prefill_tokens=prefill or 0.0,
        reused_tokens=reused or 0.0,
        prefill_seconds=prefilled,
        decode_seconds=decoded,
    )


def prefill_share_of(parts: Iterable[Reading]) -> float | None:
    """Prefill time by prefill and decode time, where both are told; `None` where none passed."""
    timed = [
        (each.prefill_seconds, each.decode_seconds)
        for each in parts
        if each.prefill_seconds is not None and each.decode_seconds is not None
    ]
    prefill, decode = sum(each for each, _ in timed), sum(each for _, each in timed)
    return prefill / (prefill + decode) if prefill + decode else None


def _counters(told: Reading) -> tuple[float | None, ...]:
    return told.prefill_tokens, told.reused_tokens, told.prefill_seconds, told.decode_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Advice with its reason, and what speaks against trusting it."""

    advice: Advice
    reason: str
    doubts: tuple[str, ...]


def judge(window: Window) -> Judged:
    """What a window says; wait for a day without a gap before anything else."""
    advice, reason = _advice(window)
    return Judged(advice=advice, reason=reason, doubts=tuple(_doubts(window)))


def _advice(window: Window) -> tuple[Advice, str]:
    rate, share = window.rate, window.prefill_share
    if rate is None:
        return Advice.WAIT, "no prompt was prefilled in this window"
    if window.hours < WINDOW_HOURS:
        return (
            Advice.WAIT,
            f"{window.hours:g} hours of {WINDOW_HOURS:g}: an hour of the day speaks for itself alone",
        )
    told = f"{rate:.1%} of prefill tokens are reused"
    if rate < OFF:
        return (
            Advice.SWITCH_OFF,
            f"{told}, below {OFF:.0%}: the cache costs more than it saves; switch it off",
        )
    if rate < NOISE:
        return Advice.NOISE, f"{told}, between {OFF:.0%} and {NOISE:.0%}: too little to tell from noise"
    if rate > DIMINISHING:
        pressed = bool(window.evictions) and (window.jitter or 0.0) > MOST_JITTER
        if pressed:
            return Advice.THRASHING, (
                f"{told}, but blocks are evicted and the rate jitters by {window.jitter:.1%}: it thrashes"
            )
        if share is None or share <= OWN_POOL_SHARE:
            return Advice.DIMINISHING, f"{told}, above {DIMINISHING:.0%}: more cache gains little"
    if rate > OWN_POOL_RATE and share is not None and share > OWN_POOL_SHARE:
        return Advice.OWN_POOL, (
            f"{told} and prefill is {share:.0%} of the time: this traffic deserves a pool of its own"
        )
    return Advice.LINEAR, f"{told}: what is reused is gained, in proportion"


def _doubts(window: Window) -> list[str]:
    found = []
    if window.prefix_tokens is None or window.prefixes is None or window.concurrency is None:
        found.append("not told: length of prefixes, how many there are, or concurrency")
    if window.prefix_tokens is not None and window.prefix_tokens < LEAST_PREFIX:
        found.append(
            f"prefixes of {window.prefix_tokens:g} tokens: below {LEAST_PREFIX} there is little to reuse"
        )
    if window.prefixes is not None and window.prefixes < LEAST_PREFIXES:
        found.append(f"{window.prefixes} distinct prefixes, not tens: one of them decides the rate")
    if window.concurrency is not None and window.concurrency < LEAST_CONCURRENCY:
        found.append(f"{window.concurrency:g} at once: below {LEAST_CONCURRENCY:g} prefill hardly queues")
    if window.prefill_share is None:
        found.append("prefill and decode times are not told: no speed-up, no pool of its own")
    if window.restarts:
        found.append(
            f"counters began anew {window.restarts} times: what was cached before is lost in between"
        )
    if (
        window.rate is not None
        and window.rate > DIMINISHING
        and (window.evictions is None or window.jitter is None)
    ):
        found.append("evictions or jitter are not told: thrashing is not ruled out")
    return found
