"""What engines told of their prefix caches is kept, every quarter of an hour, for some days."""

from __future__ import annotations

from dataclasses import replace

from service.capacity.prefix_gate import Reading
from service.capacity.prefix_window import Look
from service.store.load.engine_readings import (
    READING_SECONDS,
    due_backends,
    forget_readings,
    read_looks,
    record_readings,
)
from service.store.sql.database import Database

NOW = 1_800_000_000.0
LOOK = Look(
    backend="http://a",
    at=NOW,
    reading=Reading(prefill_tokens=100.0, reused_tokens=40.0, prefill_seconds=1.5, decode_seconds=None),
    running=3.0,
    kv_usage=0.5,
    evicted=None,
)
A, B = ("m", "bf16", "http://a"), ("m", "bf16", "http://b")


def test_what_was_told_is_read_as_it_was(database: Database) -> None:
    record_readings(database, {A: LOOK, ("m", "w8a8", "http://a"): LOOK})
    record_readings(
        database, {A: replace(LOOK, at=NOW + 900, evicted=7.0), B: replace(LOOK, backend="http://b")}
    )
    found = read_looks(database, "m", "bf16", since=NOW)
    assert found == [LOOK, replace(LOOK, at=NOW + 900, evicted=7.0), replace(LOOK, backend="http://b")]
    assert read_looks(database, "m", "bf16", since=NOW + 1) == [found[1]]
    assert read_looks(database, "other", "bf16", since=0.0) == []


def test_a_second_word_of_the_same_moment_changes_nothing(database: Database) -> None:
    for running in (3.0, 9.0):
        record_readings(database, {A: replace(LOOK, running=running)})
    assert read_looks(database, "m", "bf16", since=0.0) == [LOOK]


def test_another_reading_is_due_after_a_quarter_of_an_hour(database: Database) -> None:
    record_readings(database, {A: LOOK})
    assert due_backends(database, {A, B}, now=NOW + READING_SECONDS - 1) == {B}
    assert due_backends(database, {A, B}, now=NOW + READING_SECONDS) == {A, B}
    assert due_backends(database, set(), now=NOW) == set()


def test_old_readings_are_forgotten(database: Database) -> None:
    record_readings(database, {A: LOOK})
    record_readings(database, {A: replace(LOOK, at=NOW + 900)})
    assert forget_readings(database, before=NOW + 1) == 1
    assert [each.at for each in read_looks(database, "m", "bf16", since=0.0)] == [NOW + 900]


def test_nothing_told_is_nothing_written(database: Database) -> None:
    record_readings(database, {})
    assert read_looks(database, "m", "bf16", since=0.0) == []
