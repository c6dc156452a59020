"""Tiers as queues with one server: what their requests' times would be, without waiting for them."""

from __future__ import annotations

from itertools import takewhile

from service.fleet import Slo
from service.load.arrivals import dues, picks
from service.load.block import Block
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
    return served(plan, served_in=served_in, requests=1000, slo=SLO).figures


def served(plan: BlockPlan, *, served_in: float, requests: int, slo: Slo, late: float = 0.0) -> Block:
    """The same of any plan with a schedule; `late` is a delay that every first token has besides."""
    free, timed, numbers = 0.0, [], picks(requests, plan.seed)
    for ordinal, (at, _) in enumerate(takewhile(lambda due: due[0] < plan.seconds, dues(plan))):
        begun = max(at, free)
        free = begun + served_in
        first, last = begun + served_in / 2 + late, free + late
        timed.append(
            Timed(
                ordinal=ordinal,
                request=next(numbers),
                scheduled=at,
                begun=at,
                sent=at,
                first_byte=first,
                first_token=first,
                last_token=last,
                ended=last,
                tokens=TOKENS,
                counted=TOKENS,
                written=4 * TOKENS,
                status=200,
            )
        )
    return Block(figures=reckon(plan, timed, slo=slo), timed=tuple(timed))
