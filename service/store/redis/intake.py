"""How Redis takes a batch of captures in: one script, its arguments, and what it says.

The script asks whatever can fail before it writes, so a batch is taken whole or not at all: keys that hold
something else, a full store. It is declared as one that writes, so Redis 7 or Valkey refuses it unread when
memory is short, on a replica and where persistence fails. It is sent with its text, which is shorter than one
capture: a Redis that forgot its scripts makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from service.store.redis import redis_keys

BYTES_WIDTH = 600
"""Seconds of one interval of `redis_keys.CAPTURES_BYTES`."""

MOST_WAITING = 1_000_000
"""Captures in the index, expired ones included, before the store counts as full."""

# KEYS bytes by interval, index, queue if it is here; ARGV TTL, interval, bytes allowed, captures allowed,
# when due, prefix of keys, ids, sizes, sealed captures one after the other, messages. Returns whether it took
# them, bytes in use, captures in the index.
TAKE_IN = """#!lua
local now = tonumber(redis.call('TIME')[1])
local used, ended = 0, {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if tonumber(all[i]) <= now then
    ended[#ended + 1] = all[i]
  else
    used = used + tonumber(all[i + 1])
  end
end
local waiting = redis.call('ZCARD', KEYS[2])
if KEYS[3] then redis.call('LLEN', KEYS[3]) end
local size = #ARGV[9]
if used + size > tonumber(ARGV[3]) or waiting >= tonumber(ARGV[4]) then return {0, used, waiting} end
if ARGV[7] == '' then return {1, used, waiting} end
local _, named = string.gsub(ARGV[7], '%S+', '')
local _, sized = string.gsub(ARGV[8], '%S+', '')
if named ~= sized then return redis.error_reply('ERR an id holds white space') end
local ends = math.floor((now + tonumber(ARGV[1])) / ARGV[2] + 1) * ARGV[2]
redis.call('HINCRBY', KEYS[1], string.format('%d', ends), size)
for _, interval in ipairs(ended) do redis.call('HDEL', KEYS[1], interval) end
local ids, place, added = string.gmatch(ARGV[7], '%S+'), 1, 0
for length in string.gmatch(ARGV[8], '%d+') do
  local id, after = ids(), place + tonumber(length)
  redis.call('SET', ARGV[6] .. id, string.sub(ARGV[9], place, after - 1), 'EX', ARGV[1])
  added = added + redis.call('ZADD', KEYS[2], ARGV[5], id)
  place = after
end
for i = 10, #ARGV do redis.call('LPUSH', KEYS[3], ARGV[i]) end
return {1, used + size, waiting + added}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """One sealed capture on its way."""

    id: str
    """From `service.store.redis.capture.capture_id`: without white space."""
    blob: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What Redis says of a batch."""

    taken: bool
    """Otherwise it is full, and nothing was written."""
    used: int
    """Bytes of sealed captures that wait."""
    waiting: int
    """Captures in the index."""


def take_in(
    batch: Sequence[Shipment],
    *,
    ttl_seconds: int,
    max_bytes: int,
    due: float,
    queue: str | None,
    messages: Sequence[str],
) -> tuple[list[str], list[str | bytes | float]]:
    """Keys and arguments of the script. Without a batch it only tells how full Redis is.

    The captures travel as one argument for all ids, one for all sizes and one for all bytes: to pack two
    arguments for each would cost the proxy about as much as to encrypt it.
    """
    keys = [redis_keys.CAPTURES_BYTES, redis_keys.CAPTURES_DUE, *([] if queue is None else [queue])]
    return keys, [
        ttl_seconds,
        BYTES_WIDTH,
        max_bytes,
        MOST_WAITING,
        due,
        redis_keys.capture(""),
        " ".join([shipment.id for shipment in batch]),
        " ".join([str(len(shipment.blob)) for shipment in batch]),
        b"".join([shipment.blob for shipment in batch]),
        *messages,
    ]


def read_answer(reply: object) -> Answered:
    """ValueError for what no Redis says."""
    match reply:
        case [int(taken), int(used), int(waiting)]:
            return Answered(taken=bool(taken), used=used, waiting=waiting)
    raise ValueError(f"not the answer of the script that takes captures in: {reply!r:.200}")
