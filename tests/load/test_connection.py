"""Times of one answer against a schedule that is known: its bytes come at moments that a clock of ours tells.

What the kernel and the event loop add to that is measured by the benchmark `load_generator`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from service.fleet import Slo
from service.load import connection
from service.load.connection import Connection
from service.load.flight import Flight
from service.load.output import ChatOutput
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.reckoning import reckon
from service.load.timed import Timed
from tests.load.scripted import FINISH, STREAM, delta, usage

PLAN = BlockPlan(
    tier="a", part=Part.SLO, arrivals=Arrivals.CONSTANT, rate=4, warm_up_seconds=1, window_seconds=10
)
SLO = Slo(ttft_seconds=0.5, tpot_seconds=0.05)


@dataclass
class Clock:
    """Stands still until it is set."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Wire(asyncio.Transport):
    """Where requests go: nowhere."""

    written: list[bytes] = field(default_factory=list)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def event(told: object) -> bytes:
    text = f"data: {json.dumps(told)}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(text), text)


def schedule(
    due: float, *, wait: float, pace: float, tokens: int, cut: int = 0
) -> Iterator[tuple[float, bytes]]:
    """An answer piece by piece, each at its moment: a role at once, tokens, an end later than the last.

    `cut`: bytes of each token's event that come a moment before the rest.
    """
    yield due + 0.01, STREAM + event(delta(role="assistant", content=""))
    for number in range(tokens):
        at, piece = due + wait + number * pace, event(delta(content=f"t{number} "))
        if cut:
            yield at - pace / 2, piece[:cut]
        yield at, piece[cut:]
    end = due + wait + tokens * pace + 3.0
    yield end, event(FINISH) + event(usage(tokens)) + b"0\r\n\r\n"


def flown(clock: Clock, due: float, ordinal: int, pieces: Iterator[tuple[float, bytes]]) -> Timed:
    """One request over a connection of its own."""
    over: list[Flight] = []
    wire = Connection(lambda _, flight, again: over.append(flight))
    wire.connection_made(Wire())
    flight = Flight(
        ordinal=ordinal, request=0, path="/", body=b"{}", output=ChatOutput(), scheduled=due, begun=due
    )
    clock.now = due
    wire.send(flight, b"POST / HTTP/1.1\r\ncontent-length: ")
    for clock.now, piece in pieces:
        wire.data_received(piece)
    assert over == [flight]
    return flight.timed(0.0)


@pytest.mark.parametrize("cut", [0, 1, 9, 60])
def test_ttft_tpot_and_e2e_are_those_of_the_schedule(clock: Clock, cut: int) -> None:
    found = flown(clock, 2.0, 0, schedule(2.0, wait=0.3, pace=0.04, tokens=11, cut=cut))
    assert found.fault == ""
    assert found.first_byte == pytest.approx(2.01)
    assert found.ttft == pytest.approx(0.3), "neither a role nor half an event is a token"
    assert found.tpot == pytest.approx(0.04)
    assert found.e2e == pytest.approx(0.3 + 10 * 0.04), "its end is no token"
    assert (found.output_tokens, found.counted) == (11, 11)


def test_goodput_is_that_of_the_schedule(clock: Clock) -> None:
    """Of every four requests one is late with its first token, one with the others, and two are in time."""
    kinds = [(0.3, 0.04), (0.501, 0.04), (0.3, 0.051), (0.499, 0.049)]
    timed = []
    for number in range(48):
        wait, pace = kinds[number % 4]
        due = number / 4
        timed.append(flown(clock, due, number, schedule(due, wait=wait, pace=pace, tokens=11)))
    figures = reckon(PLAN, timed, slo=SLO)
    assert (figures.offered, figures.passed, figures.failed) == (40, 20, {})
    assert figures.goodput == pytest.approx(20 * 11 / 10)
    assert figures.throughput == pytest.approx(40 * 11 / 10)
    assert figures.ttft.p95 == pytest.approx(0.501)
    assert figures.tpot.p95 == pytest.approx(0.051)
    assert figures.e2e.p95 == pytest.approx(0.499 + 10 * 0.049)
    assert figures.identity_error < 1e-9
    assert figures.lag_p99 == 0.0
