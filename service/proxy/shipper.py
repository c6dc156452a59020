"""From finished exchanges to the store: sealed here, shipped in batches, dropped and counted when that fails.

Clients never wait for any of this: `offer` appends to a bounded queue and returns.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from service.proxy.config import Mirroring
from service.proxy.meters import Ledger
from service.proxy.recorder import Budget
from service.store.capture import Capture, Keyring, seal
from service.store.counters import Dropped
from service.store.shipping import Shipment, StoreDown, StoreFull

BATCH_BYTES = 4 * 1024 * 1024
"""A batch is closed when it holds as many bytes: one write must fit in the store's time limit."""
GATHER_SECONDS = 0.02
"""How long a first capture waits for company."""
SEAL_IN_THREAD_BYTES = 128 * 1024
"""Compressing more than this at once would hold up streams."""

_log = logging.getLogger(__name__)


class Store(Protocol):
    """What the shipper asks of `service.store.shipping.CaptureStore`."""

    async def ship(
        self, batch: Sequence[Shipment], *, ttl_seconds: int, max_bytes: int, queue: str
    ) -> None: ...

    async def write_ledger(self, instance: str, counters: Mapping[str, int], *, closed: bool) -> None: ...


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
        self._queue: deque[tuple[Capture, int]] = deque()
        self._arrived = asyncio.Event()
        self._stopping = False
        self._trouble: Dropped | None = None

    def adopt(self, keyring: Keyring, mirroring: Mirroring) -> None:
        """Seal and ship by these from the next batch on."""
        self._keyring = keyring
        self._mirroring = mirroring

    def offer(self, capture: Capture, size: int) -> None:
        """Take a capture whose `size` bytes are already taken from the budget."""
        self._queue.append((capture, size))
        self._arrived.set()

    async def run(self) -> None:
        """Ship until stopped."""
        while not self._stopping:
            await self._arrived.wait()
            if len(self._queue) < self._mirroring.batch:
                await asyncio.sleep(GATHER_SECONDS)
            self._arrived.clear()
            while self._queue and not self._stopping:
                await self._ship(self._next_batch())

    def stop(self) -> None:
        """Let `run` end after the batch under way, which the store's own time limit bounds."""
        self._stopping = True
        self._arrived.set()

    async def drain(self, seconds: float) -> None:
        """Ship what is left, starting no batch after so long; the rest is dropped."""
        until = asyncio.get_running_loop().time() + seconds
        while self._queue and asyncio.get_running_loop().time() < until:
            await self._ship(self._next_batch())
        self._drop([self._queue.popleft() for _ in range(len(self._queue))], Dropped.STORE_DOWN)

    def _next_batch(self) -> list[tuple[Capture, int]]:
        batch = [self._queue.popleft()]
        size = batch[0][1]
        while self._queue and len(batch) < self._mirroring.batch and size + self._queue[0][1] <= BATCH_BYTES:
            size += self._queue[0][1]
            batch.append(self._queue.popleft())
        return batch

    async def _ship(self, batch: list[tuple[Capture, int]]) -> None:
        trouble: Dropped | None = Dropped.STORE_DOWN
        try:
            await self._store.ship(
                [Shipment(id=capture.id, blob=await self._seal(capture, size)) for capture, size in batch],
                ttl_seconds=self._mirroring.ttl_seconds,
                max_bytes=self._mirroring.max_bytes,
                queue=self._mirroring.queue,
            )
            trouble = None
        except StoreDown as error:
            self._tell(Dropped.STORE_DOWN, error)
        except StoreFull as error:
            trouble = Dropped.STORE_FULL
            self._tell(Dropped.STORE_FULL, error)
        except Exception:
            # A defect here must cost captures, never the process that carries streams.
            _log.exception("a batch of %d captures could not be shipped", len(batch))
        finally:  # also when cancelled: every capture has its place in the account
            self._trouble = trouble
            if trouble is not None:
                self._drop(batch, trouble)
        if trouble is None:
            for capture, size in batch:
                self._ledger.shipped(capture.model)
                self._budget.give_back(size)

    def _tell(self, trouble: Dropped, error: Exception) -> None:
        if self._trouble is not trouble:
            _log.warning("captures are dropped (%s) until the store takes them again: %s", trouble, error)

    def _drop(self, batch: list[tuple[Capture, int]], reason: Dropped) -> None:
        for capture, size in batch:
            self._ledger.dropped(capture.model, reason)
            self._budget.give_back(size)

    async def _seal(self, capture: Capture, size: int) -> bytes:
        if size > SEAL_IN_THREAD_BYTES:
            return await asyncio.to_thread(seal, capture, self._keyring)
        return seal(capture, self._keyring)
