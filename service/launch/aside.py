"""What a person is told, by a thread that nobody waits for: a stopped terminal must not stop the work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

MOST_WAITING = 256
"""Texts; one more is not said."""
PATIENCE = 1.0
"""Seconds for whoever wants to be sure that all is said."""


class Aside:
    """Calls `say`, which may block or find nobody there any more, in the order of the calls."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._changed = threading.Condition()
        self._waiting: deque[str] = deque()
        self._is_saying = False

    def __call__(self, text: str) -> None:
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                return
            self._waiting.append(text)
            if not self._is_saying:
                self._is_saying = True
                threading.Thread(target=self._say_all, name="aside", daemon=True).start()

    def settle(self, seconds: float = PATIENCE) -> bool:
        """Wait until all is said, but no longer than that; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_saying, seconds)

    def _say_all(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_saying = False
                    self._changed.notify_all()
                    return
                text = self._waiting.popleft()
            with suppress(OSError):
                self._say(text)
