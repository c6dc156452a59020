"""The SLO part of a job: from its blocks, and what the gate said, to latencies and pass rates.

A round is one block of every tier under the same arrivals, one after the other. Rounds count whole or not at
all, by the rule of the gate: a block that may not be used spoils its round, unless it is a candidate's that
could not keep up, whose misses are what the run is for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.decision import tango
from service.decision.latency import LatencyBlock, read_latency
from service.decision.quantile import quantile_limits
from service.decision.slo import baseline_slo
from service.report.measured import Figure, Latency, Load, Metric

Json = Mapping[str, Any]
OVER_SATURATED = "over_saturated"
"""How the reason of a block that could not keep up begins (`service.load.figures`)."""
LEVEL = 0.95
REPEATS = 1000
"""Of the bootstrap."""
SHARES = (0.5, 0.95, 0.99)
CURVE = (*(step / 100 for step in range(2, 99, 4)), 0.985, 0.995, 0.999)
"""Shares at which a distribution's curve is drawn, beside those that are told."""


def rounds(blocks: Sequence[Json], tiers: Sequence[str]) -> list[Mapping[str, Json]]:
    """Whole rounds that may be used, by tier; `blocks` are figures of the SLO part in order."""
    arms = len(tiers)
    whole = [blocks[start : start + arms] for start in range(0, len(blocks) - arms + 1, arms)]
    found = [{each["plan"]["tier"]: each for each in one} for one in whole]
    return [one for one in found if set(one) == set(tiers) and not _spoiled(one, tiers[0])]


def loads(blocks: Sequence[Json], tiers: Sequence[str], gates: Sequence[Json], slo: Json) -> dict[str, Load]:
    """By tier, the baseline first; `gates` are the job's findings, `slo` the manifest's."""
    used = rounds(blocks, tiers)
    told = {each["tier"]: each for each in gates if each["gate"] == "slo"}
    return {
        tier: _load(
            [each for each in blocks if each["plan"]["tier"] == tier],
            [one[tier] for one in used],
            None if tier == tiers[0] else [one[tiers[0]] for one in used],
            told.get(tier),
            slo,
        )
        for tier in tiers
        if any(each["plan"]["tier"] == tier for each in blocks)
    }


def _spoiled(one: Mapping[str, Json], baseline: str) -> bool:
    return any(
        bool(each["invalid"])
        if tier == baseline
        else not all(reason.startswith(OVER_SATURATED) for reason in each["invalid"])
        for tier, each in one.items()
    )


def _load(
    every: Sequence[Json],
    used: Sequence[Json],
    baseline: Sequence[Json] | None,
    gate: Json | None,
    slo: Json,
) -> Load:
    numbers: Json = {} if gate is None else gate.get("numbers", {})
    failed: Counter[str] = Counter()
    for each in used:
        failed.update(each["failed"])
    margin = numbers.get("margin")
    plan: Json = every[0]["plan"]
    return Load(
        blocks=len(used),
        invalid=tuple("; ".join(each["invalid"]) for each in every if each["invalid"]),
        offered=sum(each["offered"] for each in used),
        passed=sum(each["passed"] for each in used),
        failed=dict(failed),
        pass_rate=_pass_rate(used),
        rise=_rise(numbers),
        margin=None if margin is None else float(margin),
        shown="" if gate is None else str(gate["reason"]),
        arrivals=str(plan["arrivals"]),
        asked_rate=_mean(used, "asked_rate"),
        achieved_rate=_mean(used, "achieved_rate"),
        lag_p99_seconds=_most(used, "lag_p99"),
        identity_error_seconds=_most(used, "identity_error"),
        latencies=tuple(_latencies(used, baseline, slo)),
    )


def _pass_rate(used: Sequence[Json]) -> Figure | None:
    offered = sum(each["offered"] for each in used)
    if not offered:
        return None
    share = sum(each["passed"] for each in used) / offered
    numbers = baseline_slo(
        [(each["offered"], each["offered"] - each["passed"]) for each in used], alpha=(1 - LEVEL) / 2
    ).numbers
    if "lower limit" not in numbers:
        return Figure(value=share, n=offered)
    lower, upper = 1 - float(numbers["upper limit"]), 1 - float(numbers["lower limit"])
    return Figure(value=share, lower=lower, upper=upper, level=LEVEL, n=offered)


