"""The proxy's side of the store: captures, counters and routes, asynchronously and never for long.

Every call ends within its time limit. Bytes in use are kept in one hash by the interval in which they expire,
so that the sum heals itself whatever dies: it counts expired captures for at most `BYTES_WIDTH` seconds too
long. `max_bytes` is never overshot: whether a batch fits is decided where it is written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    OutOfMemoryError,
    ResponseError,
)

from service.fleet import Route
from service.store.redis import redis_keys
from service.store.redis.intake import MOST_WAITING, TAKE_IN, Answered, Shipment, read_answer, take_in
from service.store.redis.task_message import REPLAY_TASK, task_messages

DUE_SECONDS = 120.0
"""After so long without being settled a capture is enqueued again: its message must have been lost."""

_POLL_SECONDS = 0.5
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class StoreDown(ConnectionError):
    """Redis did not take it in time: stopped, frozen, unreachable or refusing."""


class StoreRefused(StoreDown):
    """Redis said no, and so took nothing: read-only, loading, wrong password."""


class StoreFull(RuntimeError):
    """Redis holds as many bytes of captures as it may."""


def open_client(url: str, timeout: float = 1.0) -> Redis:
    """A client that gives up connecting after `timeout` seconds and never retries by itself.

    Its calls have no limit of their own and must run under `asyncio.timeout`: with a socket_timeout redis-py
    writes under `asyncio.wait_for`, which on Python 3.11 swallows a cancellation that comes at the wrong
    moment.
    """
    client: Redis = Redis.from_url(
        url, socket_timeout=None, socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 0)
    )
    return client


class CaptureStore:
    """Where a proxy process puts captures and counters, and learns routes from.

    `redis` holds captures, ledger and routes, `broker` the queue; they may be the same client. A batch
    that Redis may have taken although its reply never came is remembered as in doubt and told with the
    ledger, so that the account can tell it from one that was lost.
    """

    def __init__(
        self,
        redis: Redis,
        broker: Redis,
        *,
        timeout: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._redis = redis
        self._broker = broker
        self._timeout = timeout
        self._clock = clock
        self._bytes = 0
        self._waiting = 0
        self._trusted = True
        self._in_doubt: list[str] = []

    @classmethod
    def open(cls, redis_url: str, broker_url: str, *, timeout: float = 1.0) -> CaptureStore:
        """Connects lazily: a store that is down does not keep a proxy from starting."""
        redis = open_client(redis_url, timeout)
        return cls(
            redis, redis if broker_url == redis_url else open_client(broker_url, timeout), timeout=timeout
        )

    async def aclose(self) -> None:
        await self._redis.aclose()
        if self._broker is not self._redis:
            await self._broker.aclose()

    async def ping(self) -> None:
        """StoreDown unless Redis answers."""
        await self._within_limit(lambda: cast(Awaitable[object], self._redis.ping()))

    async def ship(
        self,
        batch: Sequence[Shipment],
        *,
        ttl_seconds: int,
        max_bytes: int,
        queue: str,
        per_message: int = 16,
    ) -> None:
        """Store a batch, index it and enqueue its replay by so many captures a message, all or nothing.

        Raises StoreDown or StoreFull, and then the batch counts as dropped. A broker of its own that does
        not take the messages is no loss: the captures are in the index, and the sweeper enqueues what is
        due.
        """
        if not batch:
            return
        if not self._trusted:
            # One cheap question first, so that an outage leaves one batch in doubt and not one per attempt.
            await self.ping()
            self._trusted = True
        size = sum([len(shipment.blob) for shipment in batch])
        if self._full(size, max_bytes):  # another cheap one: no use in sending what will not fit
            await self._take_in([], max_bytes=max_bytes)
            if self._full(size, max_bytes):
                raise self._no_room(max_bytes)
        ids = [shipment.id for shipment in batch]
        messages = task_messages(REPLAY_TASK, ids, queue=queue, most=per_message)
        is_one = self._broker is self._redis
        try:
            taken = await self._take_in(
                batch,
                ttl_seconds=ttl_seconds,
                max_bytes=max_bytes,
                queue=queue if is_one else None,
                messages=messages if is_one else (),
            )
        except (StoreFull, StoreRefused):
            raise
        except BaseException:  # a cancelled call may have arrived as well
            self._trusted = False
            self._in_doubt.extend(ids)
            raise
        if not taken:
            raise self._no_room(max_bytes)
        if not is_one:
            try:
                await self._within_limit(
                    lambda: cast(Awaitable[object], self._broker.lpush(queue, *messages))
                )
            except (StoreDown, StoreFull) as error:
                _log.warning(
                    "broker took no message, the sweeper will enqueue %d captures: %s", len(ids), error
                )

    async def write_ledger(
        self, instance: str, counters: Mapping[str, int], *, reserved: int = 0, closed: bool
    ) -> None:
        """Write an instance's cumulative counters, named by `ledger_key`; `closed` marks the last write.

        Until the next write it numbers its requests up to `reserved` at most, of which those seen are a part.
        """
        doubtful = list(self._in_doubt)
        pipeline = self._redis.pipeline(transaction=True)
        facts: dict[str, int | float] = {
            **counters,
            redis_keys.RESERVED: reserved,
            redis_keys.CLOSED: int(closed),
            redis_keys.WRITTEN_AT: self._clock(),
        }
        pipeline.hset(redis_keys.ledger(instance), mapping=cast(dict[Any, Any], facts))
        pipeline.sadd(redis_keys.LEDGER_INSTANCES, instance)
        if doubtful:
            pipeline.sadd(redis_keys.in_doubt(instance), *doubtful)
        await self._within_limit(pipeline.execute)
        del self._in_doubt[: len(doubtful)]

    async def follow_routes(self, on_route: Callable[[Route], None]) -> None:
        """Tell every route that is new or was issued later, until cancelled.

        A message on the channel wakes it, and it looks twice a second anyway, so that neither a lost
        message nor a restart of Redis leaves a proxy behind. While Redis is away the last route stands.
        """
        told: dict[str, Route] = {}
        complaints: dict[bytes, str] = {}
        while True:
            try:
                async with self._redis.pubsub() as channel:
                    async with asyncio.timeout(self._timeout):
                        await channel.subscribe(redis_keys.ROUTES_CHANGED)
                    while True:
                        await self._tell_routes(told, complaints, on_route)
                        async with asyncio.timeout(_POLL_SECONDS + self._timeout):
                            await channel.get_message(ignore_subscribe_messages=True, timeout=_POLL_SECONDS)
            except Exception as error:
                # Of any kind: a proxy that stops following could not be rolled back any more.
                _log.info("routes stay as they are, Redis is away: %r", error)
            await asyncio.sleep(_POLL_SECONDS)

    async def _tell_routes(
        self, told: dict[str, Route], complaints: dict[bytes, str], on_route: Callable[[Route], None]
    ) -> None:
        """The time is Redis' own: a proxy whose clock is wrong follows all the same."""
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.hgetall(redis_keys.ROUTES)
        pipeline.time()
        written, (now, _) = await self._within_limit(pipeline.execute)
        for name, text in written.items():
            try:
                route = redis_keys.route_from_json(text)
                if route.issued_at > now + redis_keys.FUTURE_SECONDS:
                    raise ValueError(f"the time of its issue, {route.issued_at:.0f}, is yet to come")
            except ValueError as error:
                if complaints.get(name) != str(error):
                    _log.error("route of %r counts for nothing, the last one stands: %s", name, error)
                complaints[name] = str(error)
                continue
            if route.model not in told or told[route.model].is_before(route):
                told[route.model] = route
                on_route(route)

    def _full(self, size: int, max_bytes: int) -> bool:
        return self._bytes + size > max_bytes or self._waiting >= MOST_WAITING

    def _no_room(self, max_bytes: int) -> StoreFull:
        return StoreFull(
            f"{self._bytes} bytes in {self._waiting} captures wait; {max_bytes} bytes are allowed"
        )

    async def _take_in(
        self,
        batch: Sequence[Shipment],
        *,
        ttl_seconds: int = 1,
        max_bytes: int,
        queue: str | None = None,
        messages: Sequence[str] = (),
    ) -> bool:
        """Whether Redis took the batch; without one, how much it holds is all that is learned."""
        keys, values = take_in(
            batch,
            ttl_seconds=ttl_seconds,
            max_bytes=max_bytes,
            due=self._clock() + DUE_SECONDS,
            queue=queue,
            messages=messages,
        )

        async def ask() -> Answered:
            script = self._redis.eval(TAKE_IN, len(keys), *keys, *values)
            return read_answer(await cast(Awaitable[object], script))

        answered = await self._within_limit(ask)
        self._bytes, self._waiting = answered.used, answered.waiting
        return answered.taken

    async def _within_limit(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        try:
            async with asyncio.timeout(self._timeout):
                return await ask()
        except OutOfMemoryError as error:
            raise StoreFull(f"Redis is out of memory: {_words(error)}") from error
        except (TimeoutError, OSError) as error:
            raise StoreDown(f"Redis did not answer within {self._timeout} s: {error!r}") from error
        except (ResponseError, BusyLoadingError, AuthenticationError) as error:
            raise StoreRefused(f"Redis refused: {_words(error)}") from error
        except Exception as error:
            # RedisError, and whatever else the client makes of a peer that does not answer as Redis does.
            raise StoreDown(f"Redis is away: {error!r}") from error


def _words(error: Exception) -> str:
    """What Redis said. The client puts the command before it, and that holds a sealed capture's bytes."""
    return str(error).rpartition(" of pipeline caused error: ")[2]
