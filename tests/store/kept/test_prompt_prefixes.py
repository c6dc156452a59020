"""Hashes of what captured prompts begin with, until they have been kept for long enough."""

from __future__ import annotations

from dataclasses import replace

from service.store.kept.forgetting import expire_kept, forget_tenant
from service.store.kept.prompt_prefixes import PromptPrefix, keep_prefix_within, read_prefixes, trim_prefixes
from service.store.sql.database import Database

KEPT = PromptPrefix(
    capture_id="c1",
    model="m",
    tenant="t1",
    at=1000.0,
    tokens=130,
    named=(0, 1, 2**63 - 1),
    share=0.05,
    together=True,
)


def keep(database: Database, *kept: PromptPrefix, expires_at: float = 5000.0) -> None:
    with database.write() as connection:
        for each in kept:
            keep_prefix_within(database, connection, each, expires_at=expires_at)


def numbered(*numbers: int, **changed: object) -> list[PromptPrefix]:
    return [
        replace(KEPT, capture_id=f"c{number}", at=1000.0 + number, **changed)  # type: ignore[arg-type]
        for number in numbers
    ]


def ids(database: Database, model: str = "m") -> list[str]:
    return [each.capture_id for each in read_prefixes(database, model)]


def test_prompts_are_read_in_the_order_in_which_they_were_asked(database: Database) -> None:
    keep(database, *numbered(3, 1, 2), *numbered(9, model="n"))
    assert ids(database) == ["c1", "c2", "c3"]
    assert read_prefixes(database, "m")[0] == numbered(1)[0]
    assert read_prefixes(database, "other") == []


def test_a_capture_that_is_delivered_twice_was_asked_once(database: Database) -> None:
    keep(database, KEPT)
    keep(database, replace(KEPT, tokens=7))
    assert read_prefixes(database, "m") == [KEPT]


def test_only_those_count_that_were_sampled_as_the_latest_were(database: Database) -> None:
    keep(database, *numbered(1, 2, share=0.05), *numbered(3, share=1.0), *numbered(4, 5, share=0.05))
    assert ids(database) == ["c4", "c5"]


def test_the_latest_of_each_model_stay(database: Database) -> None:
    keep(database, *numbered(*range(1, 6)), *numbered(6, 7, model="n"))
    assert trim_prefixes(database, most=3) == 2
    assert (ids(database), ids(database, "n")) == (["c3", "c4", "c5"], ["c6", "c7"])
    assert trim_prefixes(database, most=0) == 5
    assert (ids(database), ids(database, "n")) == ([], [])


def test_they_go_with_their_time_or_their_tenant(database: Database) -> None:
    keep(database, *numbered(1, 2))
    keep(database, *numbered(3), expires_at=9000.0)
    assert expire_kept(database, now=5000.0).prefixes == 2
    assert forget_tenant(database, "t2").prefixes == 0
    assert forget_tenant(database, "t1").prefixes == 1
    assert ids(database) == []
