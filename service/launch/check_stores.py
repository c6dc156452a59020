"""What `tiergate check` says about Redis, database, state directory and capture key: one line each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import redis

from service.launch.check import Level, Line
from service.launch.part import PATIENCE
from service.settings import Settings
from service.settings.secrets import NO_KEY_YET
from service.store.sql.database import StoreEmpty, StoreUnusable, open_database

OLDEST_REDIS = 7
"""Whose scripts can be declared as writing, so that one is refused whole where writing fails."""
ROOM_PER_CAPTURE = 2
"""Memory of Redis for each byte of captures it may hold: keys, index, queue and ledger need some as well."""
EMBEDDED = (
    "embedded: `tiergate up` starts one of its own; `tiergate proxy` by itself has none, and drops captures"
)


class RedisUnusable(Exception):
    """Redis or the broker cannot be used, with what to do."""


def check_redis(settings: Settings) -> None:
    """Raise `RedisUnusable` when a server that is not embedded would fail `tiergate check`."""
    for line in _redis_lines(settings):
        if line.level is Level.FAIL:
            raise RedisUnusable(f"{line.subject}: {line.text}")


def check_database(settings: Settings, *, make: bool = True) -> str:
    """Open the database and read it for damage; returns where it is; raises `StoreUnusable`.

    With `make` false, `StoreEmpty` for one that is still to be made.
    """
    database = open_database(settings.database_url, make=make)
    try:
        database.check_for_damage()
        return database.shown_url
    finally:
        database.close()


def store_lines(settings: Settings) -> list[Line]:
    """Asks each store and changes none."""
    return [
        *_redis_lines(settings),
        _database_line(settings),
        *_state_dir_lines(settings),
        _key_line(settings),
    ]


def _redis_lines(settings: Settings) -> list[Line]:
    if settings.redis_embedded and settings.broker_url == settings.redis_url:
        return [Line(level=Level.OK, subject="redis", text=EMBEDDED)]
    lines: list[Line] = []
    if not settings.redis_embedded:
        lines.append(
            _redis_line(
                "redis",
                settings.redis_url,
                broker=settings.redis_url == settings.broker_url,
                captures=settings.proxy.mirroring.max_bytes,
            )
        )
    if settings.broker_url != settings.redis_url:
        lines.append(_redis_line("broker", settings.broker_url, broker=True))
    return lines


def _redis_line(subject: str, url: str, *, broker: bool, captures: int = 0) -> Line:
    """What a server is good for that may hold `captures` bytes of them."""
    parts = urlsplit(url)
    where = f"{parts.hostname}:{parts.port or 6379}"
    try:
        with redis.Redis.from_url(
            url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, decode_responses=True
        ) as client:
            facts = {**client.info("server"), **client.info("memory"), **client.info("persistence")}
    except redis.AuthenticationError as error:
        return Line(level=Level.FAIL, subject=subject, text=f"{where} refuses the password ({error})")
    except redis.RedisError as error:
        return Line(
            level=Level.FAIL,
            subject=subject,
            text=f"{where} cannot be used ({error}): start it, or correct store.{subject} or"
            f" TIERGATE_{subject.upper()}_URL",
        )
    policy = str(facts.get("maxmemory_policy", "unknown"))
    told = f"{where}, {_version(facts)}, eviction policy {policy}"
    if subject == "redis" and is_too_old(facts):
        return Line(
            level=Level.FAIL,
            subject=subject,
            text=f"{told}: captures are taken in by a script that needs Redis {OLDEST_REDIS} or any Valkey",
        )
    if broker and policy != "noeviction":
        return Line(
            level=Level.FAIL,
            subject=subject,
            text=f"{told}: it could drop queued tasks; CONFIG SET maxmemory-policy noeviction, or name"
            " another server in store.broker",
        )
    if policy.startswith("allkeys"):
        return Line(
            level=Level.WARN, subject=subject, text=f"{told}: it could drop the ledger; take volatile-ttl"
        )
    room = int(facts.get("maxmemory") or 0)
    if 0 < room < ROOM_PER_CAPTURE * captures:
        return Line(
            level=Level.WARN,
            subject=subject,
            text=f"{told}, maxmemory {room >> 20} MiB: {captures >> 20} MiB of captures may fill it"
            " (mirror.capture.max_bytes), and from a full one workers take nothing; give it twice as much",
        )
    if broker and not facts.get("aof_enabled"):
        return Line(
            level=Level.WARN,
            subject=subject,
            text=f"{told}, no append-only file: a restart loses queued tasks; the ledger says how many",
        )
    return Line(level=Level.OK, subject=subject, text=told)


def is_too_old(facts: Mapping[str, object]) -> bool:
    """Whether INFO tells of a Redis before 7; Valkey tells the Redis that it can stand in for."""
    major = str(facts.get("redis_version", OLDEST_REDIS)).partition(".")[0]
    return major.isdecimal() and int(major) < OLDEST_REDIS


def _version(facts: Mapping[str, object]) -> str:
    if "valkey_version" in facts:
        return f"Valkey {facts['valkey_version']}"
    return f"Redis {facts.get('redis_version', '(version not told)')}"


def _database_line(settings: Settings) -> Line:
    try:
        return Line(level=Level.OK, subject="database", text=check_database(settings, make=False))
    except StoreEmpty as error:
        text = f"{error}: the first process that needs it makes it"
        return Line(level=Level.OK, subject="database", text=text)
    except StoreUnusable as error:
        return Line(level=Level.FAIL, subject="database", text=str(error))


def _state_dir_lines(settings: Settings) -> list[Line]:
    """A line where nothing could be kept: what starts there would end at once."""
    there = next(each for each in (settings.state_dir, *settings.state_dir.parents) if each.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return []
    what = "may not be written to by this user" if there.is_dir() else "is no directory"
    text = f"{settings.state_dir}: {there} {what}; set store.state_dir or TIERGATE_STATE_DIR"
    return [Line(level=Level.FAIL, subject="state directory", text=text)]


def _key_line(settings: Settings) -> Line:
    if settings.keyring.current == NO_KEY_YET:
        text = f"none in {settings.state_dir} yet: the first process that needs it makes it"
        return Line(level=Level.OK, subject="capture key", text=text)
    older = len(settings.keyring.keys) - 1
    opens = f", opens what {older} older ones sealed" if older else ""
    return Line(level=Level.OK, subject="capture key", text=f"seals with {settings.keyring.current}{opens}")
