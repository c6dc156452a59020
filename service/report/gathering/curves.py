"""The sweep, the search for the largest concurrency, and what engines told, from the blocks of a job."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from service.capacity.batch import tpot_limit
from service.report.measured import Concurrency, ConcurrencyPoint, EngineSeries, RatePoint, Sweep

Json = Mapping[str, Any]
METRICS = ("kv_usage", "running", "waiting", "preemptions", "prefix_hit_rate")
"""What is told of engines, in this order."""
MOST_POINTS = 400
"""Of one line; more are thinned out evenly."""


def sweep(blocks: Sequence[Json], best: Json | None) -> Sweep | None:
    """Of one tier, from its blocks of the sweep and of the cost; None when there are none."""
    points = tuple(
        RatePoint(
            rate=float(each["plan"]["rate"]),
            goodput=float(each["goodput"]),
            fresh=each["plan"]["part"] == "cost",
            pass_rate=each["passed"] / each["offered"] if each["offered"] else None,
            ttft_p95_seconds=_p95(each, "ttft"),
            tpot_p95_seconds=_p95(each, "tpot"),
            invalid=tuple(each["invalid"]),
        )
        for each in blocks
        if each["plan"]["part"] in ("sweep", "cost") and each["plan"]["rate"] is not None
    )
    if not points and best is None:
        return None
    reached = best is not None and best["reached"] and best["rate"] is not None
    return Sweep(
        points=points,
        best_rate=float(best["rate"]) if best is not None and reached else None,
        note="" if best is None else str(best["told"]),
    )


def concurrency(blocks: Sequence[Json], found: Json | None, tpot_seconds: float) -> Concurrency | None:
    """Of one tier; None when it was not searched for."""
    points = tuple(
        ConcurrencyPoint(
            concurrency=int(each["plan"]["concurrency"]),
            tpot_p95_seconds=_p95(each, "tpot"),
            throughput=float(each["throughput"]),
            invalid=tuple(each["invalid"]),
        )
        for each in blocks
        if each["plan"]["concurrency"] is not None
    )
    if not points and found is None:
        return None
    reached = found is not None and found["reached"]
    return Concurrency(
        points=points,
        limit_seconds=tpot_limit(tpot_seconds) if found is None else float(found["limit_seconds"]),
        largest=found["concurrency"] if found is not None and reached else None,
        note="" if found is None else str(found["told"]),
    )


def engine(blocks: Sequence[tuple[float, Json]]) -> tuple[tuple[EngineSeries, ...], tuple[str, ...]]:
    """What a tier's engines told, and what they did not; `blocks` are (seconds since the run began, figures).

    Of several backends the fullest KV cache is told, and the sum of the rest. Counters are told as what was
    added since the run's first look; hits of the prefix cache as a share of the tokens looked up between two
    looks.
    """
    looks = [
        (begin + float(sample["at"]), str(sample["backend"]), sample["load"] or {})
        for begin, figures in blocks
        for sample in figures.get("engine", ())
    ]
    looks.sort(key=lambda look: look[0])
    if not looks:
        return (), ()
    told = {
        "kv_usage": _together(looks, "kv_usage", max),
        "running": _together(looks, "running", math.fsum),
        "waiting": _together(looks, "waiting", math.fsum),
        "preemptions": _counted(looks, "preemptions"),
        "prefix_hit_rate": _hit_rate(looks),
    }
    known = {name: points for name, points in told.items() if any(number is not None for _, number in points)}
    return (
        tuple(EngineSeries(metric=name, points=_thinned(known[name])) for name in METRICS if name in known),
        tuple(name for name in METRICS if name not in known),
    )


Looks = Sequence[tuple[float, str, Json]]
Points = list[tuple[float, float | None]]


def _together(looks: Looks, name: str, joined: Callable[[list[float]], float]) -> Points:
    """One number a moment, over the latest of each backend."""
    latest: dict[str, float | None] = {}
    points: Points = []
    for at, backend, load in looks:
        number = load.get(name)
        latest[backend] = None if number is None else float(number)
        known = [each for each in latest.values() if each is not None]
        points.append((at, None if latest[backend] is None else joined(known)))
    return points


def _counted(looks: Looks, name: str) -> Points:
    """What counters added since their first look; one that fell began anew, as with an engine restarted."""
    before: dict[str, float] = {}
    total = 0.0
    points: Points = []
    for at, backend, load in looks:
        number = load.get(name)
        if number is None:
            points.append((at, None))
            continue
        last = before.get(backend)
        if last is not None:
            total += number - last if number >= last else number
        before[backend] = float(number)
        points.append((at, total))
    return points


def _hit_rate(looks: Looks) -> Points:
    before: defaultdict[str, tuple[float, float] | None] = defaultdict(lambda: None)
    points: Points = []
    for at, backend, load in looks:
        asked, found = load.get("prefix_queries"), load.get("prefix_hits")
        if asked is None or found is None:
            continue
        last = before[backend]
        if last is not None and asked > last[0] and found >= last[1]:
            points.append((at, min(1.0, (found - last[1]) / (asked - last[0]))))
        before[backend] = (float(asked), float(found))
    return points


def _thinned(points: Points) -> tuple[tuple[float, float | None], ...]:
    step = math.ceil(len(points) / MOST_POINTS)
    return tuple(points[::step])


def _p95(figures: Json, name: str) -> float | None:
    found = figures[name]
    return None if found is None or found["p95"] is None else float(found["p95"])
