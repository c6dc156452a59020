"""From the times of a block's requests to its figures, and to the reasons why they must not be used. Pure.

A block is invalid, and no figure of it may be averaged with others, when

- the generator was late: p99 of its lag beyond its bound, or fewer requests taken up than asked;
- the tier was over-saturated: requests in flight grew over the window, beyond chance and by a share that
  matters, and so did TTFT (or they grew by half and more, as with an engine that takes everything in at
  once); as few more as independent arrivals bring by themselves are none, unless an SLO was missed as well;
- nothing was offered, or nothing at all was answered;
- its times contradict one another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evaluators.exchange import FaultKind
from service.decision.quantile import quantile_limits, sample_quantile
from service.fleet import Slo
from service.load.figures import (
    LAGGED,
    OVER_SATURATED,
    BlockFigures,
    Columns,
    EngineSample,
    Quantiles,
    Slope,
)
from service.load.growth import LEAST_SPANS, SPANS, in_flight, slope, span_means
from service.load.plan import BlockPlan
from service.load.timed import GIVEN_UP, OUT_OF_FILES, Timed

IDENTITY_SECONDS = 1e-6
"""By which E2E and TTFT + TPOT (n - 1) may differ: rounding. They are one sum by definition, so that more is
a fault of this program."""
_DIGITS = 6
"""Of a second, in columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Beyond which a block is invalid."""

    lag_seconds: float = 0.02
    """p99 of the generator's lag, or `lag_share` where that is more."""
    lag_share: float = 0.02
    """The same, as a share of the SLO's TTFT: it adds to every TTFT, and so much decides nothing."""
    rate_share: float = 0.98
    """Of the asked requests, that must be taken up during the window; one less may be at its edge."""
    growth: float = 0.2
    """Of requests in flight over the window, as a share of their mean, that matters."""
    plain_growth: float = 0.5
    """The same, that matters although TTFT did not grow."""
    chance: float = 3.0
    """Standard deviations by which independent arrivals may grow by themselves, while every SLO is met."""


def reckon(
    plan: BlockPlan,
    timed: Sequence[Timed],
    *,
    slo: Slo,
    ticks: Sequence[float] = (),
    engine: Sequence[EngineSample] = (),
    busy_before: Sequence[str] = (),
    bounds: Bounds = Bounds(),
) -> BlockFigures:
    """What the block showed. `timed`: all requests taken up; `ticks`: how late the generator's clock rang."""
    window = [each for each in timed if plan.counts(each.scheduled)]
    complete = [each for each in window if not each.fault]
    met = [each for each in complete if each.meets(slo)]
    told = [each for each in complete if each.tokens is not None]
    told_tokens = sum(each.output_tokens for each in told)
    lags = [each.lag for each in window] if plan.concurrency is None else list(ticks)
    flying = _flying(plan, timed)
    waits = _waits(plan, window)
    drafted = BlockFigures(
        plan=plan,
        offered=len(window),
        passed=len(met),
        answered=sum(each.ended is not None and not each.fault for each in timed),
        failed=dict(Counter(str(each.fault) for each in window if each.fault)),
        without_tpot=sum(each.output_tokens < 2 for each in complete),
        ttft=_quantiles([each.ttft for each in window]),
        tpot=_quantiles([each.tpot for each in window if each.fault or each.output_tokens >= 2]),
        e2e=_quantiles([each.e2e for each in window]),
        goodput=sum(each.output_tokens for each in met) / plan.window_seconds,
        throughput=sum(each.output_tokens for each in complete) / plan.window_seconds,
        mean_output_tokens=sum(each.output_tokens for each in complete) / len(complete) if complete else None,
        without_usage=len(complete) - len(told),
        count_ratio=sum(each.counted for each in told) / told_tokens if told_tokens else None,
        contradicted=sum(each.counted > each.output_tokens for each in told),
        bytes_per_token=_bytes_per_token(complete),
        identity_error=max((_identity_error(each) for each in complete), default=0.0),
        lag_p50=sample_quantile(lags, 0.5) if lags else None,
        lag_p99=sample_quantile(lags, 0.99) if lags else None,
        asked_rate=len(window) / plan.window_seconds if plan.concurrency is None else None,
        achieved_rate=sum(plan.counts(each.begun) for each in timed) / plan.window_seconds,
        repeated=_repeated(plan, timed),
        spent_prompt_tokens=sum(each.prompt_tokens or 0 for each in timed),
        spent_output_tokens=sum(each.output_tokens for each in timed),
        concurrency_slope=slope(*flying),
        ttft_slope=slope(*waits),
        mean_concurrency=math.fsum(flying[1]) / len(flying[1]),
        busy_before=tuple(busy_before),
        engine=tuple(engine),
        columns=_columns(window, slo),
    )
    most_lag = max(bounds.lag_seconds, bounds.lag_share * slo.ttft_seconds)
    return replace(drafted, invalid=tuple(_reasons(drafted, bounds, most_lag)))


def _reasons(block: BlockFigures, bounds: Bounds, most_lag: float) -> Iterable[str]:
    if not block.offered:
        yield "nothing_offered: no request was due in the window"
        return
    if block.lag_p99 is not None and block.lag_p99 > most_lag:
        yield f"{LAGGED}: p99 {block.lag_p99 * 1e3:.1f} ms > {most_lag * 1e3:g} ms"
    # A request that is due as the window ends is taken up beyond it, however little the lag.
    taken_up = round(block.achieved_rate * block.plan.window_seconds)
    if block.asked_rate is not None and taken_up + 1 < bounds.rate_share * block.offered:
        yield f"{LAGGED}: {block.achieved_rate:.3g} requests/s taken up, {block.asked_rate:.3g} were due"
    if ours := block.failed.get(OUT_OF_FILES):
        yield f"{OUT_OF_FILES}: {ours} requests had no connection, for want of file descriptors of our own"
    if block.columns.e2e.count(None) == block.offered:
        yield f"nothing_answered: {_faults(block)}"
    if block.identity_error > IDENTITY_SECONDS:
        yield f"times_contradict: E2E and TTFT + TPOT (n - 1) differ by {block.identity_error * 1e3:.3f} ms"
    if grown := _growth(block, bounds):
        yield f"{OVER_SATURATED}: {grown}"


