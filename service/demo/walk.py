"""The walk: traffic through the proxy until every tier is decided, then until the last capture is judged.

Looking after every capture and stopping at a decision is allowed: the e-values are valid whenever one looks
(statistics A1). A run that stops early shows fewer pairs, not a better verdict.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from service.client.connection import TiergateClient
from service.client.readings import Document, VerdictReading
from service.decision.verdict import Decision
from service.demo.driver import Driver
from service.demo.plan import CLIENT_MODEL, DemoPlan

LOOK = 2.0
"""Seconds between two looks at the ledger and the verdicts."""
SETTLE_SECONDS = 180.0
"""Patience for what is under way once the last prompt was sent."""
MOST_FAILURES = 5


class WalkBroken(Exception):
    """The walk cannot go on; says what happened and where to look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far the walk has come."""

    sent: int
    answered: int
    judged: int
    """Captures that the worker is done with."""
    verdicts: tuple[VerdictReading, ...]
    """In the order of the ladder."""
    seconds: float
    ending: str
    """Why no further prompt is sent; empty while more may be."""

    @property
    def decided(self) -> bool:
        return all(reading.verdict.decision is not Decision.UNDECIDED for reading in self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What a walk has shown."""

    last: Position
    ledger: Document
    failures: Sequence[str]
    """The first few requests that were not answered, in words."""


def walk(
    plan: DemoPlan,
    driver: Driver,
    client: TiergateClient,
    *,
    show: Callable[[Position], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Walked:
    """Let the clients go, watch, stop them in time, wait for the worker; raises `WalkBroken`."""
    started = clock()
    position = None
    for position in _positions(plan, driver, client, started=started, clock=clock):
        show(position)
        if driver.failed > MOST_FAILURES:
            raise WalkBroken(
                f"{driver.failed} of {driver.settled} requests were not answered: {driver.failures[0]}"
            )
        sleep(LOOK)
    assert position is not None
    return Walked(last=position, ledger=client.ledger(CLIENT_MODEL), failures=tuple(driver.failures))


def _positions(
    plan: DemoPlan,
    driver: Driver,
    client: TiergateClient,
    *,
    started: float,
    clock: Callable[[], float],
) -> Iterator[Position]:
    ending = ""
    ended_at = 0.0
    while True:
        counters = client.ledger(CLIENT_MODEL)["counters"]
        judged = int(counters["processed"]) + int(counters["expired"]) + int(counters["lost"])
        verdicts = tuple(client.verdict(CLIENT_MODEL, tier.name) for tier in plan.ladder[1:])
        position = Position(
            sent=driver.started,
            answered=driver.answered,
            judged=judged,
            verdicts=verdicts,
            seconds=clock() - started,
            ending=ending,
        )
        if not ending and (ending := _why_end(plan, driver, position)):
            position, ended_at = replace(position, ending=ending), clock()
            driver.halt()
        yield position
        if not ending:
            driver.allow(judged + plan.backlog)
            continue
        if driver.settled == driver.started and _settled(counters, driver):
            return
        if clock() - ended_at > SETTLE_SECONDS:
            raise WalkBroken(
                f"{SETTLE_SECONDS:g} s after the last prompt {driver.started - judged} captures are not "
                f"judged yet; the ledger says {counters}"
            )


def _settled(counters: Document, driver: Driver) -> bool:
    """Whether every answered request has reached the ledger and no capture is left to judge."""
    left = int(counters["in_flight"]) + int(counters["waiting"])
    return left == 0 and int(counters["seen"]) >= driver.answered


def _why_end(plan: DemoPlan, driver: Driver, position: Position) -> str:
    if position.decided:
        return "every tier is decided"
    if driver.all_sent:
        return "every prompt was sent"
    if position.seconds > plan.traffic_seconds:
        return f"{plan.traffic_seconds:g} s are over"
    return ""
