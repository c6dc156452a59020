"""Batch size from a curve by concurrency: where TPOT ends it, what tokens cost on the way, what a pool gains.

    start     the most at once with P95 of TPOT <= .8 x its SLO, below the fewest that miss that; steps that
              keep it while nobody met the SLO only waited, and tell nothing
    cost      price an hour x 1e6 / (3600 x tokens a second that met the SLO)
    gain      tokens a second at the best step / at the start - 1        an offline pool has no TPOT to keep

Nothing is extrapolated: what no step shows beyond is `None`, and the reason says what was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from service.capacity.initial import CHUNK_TOKENS

_SHARE = 0.8
"""Of TPOT's SLO: room for what a window does not show."""
LEAST_GAIN, MOST_GAIN = 0.30, 0.50
"""What an offline pool is said to gain; here it is compared with what was measured."""
LEAST_BASE = 1e-6
"""Tokens a second, below which nothing is compared with a step."""
SMOOTH, JITTERS = 2.0, 1.5
"""P95 by median, of TTFT up to which it is smooth, of TPOT from which it jitters. Ours: no law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """So many requests at once; times in seconds, tokens of output a second."""

    concurrency: int
    tpot_p95: float | None
    """`None` where so many failed that there is none, which keeps no SLO."""
    throughput: float | None = None
    """All tokens."""
    goodput: float | None = None
    """Those that met the SLO."""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"at least one request is under way, got {self.concurrency}")
        for told in (self.tpot_p95, self.throughput, self.goodput):
            if told is not None and not 0 <= told < math.inf:
                raise ValueError(f"times and rates are finite and not below 0, got {told}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A concurrency, or why there is none."""

    concurrency: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of a million tokens that met the SLO, in the currency of the price."""

    concurrency: int
    throughput: float | None
    million: float | None
    """`None` where no token met it, or goodput is not told."""
    told: bool = True
    """Whether goodput is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The curve and its two turns."""

    curve: tuple[Cost, ...]
    cheapest: Found
    turn: Found
    """More tokens than a step before, each that counts dearer: where nominal throughput misleads."""


class Gain(StrEnum):
    """What is measured, against 30 to 50 %."""

    BELOW = "below"
    AS_SAID = "as_said"
    ABOVE = "above"
    NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offline:
    """What a pool without a TPOT to keep gains in tokens a second."""

    verdict: Gain
    gain: float | None
    concurrency: int | None
    """Of the best step."""
    reason: str


class Chunk(StrEnum):
    """What to do about `max-num-batched-tokens`."""

    CAP = "cap"
    KEEP = "keep"
    NOT_TOLD = "not_told"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkAdvice:
    """With its reason."""

    advice: Chunk
    reason: str


def tpot_limit(tpot_seconds: float) -> float:
    """What P95 of TPOT keeps to wherever the most at once is looked for; seconds, as is its SLO."""
    return _SHARE * tpot_seconds


def limit_told(tpot_seconds: float) -> str:
    """The limit in words."""
    return f"P95 of TPOT at most {tpot_limit(tpot_seconds) * 1e3:.4g} ms, {_SHARE:.0%} of its SLO"


def edges(tried: Iterable[tuple[int, float | None]], *, tpot_seconds: float) -> tuple[int | None, int | None]:
    """The most at once that keep the limit below the fewest that miss it, and those fewest.

    `tried` are (concurrency, P95 of TPOT in seconds, or `None` for a miss); of several with the same
    concurrency all must keep it.
    """
    kept: dict[int, bool] = {}
    for count, tpot_p95 in tried:
        keeps = tpot_p95 is not None and tpot_p95 <= tpot_limit(tpot_seconds)
        kept[count] = kept.get(count, True) and keeps
    misses = min((count for count, keeps in kept.items() if not keeps), default=None)
    keeping = [count for count, keeps in kept.items() if keeps and (misses is None or count < misses)]
    return max(keeping, default=None), misses


def merged(steps: Sequence[Step]) -> tuple[Step, ...]:
    """One step for each concurrency, rising: the worst TPOT of its blocks, as all must keep it; mean rate."""
    found = []
    for count in sorted({each.concurrency for each in steps}):
        same = [each for each in steps if each.concurrency == count]
        times = [each.tpot_p95 for each in same]
        found.append(
            Step(
                concurrency=count,
                tpot_p95=None if None in times else max(time for time in times if time is not None),
                throughput=_mean([each.throughput for each in same]),
                goodput=_mean([each.goodput for each in same]),
            )
        )
    return tuple(found)


def start(steps: Sequence[Step], *, tpot_seconds: float) -> Found:
    """Where to begin with `max-num-seqs`; `ValueError` unless TPOT's SLO is above 0 s."""
    if not 0 < tpot_seconds < math.inf:
        raise ValueError(f"TPOT's SLO is above 0 s, got {tpot_seconds}")
    at_work = (
        (step.concurrency, step.tpot_p95)
        for step in merged(steps)
        # Of whom nobody met the SLO though TPOT was kept, all waited in the engine's queue (`load.crowd`).
        if step.goodput != 0 or step.tpot_p95 is None or step.tpot_p95 > tpot_limit(tpot_seconds)
    )
    keeps, misses = edges(at_work, tpot_seconds=tpot_seconds)
    bound = limit_told(tpot_seconds)
    if keeps is not None and misses is not None:
        return Found(concurrency=keeps, reason=f"{keeps} at once keeps {bound}; {misses} does not")
    if misses is not None:
        reason = f"{misses} at once does not keep {bound}, and no fewer does"
    elif keeps is not None:
        reason = f"{keeps} at once still keeps {bound}, and no more was tried"
    else:
        reason = "no step tells anything"
    return Found(concurrency=None, reason=f"not reached: {reason}")


