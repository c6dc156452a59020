"""Times of first and next tokens from an engine's own histograms, over a while between two pages.

Between two bounds times are taken to lie evenly, as Prometheus does; beyond the last bound the last bound is
told, so that a time above it is "at least" that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_TTFT = ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds")
_TPOT = (
    "vllm:request_time_per_output_token_seconds",
    "vllm:time_per_output_token_seconds",
    "vllm:inter_token_latency_seconds",
    "sglang:inter_token_latency_seconds",
    "sglang:time_per_output_token_seconds",
)
"""The first that is there counts: a mean of each request where an engine has it, else each token's time."""
_LE = re.compile(r'le="([^"]+)"')

Buckets = Mapping[float, float]
"""How many took no longer than each bound, since the engine started; seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Of one page; empty where the engine has no such histogram."""

    ttft: Buckets
    tpot: Buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """Of all pages of a while together; `None` where nothing came."""

    requests: float
    """That had their first token."""
    ttft_p95: float | None
    tpot_p95: float | None


def latencies(page: str) -> Latencies:
    """What one page has counted so far."""
    return Latencies(ttft=_first(page, _TTFT), tpot=_first(page, _TPOT))


def spell(pages: Sequence[tuple[str, Latencies]]) -> Spell:
    """What came between the first and the last page of each backend; pairs of backend and page, in order."""
    ttft = _grown([(backend, each.ttft) for backend, each in pages])
    tpot = _grown([(backend, each.tpot) for backend, each in pages])
    return Spell(
        requests=max(ttft.values(), default=0.0),
        ttft_p95=quantile(ttft, 0.95),
        tpot_p95=quantile(tpot, 0.95),
    )


def quantile(buckets: Buckets, share: float) -> float | None:
    """By linear interpolation in the bucket that it lies in; `None` where nothing was counted."""
    bounds = sorted(buckets)
    whole = buckets[bounds[-1]] if bounds else 0.0
    if whole <= 0:
        return None
    wanted = share * whole
    below, start = 0.0, 0.0
    for bound in bounds:
        reached = buckets[bound]
        if reached >= wanted:
            if math.isinf(bound):
                return start
            part = (wanted - below) / (reached - below) if reached > below else 1.0
            return start + part * (bound - start)
        below, start = reached, bound
    return start


def _grown(told: Sequence[tuple[str, Buckets]]) -> dict[float, float]:
    """Counts that were added, over all backends; those of one that began anew are all new."""
    before: dict[str, Buckets] = {}
    added: dict[float, float] = {}
    for backend, buckets in told:
        last = before.get(backend)
        before[backend] = buckets
        if last is None or not buckets:
            continue
        anew = any(count < last.get(bound, 0.0) for bound, count in buckets.items())
        for bound, count in buckets.items():
            added[bound] = added.get(bound, 0.0) + count - (0.0 if anew else last.get(bound, 0.0))
    return added


def _first(page: str, names: Sequence[str]) -> Buckets:
    for name in names:
        if found := _buckets(page, f"{name}_bucket"):
            return found
    return {}


def _buckets(page: str, name: str) -> dict[float, float]:
    """Over all series of the name, such as one for each replica."""
    found: dict[float, float] = {}
    for line in page.split("\n"):
        if not line.startswith(f"{name}{{"):
            continue
        braced, _, rest = line[len(name) :].rpartition("}")
        bound, words = _LE.search(braced), rest.split()
        try:
            limit, count = float(bound[1]) if bound else math.nan, float(words[0])
        except (ValueError, IndexError):
            continue
        if math.isfinite(count) and not math.isnan(limit):
            found[limit] = found.get(limit, 0.0) + count
    return found
