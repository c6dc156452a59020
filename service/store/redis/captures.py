"""Captures and routes in Redis, for workers and the API."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.fleet import Route
from service.store.redis import redis_keys
from service.store.redis.intake import BYTES_WIDTH

_CHUNK = 5000

# Never go back to one issued earlier, whoever publishes last; what is unreadable or from the future gives
# way. KEYS[1] routes; ARGV model, issued at, version, JSON, channel, how far ahead is the future.
_PUBLISH = """
local latest = tonumber(redis.call('TIME')[1]) + tonumber(ARGV[6])
local issued, version = tonumber(ARGV[2]), tonumber(ARGV[3])
if issued > latest then return 'future' end
local known = redis.call('HGET', KEYS[1], ARGV[1])
local read, route = pcall(cjson.decode, known or '')
if known and read and type(route) == 'table' then
  local since = tonumber(route.issued_at) or 0
  local later = since > issued or (since == issued and (tonumber(route.version) or -1) > version)
  if later and since <= latest then return 'older' end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('PUBLISH', ARGV[5], ARGV[1])
return 'told'
"""

# KEYS bytes by interval, index, captures; ARGV interval, ids. Room is made also where there is none: what is
# deleted must be counted as gone, or a store that was full stays full until it would have expired. All at
# once: two who forget give back once.
_FORGET = """#!lua flags=allow-oom
for i = 3, #KEYS do
  local size, expires = redis.call('STRLEN', KEYS[i]), redis.call('PEXPIRETIME', KEYS[i])
  if redis.call('DEL', KEYS[i]) == 1 then
    local ends = math.floor(expires / 1000 / ARGV[1] + 1) * ARGV[1]
    redis.call('HINCRBY', KEYS[1], string.format('%d', ends), -size)
  end
  redis.call('ZREM', KEYS[2], ARGV[i - 1])
end
"""


class Publication(StrEnum):
    """What became of a route that was to be published."""

    TOLD = "told"
    OLDER = "older"
    """Redis has one that was issued later, and keeps it."""
    FUTURE = "future"
    """It was issued later than Redis' clock says it is: one of two clocks is wrong."""


def open_captures(redis_url: str, *, timeout: float = 5.0) -> Captures:
    """Connects lazily; `timeout` in seconds for each step."""
    client: Redis = Redis.from_url(
        redis_url,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 1),
    )
    return Captures(client)


class Captures:
    """The sealed captures that wait, and the routes that proxies follow. Raises redis.RedisError."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @property
    def redis(self) -> Redis:
        """The client, for `ledger.copy_from_redis`."""
        return self._redis

    def close(self) -> None:
        self._redis.close()

    def ping(self) -> None:
        self._redis.ping()

    def fetch(self, ids: Sequence[str]) -> dict[str, bytes | None]:
        """Sealed captures by id; None when it is gone: `indexed` tells expired from lost."""
        if not ids:
            return {}
        found = cast(list[bytes | None], self._redis.mget([redis_keys.capture(each) for each in ids]))
        return dict(zip(ids, found, strict=True))

    def indexed(self, ids: Sequence[str]) -> set[str]:
        """Those still in the index: a capture gone from the store alone has expired, from both it is lost."""
        if not ids:
            return set()
        scores = self._redis.zmscore(redis_keys.CAPTURES_DUE, list(ids))
        return {each for each, score in zip(ids, scores, strict=True) if score is not None}

    def present(self, ids: Sequence[str]) -> set[str]:
        """Those that can still be fetched, without fetching them."""
        if not ids:
            return set()
        with self._redis.pipeline(transaction=False) as pipeline:
            for each in ids:
                pipeline.exists(redis_keys.capture(each))
            found = cast(list[int], pipeline.execute())
        return {each for each, there in zip(ids, found, strict=True) if there}

    def forget(self, ids: Collection[str]) -> None:
        """Delete settled captures and give back their bytes; call it after the settlement is in SQL."""
        if not ids:
            return
        keys = [redis_keys.CAPTURES_BYTES, redis_keys.CAPTURES_DUE, *map(redis_keys.capture, ids)]
        self._redis.eval(_FORGET, len(keys), *keys, str(BYTES_WIDTH), *ids)

    def due(self, now: float, limit: int) -> list[str]:
        """Captures that should have been settled by now, longest due first."""
        found = self._redis.zrangebyscore(redis_keys.CAPTURES_DUE, "-inf", now, start=0, num=limit)
        return [each.decode() for each in cast(list[bytes], found)]

    def postpone(self, ids: Collection[str], until: float) -> None:
        """Due again at `until`: after enqueuing them once more, or while somebody holds their lease."""
        if ids:
            self._redis.zadd(redis_keys.CAPTURES_DUE, dict.fromkeys(ids, until), xx=True)

    def waiting(self) -> int:
        """Captures in the index: not yet settled and forgotten, expired ones included."""
        return self._redis.zcard(redis_keys.CAPTURES_DUE)

    def waiting_ids(self) -> list[str]:
        """All of them, in no order worth relying on."""
        ids: set[str] = set()
        cursor = 0
        while True:
            cursor, found = cast(
                tuple[int, list[tuple[bytes, float]]],
                self._redis.zscan(redis_keys.CAPTURES_DUE, cursor, count=_CHUNK),
            )
            ids.update(member.decode() for member, _ in found)
            if cursor == 0:
                return sorted(ids)

    def publish_route(self, route: Route) -> Publication:
        """Tell the proxies; unless it is told, nothing changes."""
        said = self._redis.eval(
            _PUBLISH,
            1,
            redis_keys.ROUTES,
            route.model,
            repr(route.issued_at),
            str(route.version),
            redis_keys.route_to_json(route),
            redis_keys.ROUTES_CHANGED,
            str(redis_keys.FUTURE_SECONDS),
        )
        return Publication(cast(bytes, said).decode())

    def read_route(self, model: str) -> Route | None:
        """What proxies follow; ValueError when it is unreadable."""
        text = cast(bytes | None, self._redis.hget(redis_keys.ROUTES, model))
        return None if text is None else redis_keys.route_from_json(text)