def _rise(numbers: Json) -> Figure | None:
    """Tango's limits of the rise of misses, over the rounds' design effect, at the level of the gate."""
    wanted = ("requests", "missed by the candidate alone", "missed by the baseline alone", "alpha")
    if not all(name in numbers for name in wanted) or not numbers["requests"]:
        return None
    n, harm, benefit, alpha = (numbers[name] for name in wanted)
    if not 0 < alpha < 0.5:
        return None
    level = 1 - 2 * float(alpha)
    effect = float(numbers.get("design effect", 1.0))
    lower, upper = tango.interval(harm, benefit, n, level, design_effect=effect)
    return Figure(value=(harm - benefit) / n, lower=lower, upper=upper, level=level, n=int(n))


def _latencies(used: Sequence[Json], baseline: Sequence[Json] | None, slo: Json) -> Iterator[Latency]:
    for metric in Metric:
        values = [number for each in used for number in _values(each.get("columns") or {}, metric)]
        if not values:
            continue
        limit = slo.get(f"{metric}_seconds")
        came = sorted(number for number in values if math.isfinite(number))
        yield Latency(
            metric=metric,
            n=len(values),
            never=len(values) - len(came),
            limit_seconds=None if limit is None else float(limit),
            quantiles=_quantiles(values),
            p95_difference=None if baseline is None else _difference(baseline, used, metric),
            distribution=tuple(_distribution(came, len(values))),
        )


def _difference(baseline: Sequence[Json], used: Sequence[Json], metric: Metric) -> Figure | None:
    """Of P95, over rounds drawn again (statistics A10); None where too many requests never came so far."""
    found = read_latency(
        [
            LatencyBlock(baseline=_or_none(first, metric), candidate=_or_none(second, metric))
            for first, second in zip(baseline, used, strict=True)
        ],
        level=LEVEL,
        repeats=REPEATS,
    ).difference
    if found is None:
        return None
    # Percentile limits need not enclose the value; told as limits, they do.
    return Figure(
        value=found.value,
        lower=min(found.lower, found.value),
        upper=max(found.upper, found.value),
        level=LEVEL,
        n=found.blocks,
    )


def _or_none(figures: Json, metric: Metric) -> list[float | None]:
    numbers = _values(figures.get("columns") or {}, metric)
    return [number if math.isfinite(number) else None for number in numbers]


def _values(columns: Json, metric: Metric) -> Iterator[float]:
    """Infinite for a request that failed; one with fewer than two tokens has no TPOT."""
    for number, tokens in zip(columns.get(metric.value, ()), columns.get("tokens", ()), strict=True):
        if number is not None:
            yield float(number)
        elif not tokens:
            yield math.inf


def _quantiles(values: Sequence[float]) -> dict[str, Figure]:
    found = {}
    for share in SHARES:
        limits = quantile_limits(values, share, level=LEVEL)
        if limits.value is None or not math.isfinite(limits.value):
            continue
        upper = limits.upper if limits.upper is not None and math.isfinite(limits.upper) else None
        found[f"{share:g}"] = Figure(
            value=limits.value, lower=limits.lower, upper=upper, level=LEVEL, n=limits.n
        )
    return found


def _distribution(came: Sequence[float], n: int) -> Iterator[tuple[float, float]]:
    """The curve at the shares that the requests that came reach, ends included."""
    reached = len(came) / n
    if not came:
        return
    yield 1 / n, came[0]
    for share in sorted({*CURVE, *SHARES}):
        if 1 / n < share < reached:
            yield share, came[math.ceil(share * n) - 1]
    if len(came) > 1:
        yield reached, came[-1]


def _mean(used: Sequence[Json], name: str) -> float | None:
    known = [float(each[name]) for each in used if each.get(name) is not None]
    return math.fsum(known) / len(known) if known else None


def _most(used: Sequence[Json], name: str) -> float | None:
    return max((float(each[name]) for each in used if each.get(name) is not None), default=None)
