"""Judging one pair, each answer under a time limit that nothing escapes."""

from __future__ import annotations

import signal
import threading
from contextlib import AbstractContextManager
from types import FrameType, TracebackType

from evaluators.exchange import Outcome, Request
from evaluators.score import Evaluator, Judged, TimeLimit, score_pair

SECONDS_PER_ANSWER = 0.2
"""Judging one answer takes well under a millisecond; only a hostile schema or pattern comes near this."""

_REPEAT_SECONDS = 0.05


class NotMainThread(RuntimeError):
    """Judging needs the main thread of its process: only there can a signal stop a runaway evaluator."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class Alarm(AbstractContextManager["Alarm"]):
    """Raises `TimeLimit` in the enclosed block once it has run for `seconds` of wall time.

    Built on `setitimer`, since a thread could not stop a regular expression that runs away. The timer
    repeats, so an evaluator that swallows the first `TimeLimit` meets the next; one that swallowed them all
    still ends in `TimeLimit`. Outside of the main thread it refuses (`NotMainThread`) rather than judge
    without a limit.
    """

    def __init__(self, seconds: float) -> None:
        if seconds <= 0:
            raise ValueError(f"a time limit must be positive, got {seconds} s")
        if threading.current_thread() is not threading.main_thread():
            raise NotMainThread
        self._seconds = seconds
        self._armed = False
        self._rang = False

    def __enter__(self) -> Alarm:
        self._rang = False
        self._before = signal.signal(signal.SIGALRM, self._ring)
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, self._seconds, _REPEAT_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # An alarm that rings from here on must not raise: it would skip the disarming below.
            self._armed = False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
        if self._rang and not isinstance(error, TimeLimit):
            raise TimeLimit(f"{self._seconds} s") from error

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self._rang = True
        if self._armed:
            raise TimeLimit(f"{self._seconds} s")


def judge(
    evaluator: Evaluator,
    request: Request,
    baseline: Outcome,
    candidate: Outcome,
    *,
    seconds: float = SECONDS_PER_ANSWER,
) -> Judged:
    """What the evaluator says of the pair. Main thread only: `NotMainThread` elsewhere."""
    # Made out here: inside `score_pair` the refusal would be taken for a bug of the evaluator.
    alarm = Alarm(seconds)
    return score_pair(evaluator, request, baseline, candidate, limit=lambda: alarm)
