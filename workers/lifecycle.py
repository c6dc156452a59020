"""The life of one worker: forks, the word that it is stopping, the listener of its main process."""

from __future__ import annotations

import logging
import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from celery import signals

from workers.metrics import Listener


class Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


class PerProcess(Generic[T]):
    """Opens its room on first use in each process: nothing opened before a fork is used after it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._pid = 0

    def __call__(self) -> T:
        if self._made is None or self._pid != os.getpid():
            self._made, self._pid = self._make(), os.getpid()
        return self._made

    def close(self) -> None:
        if self._made is not None and self._pid == os.getpid():
            self._made.close()
        self._made = None


class Life:
    """One worker's name, and whether it is stopping; known to its main process and all children."""

    def __init__(self) -> None:
        self.name = "worker"
        self._stopping = mmap.mmap(-1, 1)  # shared with the children that are forked later

    def stop(self) -> None:
        self._stopping[0] = 1

    def is_stopping(self) -> bool:
        return self._stopping[0] == 1


class CountingBeat(Protocol):
    """Beat, as its signal hands it over."""

    @property
    def scheduler(self) -> CountingScheduler: ...


class CountingScheduler(Protocol):
    @property
    def counts(self) -> Mapping[str, int]: ...


def follow(
    life: Life,
    *,
    rooms: Sequence[Closable],
    check: Callable[[], None],
    bind: Callable[[], Listener | None],
    bind_beat: Callable[[Callable[[], Mapping[str, int]]], Listener | None],
) -> None:
    """Connect to Celery's signals for as long as the process lives.

    `check` and `bind` are called before the pool forks, so that an unusable database or an address in use
    stops the worker; the listener's thread starts after, since a fork copies locks that a thread holds. What
    they raise must be a SystemExit: Celery logs any other exception of a signal and goes on.
    """
    listeners: list[Listener] = []

    def named(sender: str, **_: object) -> None:
        life.name = sender

    def starting(**_: object) -> None:
        check()
        listener = bind()
        if listener is not None:
            listeners.append(listener)

    def ready(**_: object) -> None:
        for listener in listeners:
            listener.start()

    def beat_starting(sender: CountingBeat, **_: object) -> None:
        listener = bind_beat(lambda: sender.scheduler.counts)
        if listener is not None:
            listener.start()

    def forked(**_: object) -> None:
        for listener in listeners:
            listener.close_socket()

    def shutting_down(**_: object) -> None:
        life.stop()

    def child_gone(**_: object) -> None:
        for room in rooms:
            room.close()

    def gone(**_: object) -> None:
        child_gone()
        for listener in listeners:
            listener.close()

    signals.celeryd_after_setup.connect(named, weak=False)
    signals.worker_init.connect(starting, weak=False)
    signals.worker_ready.connect(ready, weak=False)
    signals.beat_init.connect(beat_starting, weak=False)
    signals.worker_process_init.connect(forked, weak=False)
    signals.worker_shutting_down.connect(shutting_down, weak=False)
    signals.worker_process_shutdown.connect(child_gone, weak=False)
    signals.worker_shutdown.connect(gone, weak=False)
    signals.after_setup_logger.connect(_quiet, weak=False)


def _quiet(**_: object) -> None:
    # A line for every task received, for its success and for every replay would drown the rest.
    for name in ("celery.worker.strategy", "celery.app.trace", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
