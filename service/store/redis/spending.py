"""Budgets of shadow traffic and of each model's probes: buckets of tokens in Redis that fill by the hour."""

from __future__ import annotations

from typing import cast

import redis

from service.store.redis import redis_keys

_SECONDS_A_DAY = 86_400
_SHARE_AT_ONCE = 24
"""The bucket holds a day's budget divided by this: an hour's worth may be spent in a burst."""

_TAKE = """
local level, at = unpack(redis.call('HMGET', KEYS[1], 'level', 'at'))
local wanted, rate, most, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
level, at = tonumber(level or most), tonumber(at or now)
level = math.min(most, level + math.max(0, now - at) * rate)
local granted = 0
if level > 0 then level = level - wanted; granted = 1 end
at = math.max(at, now)
redis.call('HSET', KEYS[1], 'level', string.format('%.3f', level), 'at', string.format('%.3f', at))
redis.call('EXPIRE', KEYS[1], 172800)
return granted
"""


class Budget:
    """Tokens that all workers together may spend a day; None = no limit.

    A purchase is granted while anything is left and may overdraw: what it overdraws has to refill first,
    so that the average holds, and a single request larger than the bucket still gets its turn.
    """

    def __init__(
        self, client: redis.Redis, *, tokens_per_day: int | None, key: str = redis_keys.SHADOW_TOKENS
    ) -> None:
        """`key` names the bucket; by default it is that of all shadow traffic."""
        if tokens_per_day is not None and tokens_per_day < 0:
            raise ValueError(f"a budget cannot be negative, got {tokens_per_day} tokens a day")
        self._redis = client
        self._per_day = tokens_per_day
        self._key = key
        self._take = client.register_script(_TAKE)

    def take(self, tokens: int, *, now: float) -> bool:
        """Whether these tokens may be spent; takes them if so."""
        if self._per_day is None:
            return True
        if self._per_day == 0:
            return False
        rate, most = self._per_day / _SECONDS_A_DAY, self._per_day / _SHARE_AT_ONCE
        granted = self._take(keys=[self._key], args=[tokens, f"{rate:.9f}", f"{most:.3f}", f"{now:.3f}"])
        return bool(cast(int, granted))

    def give_back(self, tokens: int) -> None:
        """Correct an earlier estimate; negative when more was spent than taken."""
        if self._per_day and tokens:
            self._redis.hincrbyfloat(self._key, "level", tokens)
