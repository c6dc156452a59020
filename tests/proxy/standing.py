"""A proxy process's data plane in the test's own event loop, over a store in memory."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence

from service.fleet import Backend, Ladder, Route, Tier
from service.proxy.traffic.plane import DataPlane
from service.store.redis.capture import Capture, Keyring, unseal
from service.store.redis.intake import Shipment
from service.store.redis.shipping import StoreDown
from tests.patience import PATIENCE
from tests.proxy.raw_client import Answered, RawClient
from tests.proxy.scripted import ScriptedBackend

KEYRING = Keyring(current="1", keys={"1": b"k" * 16})


class MemoryStore:
    """The store's port in memory; a test may make it fail."""

    def __init__(self) -> None:
        self.batches: list[list[Shipment]] = []
        self.ledger: dict[str, int] = {}
        self.reserved = 0
        self.closed: bool | None = None
        self.failure: Exception | None = None
        self.hangs = False
        self.per_message = 0
        self._on_route: Callable[[Route], None] | None = None

    async def ship(
        self, batch: Sequence[Shipment], *, ttl_seconds: int, max_bytes: int, queue: str, per_message: int
    ) -> None:
        await self._fail()
        self.batches.append(list(batch))
        self.per_message = per_message

    async def write_ledger(
        self, instance: str, counters: Mapping[str, int], *, reserved: int, closed: bool
    ) -> None:
        await self._fail()
        self.ledger, self.reserved, self.closed = dict(counters), reserved, closed

    async def follow_routes(self, on_route: Callable[[Route], None]) -> None:
        self._on_route = on_route
        await asyncio.Event().wait()

    def publish(self, route: Route) -> None:
        assert self._on_route is not None
        self._on_route(route)

    async def _fail(self) -> None:
        if self.hangs:
            await asyncio.sleep(1.0)
            raise StoreDown("it hangs")
        if self.failure is not None:
            raise self.failure

    @property
    def captures(self) -> list[Capture]:
        return [unseal(shipment.id, shipment.blob, KEYRING) for batch in self.batches for shipment in batch]


class Proxy:
    """A data plane with its listener."""

    def __init__(self, plane: DataPlane, store: MemoryStore, port: int) -> None:
        self.plane = plane
        self.store = store
        self.port = port
        self.clients: list[RawClient] = []

    async def connect(self) -> RawClient:
        self.clients.append(RawClient(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self.clients[-1]

    async def ask(self, request: bytes, **how: bool) -> Answered:
        """One request on a connection of its own."""
        client = await self.connect()
        try:
            return await client.ask(request, **how)
        finally:
            client.close()

    @property
    def ledger(self) -> dict[str, int]:
        return dict(self.plane.meters.ledger.counters)

    def keep_out(self) -> None:
        """Who is ejected stays so, however long the machine takes for what comes next."""
        for server in self.plane.servers:
            if server.is_ejected:
                server.until = math.inf

    async def captures(self, count: int) -> list[Capture]:
        """The captures, once that many have been shipped."""
        await eventually(lambda: len(self.store.captures) >= count)
        return self.store.captures


async def eventually(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until it holds; the bound is for what never will."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - conditions are of anything, not of events
            await asyncio.sleep(0.005)


async def turns(count: int = 50) -> None:
    """So many turns of the event loop: what has been written to sockets of this process is read by then."""
    for _ in range(count):
        await asyncio.sleep(0)


StartProxy = Callable[..., Awaitable[Proxy]]
StartBackend = Callable[..., Awaitable[ScriptedBackend]]


def ladder(*urls: str | Sequence[str], model: str = "m", calls_it: str | None = None) -> Ladder:
    """A ladder with a tier per argument: `t0` is the baseline."""
    return Ladder(
        model=model,
        tiers=tuple(
            Tier(
                name=f"t{rung}",
                backends=tuple(Backend(url=url) for url in ([each] if isinstance(each, str) else each)),
                model=calls_it or model,
            )
            for rung, each in enumerate(urls)
        ),
    )
