"""Answers kept to be judged again: how many, until when, and which are due."""

from __future__ import annotations

from typing import Any

from service.store.kept.forgetting import expire_kept, forget_answers, forget_tenant
from service.store.kept.kept_answers import (
    KeptAnswers,
    KeptCount,
    keep_within,
    kept_counts,
    mark_scored,
    to_score,
)
from service.store.sql.database import Database


def keep(db: Database, capture_id: str, *, max_bytes: int = 1000, **changes: Any) -> bool:
    fields: dict[str, Any] = {
        "capture_id": capture_id,
        "model": "m",
        "tenant": "t1",
        "scored": "old",
        "expires_at": 100.0,
        "blob": b"x" * 10,
    }
    with db.write() as connection:
        return keep_within(db, connection, KeptAnswers(**{**fields, **changes}), max_bytes=max_bytes)


def test_those_that_were_judged_otherwise_are_due_until_they_are_marked(database: Database) -> None:
    for name in ("a", "b", "c"):
        assert keep(database, name)
    keep(database, "new", scored="now")
    keep(database, "gone", expires_at=50.0)
    due = to_score(database, model="m", scored="now", limit=2, now=60.0)
    assert due == {"a": b"x" * 10, "b": b"x" * 10}
    mark_scored(database, due, "now")
    assert list(to_score(database, model="m", scored="now", limit=9, now=60.0)) == ["c"]
    assert to_score(database, model="n", scored="now", limit=9, now=60.0) == {}


def test_the_limit_does_not_look_at_what_comes_but_at_what_is_there(database: Database) -> None:
    assert keep(database, "a", blob=b"x" * 5000)
    assert not keep(database, "b", blob=b"x")
    assert kept_counts(database) == {"m": KeptCount(captures=1, size=5000)}


def test_a_capture_is_kept_once(database: Database) -> None:
    keep(database, "a")
    keep(database, "a", blob=b"other")
    assert kept_counts(database)["m"] == KeptCount(captures=1, size=10)


def test_they_go_with_their_time_their_tenant_or_their_model(database: Database) -> None:
    keep(database, "a", expires_at=10.0)
    keep(database, "b", tenant="t2")
    keep(database, "c")
    keep(database, "d", model="n")
    assert expire_kept(database, now=10.0).answers == 1
    assert forget_tenant(database, "t2").answers == 1
    assert forget_answers(database, "m").answers == 1
    assert list(kept_counts(database)) == ["n"]