def costs(steps: Sequence[Step], *, price_per_hour: float) -> Costs:
    """The curve of cost, its minimum, and where it turns up under rising throughput."""
    if not 0 < price_per_hour < math.inf:
        raise ValueError(f"a price is above 0 an hour, got {price_per_hour}")
    curve = tuple(
        Cost(
            concurrency=each.concurrency,
            throughput=each.throughput,
            million=_million(price_per_hour, each.goodput),
            told=each.goodput is not None,
        )
        for each in merged(steps)
    )
    known = [each for each in curve if each.told]
    if not any(each.million is not None for each in known):
        why = "no token met the SLO" if known else "tokens that met the SLO are not told"
        nothing = Found(concurrency=None, reason=f"not reached: {why}")
        return Costs(curve=curve, cheapest=nothing, turn=nothing)
    least = min(known, key=_of)
    beyond = [each for each in known if each.concurrency >= least.concurrency]
    dearer = next((each for each in beyond if _of(each) > _of(least)), None)
    at = f"{least.concurrency} at once is the cheapest so far ({_money(least)})"
    if dearer is None:
        cheapest = Found(concurrency=None, reason=f"not reached: {at}, and no more was tried that is dearer")
    elif least is known[0] and least.concurrency > 1:
        cheapest = Found(concurrency=None, reason=f"not reached: {at}, and no fewer was tried")
    else:
        cheapest = Found(
            concurrency=least.concurrency,
            reason=f"{_money(least)} at {least.concurrency}; {_money(dearer)} at {dearer.concurrency}",
        )
    return Costs(curve=curve, cheapest=cheapest, turn=_turn(beyond))


def _million(price_per_hour: float, goodput: float | None) -> float | None:
    if not goodput:
        return None
    cost = price_per_hour * 1e6 / (3600 * goodput)
    return cost if cost < math.inf else None


