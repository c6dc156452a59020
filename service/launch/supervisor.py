"""Starts parts in order, waits until each is ready, restarts what crashes, stops them in the opposite order.

StartFailed
    a part that ended or was not ready in time at the first start; the others are stopped again
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from service.launch.aside import Aside
from service.launch.child import Child
from service.launch.part import Part

WATCHDOG = Path(__file__).with_name("watchdog.py")
LOOK = 0.2
"""Seconds between two looks at the children."""
FIRST_PAUSE = 0.5
"""Seconds before the first restart; doubled each time."""
LONGEST_PAUSE = 30.0
TELL_EVERY = 10.0
"""Seconds between two words about a part that is still starting."""
STEADY = 60.0
"""A part that ran so many seconds starts again from the first pause."""


class StartFailed(Exception):
    """A part did not start, with the end of its log and what to do."""


class _Stopped(Exception):
    """Told to stop while parts were still starting."""


@dataclass(slots=True)
class _Kept:
    child: Child
    pause: float = 0.0
    """Seconds before the last restart."""
    restart_at: float | None = None
    """Monotonic seconds; None while it runs."""
    announced: bool = True

    def wait_longer(self, now: float) -> None:
        """Before the next restart, than before the last."""
        self.pause = min(max(self.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self.restart_at = now + self.pause


class Supervisor:
    """Keeps parts running for as long as the `with` block lasts.

    All children belong to one thread of its own, so the caller may do something else meanwhile. If the caller
    is killed, the kernel tells the children to stop and a watchdog ends what does not.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        log_dir: Path,
        *,
        environ: Mapping[str, str],
        say: Callable[[str], None],
        hurry: Callable[[], bool] = lambda: False,
        keep_open: Sequence[int] = (),
    ) -> None:
        """`say` is told of starts, crashes and stops; `hurry` turns true when stopping must not wait;
        `keep_open` are files that stay open until the last child is gone, whatever happens to the caller."""
        names = [part.name for part in parts]
        if len(set(names)) != len(names):
            raise ValueError(f"two parts have one name: {names}")
        self._parts = tuple(parts)
        self._log_dir = log_dir
        self._environ = dict(environ)
        self._say = Aside(say)
        self._hurry = hurry
        self._keep_open = tuple(keep_open)
        self._children: list[_Kept] = []
        self._stopping = threading.Event()
        self._settled = threading.Event()
        self._ended = threading.Event()
        self._interrupted = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def __enter__(self) -> Self:
        self._log_dir.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        try:
            _wait_for(self._settled)
        except BaseException:
            self._stop()
            raise
        if self._failure is not None:
            self._stop()
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of what runs now, by part."""
        return {
            kept.child.part.name: kept.child.pid for kept in list(self._children) if kept.restart_at is None
        }

    def signal(self, part: str, number: int) -> bool:
        """Send a signal to a part; whether it runs and could be told."""
        pid = self.pids.get(part)
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self) -> None:
        """Until the supervisor itself ends, which only an error of its own makes it do."""
        # Not Thread.join: interrupted by an exception, it takes a thread that runs for one that ended.
        _wait_for(self._ended)
        if self._failure is not None:
            raise self._failure

    def _stop(self) -> None:
        self._stopping.set()
        while not self._ended.is_set():
            try:
                _wait_for(self._ended)
            except KeyboardInterrupt:
                self._interrupted = True
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._watchdog() as tell:
                try:
                    self._start(tell)
                    self._say.settle()
                    self._settled.set()
                    while not self._stopping.wait(LOOK):
                        for kept in self._children:
                            self._look_after(kept, tell)
                except _Stopped:
                    pass
                finally:
                    self._stop_children(tell)
        except BaseException as error:
            self._failure = error
        finally:
            self._say.settle()
            self._settled.set()
            self._ended.set()

    @contextlib.contextmanager
    def _watchdog(self) -> Iterator[Callable[[str], None]]:
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WATCHDOG)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            pass_fds=self._keep_open,
            start_new_session=True,
        )
        pipe = popen.stdin
        assert pipe is not None

        def tell(line: str) -> None:
            # Without its watchdog a supervisor still works; the kernel's own signal remains.
            with contextlib.suppress(BrokenPipeError):
                pipe.write(line + "\n")

        try:
            yield tell
        finally:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
            popen.wait()

    def _start(self, tell: Callable[[str], None]) -> None:
        starting: list[Child] = []
        for part in self._parts:
            child = self._spawn(part, tell)
            self._children.append(_Kept(child))
            starting.append(child)
            if part.awaited:
                self._await(starting)
                starting = []
        self._await(starting)

    def _await(self, starting: list[Child]) -> None:
        said = 0.0
        while starting:
            for child in list(starting):
                awaited = child.part.ready(child.log())
                if (ended := child.ended()) is not None:
                    raise StartFailed(_start_failure(child, f"it {ended}"))
                waited = time.monotonic() - child.started_at
                if awaited is None:
                    starting.remove(child)
                    self._say(f"{child.part.name} is ready")
                elif waited > child.part.ready_seconds:
                    raise StartFailed(_start_failure(child, f"after {waited:.0f} s still {awaited}"))
                elif waited - said > TELL_EVERY:
                    said = waited
                    self._say(f"{child.part.name} is still starting: {awaited}")
            if starting and self._stopping.wait(LOOK):
                raise _Stopped

    def _spawn(self, part: Part, tell: Callable[[str], None]) -> Child:
        child = Child(part, self._log_dir, self._environ)
        tell(f"+{child.pid}")
        return child

    def _look_after(self, kept: _Kept, tell: Callable[[str], None]) -> None:
        part, now = kept.child.part, time.monotonic()
        if kept.restart_at is not None:
            if now >= kept.restart_at:
                self._start_again(kept, now, tell)
            return
        ended = kept.child.ended()
        if ended is None:
            if not kept.announced and part.ready(kept.child.log()) is None:
                kept.announced = True
                self._say(f"{part.name} is ready again")
            kept.child.move_long_log_aside()
            return
        kept.child.kill_group()
        tell(f"-{kept.child.pid}")
        if now - kept.child.started_at >= STEADY:
            kept.pause = 0.0
        kept.wait_longer(now)
        self._say(
            f"{part.name} {ended}; it starts again in {kept.pause:g} s. "
            f"The end of {kept.child.log_path}:\n{kept.child.last_lines(4)}".rstrip()
        )

    def _start_again(self, kept: _Kept, now: float, tell: Callable[[str], None]) -> None:
        """What keeps it from starting (no memory, no disk, no process left) must not end the others."""
        part = kept.child.part
        try:
            kept.child = self._spawn(part, tell)
        except OSError as error:
            kept.wait_longer(now)
            where = f"{error.filename}: " if error.filename else ""
            self._say(
                f"{part.name} could not be started ({where}{error.strerror}); once more in {kept.pause:g} s"
            )
            return
        kept.restart_at, kept.announced = None, False

    def _stop_children(self, tell: Callable[[str], None]) -> None:
        # A stack: what goes wrong with one must not keep the others running.
        with contextlib.ExitStack() as stops:
            for kept in self._children:
                stops.callback(self._stop_child, kept, tell)

    def _stop_child(self, kept: _Kept, tell: Callable[[str], None]) -> None:
        part = kept.child.part
        if kept.restart_at is None:
            self._say(f"stopping {part.name}")
            if not kept.child.stop(lambda: self._interrupted or self._hurry()):
                self._say(f"{part.name} did not stop by itself and was killed")
            tell(f"-{kept.child.pid}")
        if part.after_stop is not None:
            part.after_stop()


def _start_failure(child: Child, why: str) -> str:
    part = child.part
    text = f"{part.name} did not start: {why}."
    if lines := child.last_lines():
        text += f"\n  The end of {child.log_path}:\n{lines.rstrip()}"
    return f"{text}\n  {part.advice}" if part.advice else text


def _wait_for(event: threading.Event) -> None:
    """Until it is set, and for the main thread to notice signals meanwhile.

    The kernel may hand a signal to another thread; then an untimed wait in the main thread, which alone runs
    Python's handlers, would sleep through it.
    """
    while not event.wait(LOOK):
        pass
