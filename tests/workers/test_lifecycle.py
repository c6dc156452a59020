from __future__ import annotations

import os

import pytest
from celery import signals

from workers.lifecycle import Life, PerProcess, follow

# Python warns of any fork while another thread runs; these children do nothing but look and leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class Room:
    """Counts how often it was opened and closed."""

    opened = 0
    closed = 0

    def __init__(self) -> None:
        type(self).opened += 1

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def room() -> PerProcess[Room]:
    Room.opened = Room.closed = 0
    return PerProcess(Room)


def in_a_child(work: object) -> int:
    """Run it in a forked child; the child's exit status."""
    pid = os.fork()
    if pid == 0:
        os._exit(int(work()))  # type: ignore[operator]
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_room_is_opened_once_and_on_first_use(room: PerProcess[Room]) -> None:
    assert Room.opened == 0
    assert room() is room()
    assert Room.opened == 1


def test_a_child_opens_a_room_of_its_own(room: PerProcess[Room]) -> None:
    mine = room()
    assert in_a_child(lambda: room() is not mine and Room.opened == 2) == 1
    assert room() is mine


def test_a_child_does_not_close_what_its_parent_opened(room: PerProcess[Room]) -> None:
    room()

    def close() -> bool:
        room.close()
        return Room.closed == 0

    assert in_a_child(close) == 1


def test_a_room_that_was_closed_is_opened_anew(room: PerProcess[Room]) -> None:
    first = room()
    room.close()
    room.close()
    assert Room.closed == 1
    assert room() is not first


def test_children_see_that_their_worker_is_stopping() -> None:
    life = Life()
    assert not life.is_stopping()
    read, write = os.pipe()

    def wait() -> bool:
        os.read(read, 1)
        return life.is_stopping()

    pid = os.fork()
    if pid == 0:
        os._exit(int(wait()))
    life.stop()
    os.write(write, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    os.close(read)
    os.close(write)


def test_celerys_signals_name_the_worker_stop_it_and_close_its_rooms(room: PerProcess[Room]) -> None:
    life = Life()
    follow(life, rooms=[room], check=lambda: None, bind=lambda: None, bind_beat=lambda counts: None)
    room()
    signals.celeryd_after_setup.send(sender="replay@here", instance=None, conf=None)
    assert life.name == "replay@here"
    signals.worker_shutting_down.send(sender="replay@here", sig="SIGTERM", how="warm", exitcode=0)
    assert life.is_stopping()
    signals.worker_process_shutdown.send(sender=None, pid=1, exitcode=0)
    assert Room.closed == 1