def _turn(beyond: Sequence[Cost]) -> Found:
    for was, now in pairwise(beyond):
        if was.throughput is None or now.throughput is None:
            continue
        if now.throughput > was.throughput and _of(now) > _of(was):
            return Found(
                concurrency=now.concurrency,
                reason=f"from {was.concurrency} to {now.concurrency} at once tokens a second rise from "
                f"{was.throughput:.4g} to {now.throughput:.4g}, and cost from {_money(was)} to {_money(now)}",
            )
    return Found(
        concurrency=None, reason="not reached: no step past the cheapest has more tokens, each dearer"
    )


def offline(steps: Sequence[Step], *, online: int | None) -> Offline:
    """What offline work gains over `online` at once; `NOT_REACHED` where the curve still rises at its end."""
    curve = [each for each in merged(steps) if each.throughput is not None]
    base = next((each.throughput for each in curve if each.concurrency == online), None)
    if online is None or base is None or base < LEAST_BASE:
        return Offline(
            verdict=Gain.NOT_REACHED,
            gain=None,
            concurrency=None,
            reason="not reached: no start to compare with",
        )
    best = max((each for each in curve if each.concurrency >= online), key=lambda each: each.throughput or 0)
    gain = (best.throughput or 0) / base - 1
    least = "at least " if best is curve[-1] else ""
    told = f"{least}{gain:.1%} more tokens at {best.concurrency} at once than at {online}"
    if best is curve[-1] and gain <= MOST_GAIN:
        verdict, reason = Gain.NOT_REACHED, f"not reached: {told}, and no more was tried"
    elif gain < LEAST_GAIN:
        verdict, reason = Gain.BELOW, f"{told}: less than the {LEAST_GAIN:.0%} that are said"
    elif gain <= MOST_GAIN:
        verdict, reason = Gain.AS_SAID, f"{told}: as said, {LEAST_GAIN:.0%} to {MOST_GAIN:.0%}"
    else:
        verdict, reason = Gain.ABOVE, f"{told}: more than the {MOST_GAIN:.0%} that are said"
    return Offline(verdict=verdict, gain=gain, concurrency=best.concurrency, reason=reason)


def chunk(
    *,
    ttft_p50: float | None,
    ttft_p95: float | None,
    tpot_p50: float | None,
    tpot_p95: float | None,
    batch_tokens: int | None = None,
) -> ChunkAdvice:
    """Whether to cap chunks of prefill at about 2k: a smooth TTFT beside a TPOT that jitters.

    A time is infinite, and so none to compare, where too many requests never had it.
    """
    if not ttft_p50 or ttft_p95 is None or not tpot_p50 or tpot_p95 is None:
        return ChunkAdvice(advice=Chunk.NOT_TOLD, reason="medians and P95 of TTFT and TPOT are not all told")
    if not all(map(math.isfinite, (ttft_p50, ttft_p95, tpot_p50, tpot_p95))):
        return ChunkAdvice(advice=Chunk.NOT_TOLD, reason="too many requests had no first token, or no more")
    first, later = ttft_p95 / ttft_p50, tpot_p95 / tpot_p50
    told = f"P95 is {first:.1f} times the median of TTFT, {later:.1f} times of TPOT"
    if first > SMOOTH or later < JITTERS:
        return ChunkAdvice(advice=Chunk.KEEP, reason=f"{told}: no smooth TTFT beside a TPOT that jitters")
    if batch_tokens is not None and batch_tokens <= CHUNK_TOKENS:
        return ChunkAdvice(
            advice=Chunk.KEEP,
            reason=f"{told}, yet chunks have {batch_tokens:,} tokens at most: it comes from elsewhere",
        )
    return ChunkAdvice(
        advice=Chunk.CAP,
        reason=f"{told}: answers wait for chunks of prefill; try max-num-batched-tokens {CHUNK_TOKENS}",
    )


def _of(cost: Cost) -> float:
    return math.inf if cost.million is None else cost.million


def _money(cost: Cost) -> str:
    return "no token that counts" if cost.million is None else f"{cost.million:.4g} a million"


def _mean(told: Sequence[float | None]) -> float | None:
    known = [each for each in told if each is not None]
    return math.fsum(known) / len(known) if known else None
