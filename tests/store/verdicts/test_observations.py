"""What the guard keeps of its looks. The clock is an argument: an hour of flapping takes no time."""

from __future__ import annotations

from dataclasses import replace

from service.engines.settling import Settlement, Word
from service.store.sql.database import Database, open_database
from service.store.verdicts.observations import read_settlements, read_words, record_look
from tests.engines.test_pages import LLAMA_CPP_FACTS, SGLANG_FACTS, vllm_facts

NOW = 1_800_000_000.25
OLD = vllm_facts("auto", 46592)
NEW = replace(OLD, version="0.33.0")
TIER = ("m", "w8a8")


def test_words_are_kept_with_their_time_and_a_silent_backend_keeps_its_last(database: Database) -> None:
    record_look(database, {TIER: {"http://a:1": OLD, "http://b:1": OLD}}, now=NOW)
    record_look(database, {TIER: {"http://a:1": replace(OLD, kv_tokens=1), "http://b:1": None}}, now=NOW + 30)
    assert read_words(database, *TIER) == [
        Word(backend="http://a:1", facts=replace(OLD, kv_tokens=1), at=NOW + 30),
        Word(backend="http://b:1", facts=OLD, at=NOW),
    ]


def test_every_fact_of_every_engine_survives_the_database(database: Database) -> None:
    told = {("m", str(n)): {"a": facts} for n, facts in enumerate([OLD, SGLANG_FACTS, LLAMA_CPP_FACTS])}
    turns = record_look(database, told, now=NOW)
    found = read_settlements(database)
    assert [found[key].settled for key in told] == [OLD, SGLANG_FACTS, LLAMA_CPP_FACTS]
    assert {key: turn.after for key, turn in turns.items()} == found
    assert all(turn.before == Settlement() for turn in turns.values())


def test_a_backend_that_the_configuration_no_longer_has_is_forgotten(database: Database) -> None:
    record_look(database, {TIER: {"a": OLD, "b": NEW}, ("m", "other"): {"b": NEW}}, now=NOW)
    assert read_settlements(database)[TIER].unsettled
    turns = record_look(database, {TIER: {"a": OLD}}, now=NOW + 30)
    assert [word.backend for word in read_words(database, *TIER)] == ["a"]
    assert [word.backend for word in read_words(database, "m", "other")] == ["b"]
    assert turns[TIER].after.unsettled == ""


def test_a_tier_of_which_nobody_tells_anything_leaves_no_row(database: Database) -> None:
    record_look(database, {TIER: {"a": None}}, now=NOW)
    assert read_settlements(database) == {}


def test_a_restart_of_the_guard_goes_on_where_it_was(database_url: str) -> None:
    def look(told: dict[str, object], now: float) -> Settlement:
        db = open_database(database_url)
        try:
            return record_look(db, {TIER: told}, now=now)[TIER].after  # type: ignore[dict-item]
        finally:
            db.close()

    look({"a": OLD}, NOW)
    states = [look({"a": NEW}, NOW + 30 * n) for n in range(1, 23)]
    assert [state.settled == NEW for state in states] == [False] * 20 + [True] * 2
    assert states[-1].settled_since == NOW + 30
