"""What the kernel says of processes, summed."""

from __future__ import annotations

import os
import resource
import sys

from service.proxy.gauges.vitals import vitals
from tests.leash import Leashed


def test_memory_and_descriptors_of_this_process() -> None:
    before = vitals([os.getpid()])
    assert before["resident_memory_bytes"] > 10 * 1024 * 1024
    assert before["max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    after = vitals([os.getpid()])
    for each in opened:
        os.close(each)
    assert after["open_fds"] == before["open_fds"] + 5


def test_processes_add_up_and_those_that_are_gone_are_left_out() -> None:
    gone = Leashed([sys.executable, "-c", ""])
    gone.wait()
    twice = vitals([os.getpid(), gone.pid, os.getpid()])
    assert twice["max_fds"] == 2 * vitals([os.getpid()])["max_fds"]
    assert vitals([gone.pid]) == {}
    assert vitals([]) == {}
