"""A disk without room: SQLite says so in words that help, loses nothing, and goes on when there is some."""

from __future__ import annotations

import time

import pytest

from service.store.decided.decisions import append, read, verify
from service.store.redis.captures import Captures
from service.store.redis.counters import Count, Skipped, ledger_key
from service.store.redis.shipping import CaptureStore
from service.store.sql.database import StoreUnusable, open_database
from service.store.traffic.ledger import account, copy_from_redis

ADVICE = r"database or disk is full.*make room on its disk"


@pytest.fixture
def db(sqlite_url):
    opened = open_database(sqlite_url)
    yield opened
    opened.close()


def decide(db, number):
    detail = {"words": f"{number} " * 200}
    append(db, at=float(number), actor="ci", action="note", model="m", tier="t", detail=detail)


def decide_many(db):
    for number in range(1, 1000):
        decide(db, number)


def test_what_does_not_fit_is_refused_whole_and_what_is_there_can_be_read(db, sqlite_url, full_disk):
    decide(db, 0)
    full_disk.is_full = True
    with pytest.raises(StoreUnusable, match=ADVICE):
        decide_many(db)
    written = len(read(db, "m", limit=1000))
    assert verify(db) is None
    opened = open_database(sqlite_url)  # a process that starts now can read as well
    assert len(read(opened, "m", limit=1000)) == written
    opened.close()
    full_disk.is_full = False
    decide(db, written)
    assert len(read(db, "m", limit=1000)) == written + 1
    assert verify(db) is None


async def test_a_ledger_that_cannot_be_copied_stays_in_redis(db, valkey, redis_client, full_disk):
    store = CaptureStore.open(valkey.url, valkey.url)
    for number in range(200):
        counters = {ledger_key(Count.SEEN, "m"): 3, ledger_key(Count.SKIPPED, "m", Skipped.OPTED_OUT): 3}
        await store.write_ledger(f"instance-{number:030}", counters, reserved=3, closed=True)
    await store.aclose()
    full_disk.is_full = True
    with pytest.raises(StoreUnusable, match=ADVICE):
        copy_from_redis(db, redis_client)
    found = account(db, Captures(redis_client), now=time.time())
    assert (found.seen, found.balanced) == (600, True)
    full_disk.is_full = False
    copy_from_redis(db, redis_client)
    assert account(db).seen == 600
    assert redis_client.keys("tiergate:ledger:*") == []
