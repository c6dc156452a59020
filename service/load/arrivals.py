"""When requests are due, and which they are: drawn beforehand from a seed, whatever the answers do."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count, pairwise

from service.load.plan import Arrivals, BlockPlan


def dues(plan: BlockPlan, trace: Sequence[float] = ()) -> Iterator[tuple[float, int]]:
    """When each request is due, in seconds from the start of the block, rising, without end; and its place.

    The place is that in the trace, where there is one, or else the request's number. `trace` has times in
    seconds that do not fall. It is entered where the seed says and begins again at its end, after its mean
    distance; with a rate, its clock runs so that it has that rate on the whole. ValueError for a trace
    without duration, and for a plan that has no schedule.
    """
    if plan.arrivals is Arrivals.CLOSED:
        raise ValueError("a closed loop has no schedule")
    chance = random.Random(f"{plan.seed}:arrivals")
    if plan.arrivals is Arrivals.TRACE:
        return _replayed(trace, plan.rate, chance)
    assert plan.rate is not None, "the plan says so"
    if plan.arrivals is Arrivals.CONSTANT:
        distance = 1 / plan.rate
        return ((number * distance, number) for number in count())
    return _poisson(plan.rate, chance)


def picks(requests: int, seed: int) -> Iterator[int]:
    """Which request is sent when, without end: all of them in a drawn order, then all again in another."""
    if requests < 1:
        raise ValueError("there are no requests to send")
    return _shuffled(list(range(requests)), random.Random(f"{seed}:requests"))


def _shuffled(order: list[int], chance: random.Random) -> Iterator[int]:
    while True:
        chance.shuffle(order)
        yield from order


def _poisson(rate: float, chance: random.Random) -> Iterator[tuple[float, int]]:
    at = 0.0
    for number in count():
        at += chance.expovariate(rate)
        yield at, number


def _replayed(
    trace: Sequence[float], rate: float | None, chance: random.Random
) -> Iterator[tuple[float, int]]:
    if len(trace) < 2 or not trace[-1] > trace[0]:
        raise ValueError("a trace needs two times at least, and some duration")
    distances = [later - earlier for earlier, later in pairwise(trace)]
    if min(distances) < 0:
        raise ValueError("the times of a trace must not fall")
    distances.append((trace[-1] - trace[0]) / (len(trace) - 1))
    own_rate = len(trace) / sum(distances)
    pace = 1.0 if rate is None else own_rate / rate
    at, place = 0.0, chance.randrange(len(trace))
    while True:
        yield at, place
        at += distances[place] * pace
        place = (place + 1) % len(trace)
