"""From finished exchanges to the store: sealed here, shipped in batches, dropped and counted when that fails.

Clients never wait for any of this: `offer` appends to a bounded queue and returns.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Protocol

from service.proxy.budget import Budget
from service.proxy.config import Mirroring
from service.proxy.gauges.meters import Ledger
from service.store.redis.capture import Capture, Keyring, seal_all
from service.store.redis.counters import Dropped
from service.store.redis.intake import Shipment
from service.store.redis.shipping import StoreDown, StoreFull

SHIP_CAPTURES = 128
"""Most captures in one write; what asking Redis costs is divided by as many."""
SHIP_BYTES = 4 * 1024 * 1024
"""A write is closed when it holds as many bytes: it must fit in the store's time limit."""
GATHER_SECONDS = 0.05
"""How long a first capture waits for company, unless a whole write has come together before."""
SLICE_CAPTURES = 32
"""Most captures sealed before streams have their turn: about a millisecond."""
SEAL_IN_THREAD_BYTES = 128 * 1024
"""Most bytes sealed before streams have their turn; a capture that is larger by itself goes to a thread."""

_log = logging.getLogger(__name__)


Waiting = tuple[Capture, int]
"""A capture and what the budget gave for it, in bytes."""


class Store(Protocol):
    """What the shipper asks of `service.store.redis.shipping.CaptureStore`."""

    async def ship(
        self,
        batch: Sequence[Shipment],
        *,
        ttl_seconds: int,
        max_bytes: int,
        queue: str,
        per_message: int,
    ) -> None: ...

    async def write_ledger(
        self, instance: str, counters: Mapping[str, int], *, reserved: int, closed: bool
    ) -> None: ...


class Shipper:
    """One per process: `run`, and at the end `stop`, wait for `run`, `drain`."""

    def __init__(
        self, store: Store, keyring: Keyring, mirroring: Mirroring, budget: Budget, ledger: Ledger
    ) -> None:
        self._store = store
        self._keyring = keyring
        self._mirroring = mirroring
        self._budget = budget
        self._ledger = ledger
        self._queue: deque[Waiting] = deque()
        self._queued_bytes = 0
        self._arrived = asyncio.Event()
        self._plenty = asyncio.Event()
        self._stopping = False
        self._told: Dropped | None = None

    def adopt(self, keyring: Keyring, mirroring: Mirroring) -> None:
        """Seal and ship by these from the next batch on."""
        self._keyring = keyring
        self._mirroring = mirroring

    def offer(self, capture: Capture, size: int) -> None:
        """Take a capture whose `size` bytes are already taken from the budget."""
        self._queue.append((capture, size))
        self._queued_bytes += size
        if len(self._queue) == 1:
            self._arrived.set()
        if len(self._queue) >= SHIP_CAPTURES or self._queued_bytes >= SHIP_BYTES:
            self._plenty.set()

    async def run(self) -> None:
        """Ship until stopped."""
        while not self._stopping:
            await self._arrived.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(GATHER_SECONDS):
                    await self._plenty.wait()
            if self._queue and not self._stopping:
                await self._ship(self._next_batch())

    def stop(self) -> None:
        """Let `run` end after the batch under way, which the store's own time limit bounds."""
        self._stopping = True
        self._arrived.set()
        self._plenty.set()

    async def drain(self, seconds: float) -> None:
        """Ship what is left, starting no batch after so long; the rest is dropped."""
        until = asyncio.get_running_loop().time() + seconds
        while self._queue and asyncio.get_running_loop().time() < until:
            await self._ship(self._next_batch())
        self._drop([self._queue.popleft() for _ in range(len(self._queue))], Dropped.STORE_DOWN)

    def _next_batch(self) -> list[Waiting]:
        first = list(islice(self._queue, SHIP_CAPTURES))
        count, size = _fitting(first, SHIP_BYTES)
        batch = first[:count]
        for _ in range(count):
            self._queue.popleft()
        self._queued_bytes -= size
        if not self._stopping:
            if not self._queue:
                self._arrived.clear()
            if len(self._queue) < SHIP_CAPTURES and self._queued_bytes < SHIP_BYTES:
                self._plenty.clear()
        return batch

    async def _ship(self, batch: list[Waiting]) -> None:
        trouble: Dropped | None = Dropped.STORE_DOWN
        try:
            await self._store.ship(
                await self._seal(batch),
                ttl_seconds=self._mirroring.ttl_seconds,
                max_bytes=self._mirroring.max_bytes,
                queue=self._mirroring.queue,
                per_message=self._mirroring.batch,
            )
            trouble = self._told = None
        except StoreDown as error:
            self._tell(Dropped.STORE_DOWN, error)
        except StoreFull as error:
            trouble = Dropped.STORE_FULL
            self._tell(Dropped.STORE_FULL, error)
        except Exception:
            # A defect here must cost captures, never the process that carries streams.
            _log.exception("a batch of %d captures could not be shipped", len(batch))
        finally:  # also when cancelled: every capture has its place in the account
            if trouble is not None:
                self._drop(batch, trouble)
        if trouble is None:
            for model, count in Counter([capture.model for capture, _ in batch]).items():
                self._ledger.shipped(model, count)
            self._budget.give_back(sum([size for _, size in batch]))

    def _tell(self, trouble: Dropped, error: Exception) -> None:
        if self._told is not trouble:
            _log.warning("captures are dropped (%s) until the store takes them again: %s", trouble, error)
        self._told = trouble

    def _drop(self, batch: Sequence[Waiting], reason: Dropped) -> None:
        for model, count in Counter([capture.model for capture, _ in batch]).items():
            self._ledger.dropped(model, reason, count)
        self._budget.give_back(sum([size for _, size in batch]))

    async def _seal(self, batch: list[Waiting]) -> list[Shipment]:
        """Sealed a slice at a time, with a turn for streams in between."""
        sealed: list[Shipment] = []
        start = 0
        while start < len(batch):
            cut = batch[start : start + SLICE_CAPTURES]
            count, size = _fitting(cut, SEAL_IN_THREAD_BYTES)
            captures = [capture for capture, _ in cut[:count]]
            start += count
            if size > SEAL_IN_THREAD_BYTES:
                blobs = await asyncio.to_thread(seal_all, captures, self._keyring)
            else:
                blobs = seal_all(captures, self._keyring)
            sealed += [
                Shipment(id=capture.id, blob=blob) for capture, blob in zip(captures, blobs, strict=True)
            ]
            if start < len(batch):
                await asyncio.sleep(0)
        return sealed


def _fitting(waiting: Sequence[Waiting], most_bytes: int) -> tuple[int, int]:
    """How many of the first fit in so many bytes, at least one; and their bytes."""
    whole = sum([size for _, size in waiting])
    if whole <= most_bytes:
        return len(waiting), whole
    count, fitting = 1, waiting[0][1]
    for _, size in waiting[1:]:
        if fitting + size > most_bytes:
            break
        count += 1
        fitting += size
    return count, fitting
