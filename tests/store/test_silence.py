"""Whoever waits for a store whose host fell silent, with no word that the connection is over, gives it up."""

from __future__ import annotations

import os
import socket

import psycopg
import pytest
import sqlalchemy

from service.store.sql import database as opening
from service.store.sql.database import StoreUnusable, open_database


def kernel_waits(url: str) -> tuple[int, int, int, int]:
    """Idle, interval, count and user timeout of the connection's socket, as the kernel has them."""
    database = open_database(url)
    try:
        with database.read() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            with socket.socket(fileno=os.dup(driver.pgconn.socket)) as own:
                options = (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                    socket.TCP_USER_TIMEOUT,
                )
                assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                idle, interval, count, user = (own.getsockopt(socket.IPPROTO_TCP, each) for each in options)
                return idle, interval, count, user
    finally:
        database.close()


def test_a_silent_postgresql_is_given_up_within_a_minute(postgres_url: str) -> None:
    idle, interval, count, user = kernel_waits(postgres_url)
    assert idle + interval * count <= 60
    assert 0 < user <= 60_000


def test_the_url_may_say_otherwise(postgres_url: str) -> None:
    url = sqlalchemy.make_url(postgres_url).update_query_dict({"keepalives_idle": "7"})
    assert kernel_waits(url.render_as_string(hide_password=False))[0] == 7


def test_who_holds_a_lock_for_ever_keeps_nobody_waiting_for_ever(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped in the middle of a transaction, say."""
    monkeypatch.setattr(opening, "_BUSY_SECONDS", 0.2)
    holder, other = open_database(database_url), open_database(database_url)
    try:
        with holder.write() as held:
            holder.lock(held, "decisions")
            with (
                pytest.raises(StoreUnusable, match="another process wrote for more than"),
                other.write() as connection,
            ):
                other.lock(connection, "decisions")
        with other.write() as connection:
            other.lock(connection, "decisions")
    finally:
        holder.close()
        other.close()
