"""Looking through the decision log."""

from __future__ import annotations

import pytest

from service.store.decided.decision_search import Wanted, choices, row_at, search
from service.store.decided.decisions import append
from service.store.sql.database import Database


@pytest.fixture
def log(database: Database) -> Database:
    rows = (
        ("approve", "ann", "m", "w8a8"),
        ("token_made", "shell", "", None),
        ("roll_back", "guard", "n", "bf16"),
        ("approve", "bob", "m", "w4a16"),
    )
    for number, (action, actor, model, tier) in enumerate(rows):
        append(database, at=100.0 * number, actor=actor, action=action, model=model, tier=tier)
    return database


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        (Wanted(), [4, 3, 2, 1]),
        (Wanted(model="m"), [4, 1]),
        (Wanted(tier="w8a8"), [1]),
        (Wanted(action="approve", actor="bob"), [4]),
        (Wanted(since=100.0, until=200.0), [3, 2]),
        (Wanted(models=frozenset({"n"})), [3]),
        (Wanted(models=frozenset({"n"}), model="m"), []),
        (Wanted(models=frozenset()), []),
        (Wanted(model="nobody's"), []),
    ],
)
def test_the_latest_rows_that_are_wanted_come_first(log: Database, wanted: Wanted, rows: list[int]) -> None:
    assert [entry.seq for entry in search(log, wanted, limit=10)] == rows


def test_it_goes_on_below_a_row(log: Database) -> None:
    assert [entry.seq for entry in search(log, Wanted(), limit=2)] == [4, 3]
    assert [entry.seq for entry in search(log, Wanted(), below=3, limit=2)] == [2, 1]


def test_what_there_is_to_look_for_is_of_the_models_that_one_may_know(log: Database) -> None:
    assert choices(log).actions == ("approve", "roll_back", "token_made")
    assert choices(log).actors == ("ann", "bob", "guard", "shell")
    assert choices(log, frozenset({"n"})).actors == ("guard",)


def test_a_row_is_found_by_its_number(log: Database) -> None:
    found = row_at(log, 2)
    assert found is not None
    assert found.digest == found.true_digest
    assert row_at(log, 5) is None


def test_somebody_asks_for_less_or_for_all() -> None:
    assert not Wanted(models=frozenset({"m"})).narrows
    assert Wanted(actor="x").narrows
