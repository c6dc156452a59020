"""What is prepared before anything starts; `tests/cli/test_up.py` runs it all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from service.launch.everything import copy_ledger, keep_token, tiergate_parts
from service.settings import Settings, load
from service.settings.units import Listen
from service.store.access.tokens import list_tokens, lookup, revoke
from service.store.sql.database import Database, StoreUnusable, open_database
from tests.ports import free_port

Configured = Callable[[], Settings]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "tiergate.yaml"
    path.write_text("models: {qwen: {ladder: [{tier: bf16, backends: ['http://a:1']}]}}\n")
    return load(path, {})


@contextmanager
def database_of(settings: Settings) -> Iterator[Database]:
    database = open_database(settings.database_url)
    try:
        yield database
    finally:
        database.close()


def test_the_first_start_makes_a_token_with_every_scope_and_later_ones_keep_it(settings: Settings) -> None:
    path = keep_token(settings, now=1.0)
    secret = path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600
    assert keep_token(settings, now=2.0).read_text().strip() == secret
    with database_of(settings) as database:
        token = lookup(database, secret, time.time())
        assert token is not None
        assert token.scopes == {"read", "approve", "admin"}
        assert len(list_tokens(database, time.time())) == 1


def test_a_token_that_the_database_does_not_know_is_replaced(settings: Settings) -> None:
    first = keep_token(settings, now=1.0).read_text()
    with database_of(settings) as database:
        (token,) = list_tokens(database, time.time())
        revoke(database, token.name, now=2.0)
    second = keep_token(settings, now=3.0).read_text()
    assert second != first
    (settings.state_dir / "token").write_bytes(b"\xff garbage")
    assert keep_token(settings, now=4.0).read_text() not in (first, second)


def test_a_database_that_cannot_be_used_is_told_before_anything_starts(settings: Settings) -> None:
    (settings.state_dir / "tiergate.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnusable, match="move it away"):
        keep_token(settings, now=1.0)


def test_parts_start_from_the_api_to_the_proxy_and_know_their_health_addresses(settings: Settings) -> None:
    listens = {
        name: Listen(host="0.0.0.0", port=free_port())
        for name in ("proxy_admin", "api", "guard", "worker", "beat", "load")
    }
    parts = {part.name: part for part in tiergate_parts(settings, **listens, last_copy=lambda: None)}
    assert list(parts) == ["api", "guard", "worker", "load", "beat", "proxy"]
    # A server bound to every address is asked on loopback.
    assert f"http://127.0.0.1:{listens['api'].port}/readyz" in (parts["api"].ready("") or "")
    assert parts["worker"].env["TIERGATE_WORKER_LISTEN"] == str(listens["worker"])
    assert parts["proxy"].stop_seconds > settings.proxy.drain_seconds


def test_workers_get_time_to_stop_however_short_a_replay_may_take(settings: Settings) -> None:
    hasty = replace(settings, shadow=replace(settings.shadow, timeout_seconds=1.0))
    listens = {
        name: Listen(host="127.0.0.1", port=1)
        for name in ("proxy_admin", "api", "guard", "worker", "beat", "load")
    }
    parts = {part.name: part for part in tiergate_parts(hasty, **listens, last_copy=lambda: None)}
    # A worker gives up after ten seconds what is under way, and then records what it has.
    assert parts["worker"].stop_seconds > 10
    assert parts["guard"].stop_seconds > 10


def test_a_last_copy_that_finds_no_redis_says_where_the_counters_are(
    settings: Settings, said: list[str]
) -> None:
    copy_ledger(settings.database_url, f"redis://127.0.0.1:{free_port()}/0", said.append)
    assert "stay in Redis until the next start" in said[0]
