"""The last day of a tier's prefix caches, from what its backends told every few minutes.

A day without a gap: where nobody looked for an hour, what was before is another day's. Counters tell by how
much they grew, so that a backend that came later counts from its first word, and one that began anew from 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev

from service.capacity.prefix_gate import WINDOW_HOURS, Reading, Window, began_anew, grown, prefill_share_of

HOUR = 3600.0
LONGEST_GAP = HOUR
"""Seconds without any word of the tier, from which on it is not one day any more."""
LATE_SECONDS = 2 * HOUR
"""Before a day began: in which the word was said that it begins with."""
_NOTHING = Reading(prefill_tokens=0.0, reused_tokens=0.0, prefill_seconds=0.0, decode_seconds=0.0)
"""What an engine tells that has just begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one backend told at one time."""

    backend: str
    at: float
    """Unix seconds."""
    reading: Reading
    running: float | None = None
    """Requests at once, at that moment."""
    kv_usage: float | None = None
    """Share of its KV cache, at that moment."""
    evicted: float | None = None
    """Tokens pushed out of its prefix cache since it started; `None` where it does not count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    """Between two words of one backend."""

    at: float
    by: Reading
    evicted: float | None
    began_anew: bool


def window_until(looks: Sequence[Look], *, now: float) -> Window | None:
    """The last 24 hours without a gap, of all backends together; `None` unless it told twice, and lately."""
    day = _last_day(looks, now)
    begun = {look.at for look in day}
    if len(begun) < 2:
        return None
    first, last = min(begun), max(begun)
    grown_by = list(_growths(day))
    prefill = sum(each.by.prefill_tokens for each in grown_by)
    running = [look.running for look in day if look.running is not None]
    evicted = [each.evicted for each in grown_by if each.evicted is not None]
    return Window(
        hours=(last - first) / HOUR,
        prefill_tokens=prefill,
        # A hit is counted a moment after its look-up: at the edge of a window there may be one more.
        reused_tokens=min(prefill, sum(each.by.reused_tokens for each in grown_by)),
        prefill_share=prefill_share_of(each.by for each in grown_by),
        jitter=_jitter(grown_by, first),
        restarts=sum(each.began_anew for each in grown_by),
        evictions=sum(evicted) if evicted else None,
        concurrency=fmean(running) if running else None,
    )


def _last_day(looks: Sequence[Look], now: float) -> list[Look]:
    """From the last word that is a day old, or else from behind the last gap."""
    recent = [look for look in looks if now - WINDOW_HOURS * HOUR - LATE_SECONDS <= look.at <= now]
    times = sorted({look.at for look in recent})
    if not times or now - times[-1] > LONGEST_GAP:
        return []
    start = times[0]
    for earlier, later in pairwise(times):
        if later - earlier > LONGEST_GAP:
            start = later
    enough = [at for at in times if at >= start and times[-1] - at >= WINDOW_HOURS * HOUR]
    start = enough[-1] if enough else start
    return [look for look in recent if look.at >= start]


def _growths(day: Sequence[Look]) -> Iterator[_Growth]:
    by_backend: defaultdict[str, list[Look]] = defaultdict(list)
    for look in sorted(day, key=lambda look: look.at):
        by_backend[look.backend].append(look)
    for told in by_backend.values():
        for earlier, later in pairwise(told):
            anew = began_anew(earlier.reading, later.reading) or _fell(earlier.evicted, later.evicted)
            evicted = None
            if earlier.evicted is not None and later.evicted is not None:
                evicted = later.evicted - (0.0 if anew else earlier.evicted)
            yield _Growth(
                at=later.at,
                by=grown(_NOTHING if anew else earlier.reading, later.reading),
                evicted=evicted,
                began_anew=anew,
            )


def _fell(earlier: float | None, later: float | None) -> bool:
    return earlier is not None and later is not None and later < earlier


def _jitter(grown_by: Sequence[_Growth], first: float) -> float | None:
    """Of the rate from hour to hour; `None` for fewer than two hours with prompts."""
    hours: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in grown_by:
        hour = hours[int((each.at - first - 1e-6) // HOUR)]
        hour[0] += each.by.prefill_tokens
        hour[1] += each.by.reused_tokens
    rates = [min(1.0, reused / prefill) for prefill, reused in hours.values() if prefill]
    return pstdev(rates) if len(rates) >= 2 else None
