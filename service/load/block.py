"""Runs blocks: sends their requests, watches engines and whoever may object, and reckons what they showed.

Blocks run in a process of their own (a Celery worker of the queue `load`), so that nothing that scores
answers disturbs what is timed. `run_together` is the whole of it; one block is run alone, or the blocks of
several arms at the same time, from the same moment on, each against hardware of its own.
"""

from __future__ import annotations

import asyncio
import gc
import math
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import uvloop

from evaluators.exchange import Request
from service.fleet import Backend, Slo
from service.load.bodies import load_body
from service.load.driver import Driver, Prepared
from service.load.engine_watch import EVERY_SECONDS, EngineWatch
from service.load.figures import BlockFigures
from service.load.output import OUTPUTS
from service.load.plan import BlockPlan, Part
from service.load.reckoning import Bounds, reckon
from service.load.timed import Timed

LEAD_SECONDS = 0.05
"""Between the last preparation and the start of the block."""
MOST_DESCRIPTORS = 65_536
SWITCH_SECONDS = 0.0005
"""After which a thread that computes lets us in."""

Watch = Callable[[], Awaitable[str]]
"""Why the block must end at once, such as clients that no longer get what they are promised, or that it was
cancelled; empty while nothing speaks against it. It is asked in the loop that sends: what waits or computes
belongs in a thread."""


class Aborted(Exception):
    """The block was ended before its time, for the reason it carries. It shows nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is sent, and where."""

    backends: tuple[Backend, ...]
    model: str
    """What the backends call it."""
    requests: Sequence[Request] = field(repr=False)
    slo: Slo
    trace: Sequence[float] = field(default=(), repr=False)
    """Times in seconds for plans that replay them; with as many requests, each goes with its own."""
    request_seconds: float = 300.0
    """After which a request has failed."""
    silent_seconds: float = 30.0
    """Without a token, after which one is not waited for when the window is over, or twice the SLO's TTFT."""
    rest_seconds: float = 0.0
    """That the engines get before the block to end what others left them, such as requests of the last block
    that were given up. 0: they serve somebody, who is not waited for."""
    engine_seconds: float = EVERY_SECONDS
    """Between two looks at the engines."""
    watch_seconds: float = 1.0
    """Between two questions to whoever may object."""
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What became of a block."""

    figures: BlockFigures
    timed: tuple[Timed, ...]
    """Everything taken up, warm-up and cool-down included, in that order."""


async def _nothing_against() -> str:
    return ""


def run_block(plan: BlockPlan, load: Load, *, watch: Watch = _nothing_against) -> Block:
    """`run_together` for a block that is alone."""
    return run_together([(plan, load)], watch=watch)[0]


def run_together(
    arms: Sequence[tuple[BlockPlan, Load]], *, watch: Watch = _nothing_against
) -> tuple[Block, ...]:
    """Run blocks, one of each arm, in an event loop of their own, undisturbed by the garbage collector.

    `Aborted` when `watch` objects: to all of them, as often as their loads say. ValueError for a plan that
    cannot be carried out: no backends, no requests, a trace without duration.
    """
    _lift_descriptor_limit()
    switching, collecting = sys.getswitchinterval(), gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    # A thread beside us, such as one that keeps a lease, may hold us up for so long each time.
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        return uvloop.run(measure_together(arms, watch=watch))
    finally:
        sys.setswitchinterval(switching)
        gc.unfreeze()
        if collecting:
            gc.enable()


def _lift_descriptor_limit() -> None:
    """A connection for every request under way: as many as this process can be allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS has a limit that it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def measure(plan: BlockPlan, load: Load, *, watch: Watch = _nothing_against) -> Block:
    """`run_block` in the running loop."""
    return (await measure_together([(plan, load)], watch=watch))[0]


async def measure_together(
    arms: Sequence[tuple[BlockPlan, Load]], *, watch: Watch = _nothing_against
) -> tuple[Block, ...]:
    """`run_together` in the running loop."""
    seconds = min(load.watch_seconds for _, load in arms)
    running: list[_Arm] = []
    try:
        for plan, load in arms:
            running.append(_Arm(plan, load))
        try:
            async with asyncio.TaskGroup() as group:
                beside = group.create_task(_ask(watch, seconds))
                # However long the engines take to come to rest and to tell, nothing is due before.
                await asyncio.gather(*(arm.rest() for arm in running))
                start = time.monotonic() + LEAD_SECONDS
                await asyncio.wait([group.create_task(arm.run(start)) for arm in running])
                beside.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
    finally:
        for arm in running:
            arm.driver.close()
    # Not before the last has ended: what is reckoned meanwhile would make the others late.
    return tuple(arm.block() for arm in running)


class _Arm:
    """One block of one arm, under way."""

    def __init__(self, plan: BlockPlan, load: Load) -> None:
        self.plan, self.load = plan, load
        self.driver = Driver(
            plan,
            backends=load.backends,
            requests=[_prepared(request, load.model) for request in load.requests],
            trace=load.trace,
            request_seconds=load.request_seconds,
            # A rate that was too high would have the sweep wait for answers that are misses already.
            hopeless_seconds=load.slo.ttft_seconds if plan.part is Part.SWEEP else math.inf,
            silent_seconds=max(load.silent_seconds, 2 * load.slo.ttft_seconds),
        )
        self.engines = EngineWatch(self.driver.servers)
        self.busy_before: tuple[str, ...] = ()

    async def rest(self) -> None:
        """Look at the engines until they have done what others left them, for as long as they get."""
        self.busy_before = await self.engines.rest(self.load.rest_seconds)

    async def run(self, start: float) -> None:
        """Until its last request has ended; then its backends are looked at once more and get nothing new."""
        follow = asyncio.get_running_loop().create_task(self.engines.follow(self.load.engine_seconds))
        try:
            await self.driver.run(start)
        finally:
            follow.cancel()
            await asyncio.gather(follow, return_exceptions=True)
        await self.engines.look()

    def block(self) -> Block:
        start = self.driver.start
        timed = tuple(flight.timed(start) for flight in self.driver.flights)
        figures = reckon(
            self.plan,
            timed,
            slo=self.load.slo,
            ticks=self.driver.ticks,
            engine=self.engines.samples(start),
            busy_before=self.busy_before,
            bounds=self.load.bounds,
        )
        return Block(figures=figures, timed=timed)


def _prepared(request: Request, model: str) -> Prepared:
    return Prepared(
        path=request.endpoint.value,
        body=load_body(request, model=model),
        output=OUTPUTS[request.endpoint],
    )


async def _ask(watch: Watch, seconds: float) -> None:
    """Ask whoever may object, until cancelled."""
    while True:
        if reason := await watch():
            raise Aborted(reason)
        await asyncio.sleep(seconds)
