from __future__ import annotations

import asyncio
import os
import signal

import pytest

from service.launch import ToldToStop, stop_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_unwinds_and_a_later_one_hurries(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    clock = [50.0]
    with stop_signals(lambda: clock[0]) as told:
        assert not told.hurry()
        with pytest.raises(ToldToStop) as caught:
            os.kill(os.getpid(), number)
        assert caught.value.number == number
        assert not told.hurry()
        os.kill(os.getpid(), signal.SIGHUP)
        assert not told.hurry(), "two signals at once are one wish"
        clock[0] += 2
        os.kill(os.getpid(), number)
        assert told.hurry()
    assert signal.getsignal(number) is before


def test_it_passes_through_an_event_loop() -> None:
    async def wait() -> None:
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)

    with stop_signals(), pytest.raises(ToldToStop):
        asyncio.run(wait())


def test_uncaught_it_ends_the_program_with_the_status_of_its_signal() -> None:
    assert ToldToStop(signal.SIGTERM).code == 128 + 15
