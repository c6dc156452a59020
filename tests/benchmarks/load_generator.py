"""How true the times of a load run are: 200 requests/s of 50 events each, the generator on one core.

`python -m tests.benchmarks.load_generator [--rate 200] [--events 50] [--seconds 20]`. The engine stamps every
event with the time of its write, by the clock that the generator reads, so each request's TTFT and TPOT are
known. Half of the requests think too long for their SLO, so that goodput is about a half. Issue: p99 of the
generator's lag below 5 ms, TTFT and TPOT right within 2 ms, goodput within 1 %.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from evaluators.exchange import Endpoint
from service.fleet import Backend, Slo
from service.load.bodies import load_body
from service.load.driver import Driver, Prepared
from service.load.figures import BlockFigures
from service.load.flight import Flight
from service.load.output import ChatOutput
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.reckoning import reckon
from service.wire import parse_request
from tests.benchmarks.children import Child
from tests.benchmarks.figures import Figure, end, table
from tests.benchmarks.rig import (
    BESIDE,
    UNDER_TEST,
    end_on_signals,
    machine,
    publish,
    quantile,
    wait_for,
)
from tests.ports import free_port

PACE = 0.02
THINKS = (0.05, 0.4)
SLO = Slo(ttft_seconds=0.2, tpot_seconds=1.5 * PACE)
LAG_MS, ERROR_MS, GOODPUT = 5.0, 2.0, 0.01


class Stamped(ChatOutput):
    """Keeps when the first and the last event with output were written."""

    __slots__ = ("first_at", "last_at")

    def __init__(self) -> None:
        super().__init__()
        self.first_at = self.last_at = 0

    def take(self, event: Mapping[str, Any]) -> bool:
        carried = super().take(event)
        if carried:
            self.last_at = event["at"]
            self.first_at = self.first_at or self.last_at
        return carried


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One run."""

    figures: BlockFigures
    lags: list[float]
    ttft_errors: list[float]
    tpot_errors: list[float]
    """Measured minus true, in seconds."""
    true_goodput: float
    events: int
    cpu_share: float
    """Of one core, that the generator used."""


def prepared(think: float, events: int) -> Prepared:
    told = json.dumps({"think": think, "pace": PACE, "events": events})
    messages = [{"role": "system", "content": "x" * 1500}, {"role": "user", "content": told}]
    asked = {"model": "m", "messages": messages}
    request = parse_request(Endpoint.CHAT_COMPLETIONS.value, json.dumps(asked).encode())
    return Prepared(path=request.endpoint.value, body=load_body(request, model="m"), output=Stamped)


async def drive(port: int, asked: argparse.Namespace) -> Found:
    plan = BlockPlan(
        tier="paced",
        part=Part.SLO,
        arrivals=Arrivals.POISSON,
        rate=asked.rate,
        seed=asked.seed,
        warm_up_seconds=3.0,
        window_seconds=asked.seconds,
    )
    driver = Driver(
        plan,
        backends=[Backend(url=f"http://127.0.0.1:{port}")],
        requests=[prepared(think, asked.events) for think in THINKS],
        trace=(),
        request_seconds=60.0,
    )
    spent, began = time.process_time(), time.monotonic()
    try:
        await driver.run(time.monotonic() + 0.05)
    finally:
        driver.close()
    spent, took = time.process_time() - spent, time.monotonic() - began
    timed = [flight.timed(driver.start) for flight in driver.flights]
    figures = reckon(plan, timed, slo=SLO, ticks=driver.ticks)
    complete = [
        flight
        for flight in driver.flights
        if plan.counts(flight.scheduled) and flight.ended and not flight.fault
    ]
    window = [each for each in timed if plan.counts(each.scheduled)]
    return Found(
        figures=figures,
        lags=[each.lag for each in window],
        ttft_errors=[(flight.first_token or 0) - _output(flight).first_at / 1e9 for flight in complete],
        tpot_errors=[_tpot_error(flight) for flight in complete],
        true_goodput=sum(flight.counted for flight in complete if _kept(flight, driver.start))
        / asked.seconds,
        events=sum(flight.counted for flight in driver.flights),
        cpu_share=spent / took,
    )


