"""What the children of one worker count together, in Redis, for the listener of its main process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import redis

from service.store.redis import redis_keys

_KEPT_SECONDS = 7 * 86_400


class WorkerCounts:
    """One hash per worker name; counts survive its children and its restarts, and a week of silence."""

    def __init__(self, client: redis.Redis, *, worker: str) -> None:
        self._redis = client
        self._key = redis_keys.worker_counts(worker)

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to each series; one round trip."""
        if not counts:
            return
        with self._redis.pipeline(transaction=False) as pipe:
            for series, count in counts.items():
                pipe.hincrby(self._key, series, count)
            pipe.expire(self._key, _KEPT_SECONDS)
            pipe.execute()

    def read(self) -> Mapping[str, int]:
        found = cast("dict[bytes, bytes]", self._redis.hgetall(self._key))
        return {series.decode(): int(count) for series, count in found.items()}
