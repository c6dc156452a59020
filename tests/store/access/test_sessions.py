"""One key for every API process, and sessions that ended early."""

from __future__ import annotations

from sqlalchemy import select

from service.store.access import tokens
from service.store.access.sessions import KEY_BYTES, end_session, has_ended, session_key
from service.store.sql.database import Database
from service.store.sql.session_tables import ended_sessions


def test_the_key_is_made_once_and_is_the_same_for_whoever_asks(database: Database) -> None:
    first = session_key(database, now=1.0)
    assert len(first) == KEY_BYTES
    assert session_key(database, now=2.0) == first


def test_a_session_that_ended_stays_ended_until_its_cookie_would_have(database: Database) -> None:
    assert not has_ended(database, "one")
    end_session(database, "one", until=100.0, now=10.0)
    end_session(database, "one", until=100.0, now=11.0)
    assert has_ended(database, "one")
    assert not has_ended(database, "other")
    end_session(database, "other", until=300.0, now=101.0)
    with database.read() as connection:
        kept = connection.execute(select(ended_sessions.c.session_id)).scalars().all()
    assert kept == ["other"], "a cookie that ended by itself needs no row"


def test_a_token_is_found_by_the_id_that_its_secret_begins_with(database: Database) -> None:
    secret = tokens.create(database, name="anna", scopes=["label"], models=["m"], now=1.0, expires_at=50.0)
    found = tokens.named_by(database, tokens.id_of(secret), 2.0)
    assert found is not None
    assert (found.name, found.scopes, found.models) == ("anna", {"label"}, {"m"})
    assert tokens.named_by(database, tokens.id_of(secret), 50.0) is None, "expired"
    assert tokens.named_by(database, "", 2.0) is None
    assert tokens.id_of("not a secret of ours") == ""


def test_a_token_that_was_rotated_or_revoked_is_not_found_by_its_former_id(database: Database) -> None:
    first = tokens.create(database, name="anna", scopes=["read"], now=1.0)
    second = tokens.rotate(database, "anna", now=2.0, grace_seconds=100.0)
    assert tokens.lookup(database, first, 3.0) is not None, "programs have a time of grace"
    assert tokens.named_by(database, tokens.id_of(first), 3.0) is None, "sessions have none"
    assert tokens.named_by(database, tokens.id_of(second), 3.0) is not None
    tokens.revoke(database, "anna", now=4.0)
    assert tokens.named_by(database, tokens.id_of(second), 5.0) is None