def _output(flight: Flight) -> Stamped:
    assert isinstance(flight.output, Stamped)
    return flight.output


def _true_tpot(flight: Flight) -> float:
    output = _output(flight)
    return (output.last_at - output.first_at) / 1e9 / (flight.counted - 1)


def _tpot_error(flight: Flight) -> float:
    assert flight.first_token is not None
    assert flight.last_token is not None
    return (flight.last_token - flight.first_token) / (flight.counted - 1) - _true_tpot(flight)


def _kept(flight: Flight, start: float) -> bool:
    """Whether the backend met the SLO, by its own clock."""
    ttft = _output(flight).first_at / 1e9 - (start + flight.scheduled)
    return ttft <= SLO.ttft_seconds and _true_tpot(flight) <= SLO.tpot_seconds


def figures_of(found: Found) -> list[Figure]:
    figures = found.figures
    return [
        Figure.at_most("generator lag, p99", quantile(found.lags, 0.99) * 1e3, LAG_MS, "ms", digits=3),
        Figure.at_most("error of TTFT, p99", _worst(found.ttft_errors), ERROR_MS, "ms", digits=3),
        Figure.at_most("error of TPOT, p99", _worst(found.tpot_errors), ERROR_MS, "ms", digits=4),
        Figure.at_most(
            "error of goodput",
            100 * abs(figures.goodput / found.true_goodput - 1) if found.true_goodput else float("inf"),
            100 * GOODPUT,
            "%",
        ),
        Figure.holds("no request failed", str(figures.failed or "none"), not figures.failed),
        Figure.holds("the block is valid", "; ".join(figures.invalid) or "yes", figures.valid),
    ]


def _worst(errors: Sequence[float]) -> float:
    """p99 of the size of an error, in milliseconds."""
    return quantile([abs(error) for error in errors], 0.99) * 1e3


def report(found: Found, asked: argparse.Namespace) -> str:
    block = found.figures
    lines = [
        f"{asked.rate:g} requests/s of {asked.events} events for {asked.seconds:g} s, Poisson; "
        f"{block.offered} requests in the window, {found.events / (asked.seconds + 3):,.0f} events/s, "
        f"{block.mean_concurrency:.0f} at once; the generator used {found.cpu_share:.0%} of its core; asked "
        f"{block.asked_rate:.1f}/s, taken up {block.achieved_rate:.1f}/s; goodput {block.goodput:.1f} "
        f"tokens/s, true {found.true_goodput:.1f}.",
        "",
        "| milliseconds | p50 | p90 | p99 | most |",
        "|---|---|---|---|---|",
    ]
    for name, values in (
        ("generator lag", found.lags),
        ("TTFT, measured - true", found.ttft_errors),
        ("TPOT, measured - true", found.tpot_errors),
    ):
        cells = [quantile(values, share) for share in (0.5, 0.9, 0.99)] + [max(values)]
        lines.append(f"| {name} | {' | '.join(f'{cell * 1e3:.4f}' for cell in cells)} |")
    return "\n".join([*lines, "", table(figures_of(found))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="requests/s")
    parser.add_argument("--events", type=int, default=50, help="of each answer")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the window, after three")
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    end_on_signals()
    described, port = machine(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "engine.log"
        script = Path(__file__).with_name("paced_engine.py")
        engine = Child(command=[sys.executable, str(script), str(port)], core=BESIDE, log=log)
        with engine.running():
            wait_for(port, log=log)
            if (os.cpu_count() or 1) > 1:
                os.sched_setaffinity(0, {UNDER_TEST})
            gc.collect()
            gc.freeze()
            gc.disable()
            found = uvloop.run(drive(port, asked))
    publish(f"{described}\n\n{report(found, asked)}", asked.output)
    end(figures_of(found))


if __name__ == "__main__":
    main()
