"""What was computed from the database, kept while nothing is committed to it, and for a second at most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from service.store.sql.database import Database

SECONDS = 1.0
"""For as long the clock may go on, which moves ages and ends approvals, before all is computed anew."""
PATIENCE_SECONDS = 0.5
"""For which one request waits for another that computes the same; then it does so itself: what a database
that hangs does to one, it must not do to all in turn."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Computed(Generic[V]):
    version: str
    at: float
    value: V


class Kept(Generic[K, V]):
    """Values by key, each of the state that the database is in when it is asked for.

    Threads that ask at once share one computation. Keys are few: nothing is ever thrown away.
    """

    def __init__(self) -> None:
        self._computed: dict[K, _Computed[V]] = {}
        self._locks: defaultdict[K, Lock] = defaultdict(Lock)

    def get(self, key: K, db: Database, now: Callable[[], float], compute: Callable[[float], V]) -> V:
        """The value, computed with the time of now unless it is known."""
        if db.is_in_one_moment:
            return compute(now())  # of a moment that may be past
        lock = self._locks[key]
        held = lock.acquire(timeout=PATIENCE_SECONDS)
        try:
            # Asked for before anything is read: what is committed in between makes the value newer than its
            # name, and the next request computes it once more.
            version, at = db.data_version(), now()
            known = self._computed.get(key)
            if known is None or known.version != version or not 0 <= at - known.at < SECONDS:
                known = _Computed(version=version, at=at, value=compute(at))
                self._computed[key] = known
            return known.value
        finally:
            if held:
                lock.release()
