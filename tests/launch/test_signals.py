from __future__ import annotations

import asyncio
import gc
import os
import pty
import signal
import sys

import pytest

from service.launch import ToldToStop, stop_signals
from tests.leash import Leashed


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


def test_a_sighup_may_ask_for_a_reload_and_then_ends_nothing() -> None:
    reloads: list[str] = []
    with stop_signals() as told:
        told.on_reload = lambda: reloads.append("again")
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGHUP)
        assert reloads == ["again"] * 3
        assert told.first is None
        with pytest.raises(ToldToStop):
            os.kill(os.getpid(), signal.SIGTERM)


WITH_A_TERMINAL = """
import os, sys, time
os.open(sys.argv[2], os.O_RDWR)  # the first terminal that a session opens becomes its own
from service.launch import ToldToStop, stop_signals
from service.proxy.processes.terminal import has_terminal

report = int(sys.argv[1])
assert has_terminal()
with stop_signals() as told:
    told.on_reload = lambda: os.write(report, b"reload ")
    try:
        os.write(report, b"begun ")
        while True:
            time.sleep(60)
    except ToldToStop as stop:
        os.write(report, f"stopped by {stop.number}".encode())
        os._exit(0)
"""


def test_a_terminal_that_closes_still_ends_it() -> None:
    """Whoever closes the window wants it gone; a reload is asked for by `kill -HUP`."""
    reading, writing = os.pipe()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", WITH_A_TERMINAL, str(writing), os.ttyname(theirs)]
    with (
        Leashed(command, pass_fds=(writing,)) as child,
        os.fdopen(reading, "rb", buffering=0) as report,
    ):
        os.close(writing)
        os.close(theirs)
        try:
            assert report.read(6) == b"begun "
            child.send_signal(signal.SIGHUP)
            assert report.read(7) == b"reload "
        finally:
            os.close(ours)
        assert report.read(100) == b"stopped by 1"
    assert child.returncode == 0


def test_a_stop_in_the_middle_of_a_task_is_no_error_of_asyncio(caplog: pytest.LogCaptureFixture) -> None:
    async def told() -> None:
        signal.raise_signal(signal.SIGTERM)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(told())
            await asyncio.sleep(60)

    with stop_signals(), pytest.raises(ToldToStop):
        asyncio.run(main())
    gc.collect()
    assert caplog.records == []
