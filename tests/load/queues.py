"""Tiers as queues with one server: what their requests' times would be, without waiting for them."""

from __future__ import annotations

from itertools import takewhile

from service.fleet import Slo
from service.load.arrivals import dues
from service.load.figures import BlockFigures
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.reckoning import reckon
from service.load.timed import Timed

TOKENS = 100
SLO = Slo(ttft_seconds=1.0, tpot_seconds=0.1)


def block(rate: float, *, served_in: float, part: Part = Part.SWEEP, seed: int = 0) -> BlockFigures:
    """A block at that rate of a tier that serves one request after the other, each in so many seconds."""
    plan = BlockPlan(
        tier="queue",
        part=part,
        arrivals=Arrivals.CONSTANT,
        rate=rate,
        seed=seed,
        warm_up_seconds=10,
        window_seconds=60,
        cool_down_seconds=0,
    )
    free, timed = 0.0, []
    for number, (at, _) in enumerate(takewhile(lambda due: due[0] < plan.seconds, dues(plan))):
        first = max(at, free) + served_in / 2
        free = first + served_in / 2
        timed.append(
            Timed(
                ordinal=number,
                request=number,
                scheduled=at,
                begun=at,
                sent=at,
                first_byte=first,
                first_token=first,
                last_token=free,
                ended=free,
                tokens=TOKENS,
                counted=TOKENS,
                status=200,
            )
        )
    return reckon(plan, timed, slo=SLO)