def _bytes_per_token(complete: Sequence[Timed]) -> float | None:
    written, tokens = sum(each.written for each in complete), sum(each.output_tokens for each in complete)
    return written / tokens if written and tokens else None


def _growth(block: BlockFigures, bounds: Bounds) -> str:
    """Why the tier cannot have kept up; empty when it may have."""
    flying, waits = block.concurrency_slope, block.ttft_slope
    if block.plan.concurrency is not None or flying is None or flying.lower <= 0:
        return ""
    if not block.mean_concurrency:
        return ""
    grown = flying.value * block.plan.window_seconds
    growth = grown / block.mean_concurrency
    if growth < bounds.growth:
        return ""
    if not block.missed and grown < bounds.chance * _chance(block):
        return ""
    waited = waits is not None and waits.lower > 0
    if not waited and growth < bounds.plain_growth:
        return ""
    mean = f"{block.mean_concurrency:.3g}"
    told = f"requests in flight grew by {_limits(flying)} a second around a mean of {mean}"
    return f"{told}, TTFT by {_limits(waits)} s a second" if waited and waits is not None else told


def _chance(block: BlockFigures) -> float:
    """Standard deviation of the growth that independent arrivals bring by themselves.

    In flight are as many as a Poisson number, so two moments differ by sqrt(2 mean). Where a span is long
    beside an answer, its mean is over 1 / share as many that know nothing of one another (batch means); where
    it is not, spans hang together, of which Student's t knows nothing.
    """
    answer_seconds = block.mean_concurrency * block.plan.window_seconds / block.offered  # Little's law
    share = min(1.0, 2 * answer_seconds * SPANS / block.plan.window_seconds)
    return math.sqrt(2 * block.mean_concurrency * share)


def _limits(slope: Slope) -> str:
    return f"{slope.value:.2g} ({slope.lower:.2g} to {slope.upper:.2g})"


def _faults(block: BlockFigures) -> str:
    return ", ".join(f"{fault} {count}" for fault, count in sorted(block.failed.items()))


def _flying(plan: BlockPlan, timed: Sequence[Timed]) -> tuple[list[float], list[float]]:
    lives = ((each.scheduled, math.inf if each.ended is None else each.ended) for each in timed)
    return in_flight(lives, plan.warm_up_seconds, plan.seconds)


def _waits(plan: BlockPlan, window: Sequence[Timed]) -> tuple[list[float], list[float]]:
    """TTFT over time; of a request that never had a token, how long it was waited for.

    Those that were not waited for to their end were given up at one moment: the later ones waited less, and
    would have waited longer. So each counts as no less than the longest before it.
    """
    moments: list[tuple[float, float]] = []
    longest = 0.0
    for each in window:
        until = each.first_token if each.first_token is not None else each.ended
        if until is None:
            continue
        waited = until - each.scheduled
        if each.fault in (GIVEN_UP, FaultKind.TIMEOUT) and each.first_token is None:
            waited = max(waited, longest)
        longest = max(longest, waited)
        moments.append((each.scheduled, waited))
    # Fewer requests than spans would make points of single requests.
    spans = max(LEAST_SPANS, min(10, len(moments) // 3))
    return span_means(moments, plan.warm_up_seconds, plan.seconds, spans=spans)


def _identity_error(each: Timed) -> float:
    if each.tpot is None or each.ttft is None or each.e2e is None:
        return 0.0
    return abs(each.e2e - (each.ttft + each.tpot * (each.output_tokens - 1)))


def _repeated(plan: BlockPlan, timed: Sequence[Timed]) -> int:
    seen: set[int] = set()
    repeated = 0
    for each in timed:
        repeated += each.request in seen and plan.counts(each.scheduled)
        seen.add(each.request)
    return repeated


def _quantiles(values: Sequence[float | None]) -> Quantiles:
    """None is a request that never came so far: later than any other."""
    if not values:
        return Quantiles()
    numbers = [math.inf if value is None else value for value in values]
    there = [value for value in values if value is not None]
    limits = quantile_limits(numbers, 0.95)
    return Quantiles(
        n=len(numbers),
        mean=math.fsum(there) / len(there) if there else None,
        p50=_finite(sample_quantile(numbers, 0.5)),
        p90=_finite(sample_quantile(numbers, 0.9)),
        p95=_finite(limits.value),
        p99=_finite(sample_quantile(numbers, 0.99)),
        p95_lower=_finite(limits.lower),
        p95_upper=_finite(limits.upper),
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def _columns(window: Sequence[Timed], slo: Slo) -> Columns:
    return Columns(
        scheduled=tuple(round(each.scheduled, _DIGITS) for each in window),
        request=tuple(each.request for each in window),
        ttft=tuple(_rounded(each.ttft) for each in window),
        tpot=tuple(_rounded(each.tpot) for each in window),
        e2e=tuple(_rounded(each.e2e) for each in window),
        tokens=tuple(0 if each.fault else each.output_tokens for each in window),
        met=tuple(each.meets(slo) for each in window),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, _DIGITS)
