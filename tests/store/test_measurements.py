from __future__ import annotations

from typing import Any

import pytest

from service.decision.evidence import Measured, Shown
from service.decision.policy import Gate
from service.store.database import Database
from service.store.measurements import Measurement, latest_measurement, put_measurement


def measurement(**changes: Any) -> Measurement:
    fields: dict[str, Any] = {
        "model": "m",
        "tier": "w8a8",
        "gate": Gate.SLO,
        "epoch": "e1",
        "at": 100.0,
        "shown": Shown.PASSED,
        "reason": "SLO pass rate 0.97 against 0.96",
        "numbers": {"pass_rate": 0.97, "requests": 4000},
    }
    return Measurement(**{**fields, **changes})


def latest(db: Database, *, since: float = 0.0, gate: Gate = Gate.SLO, **place: str) -> Measurement | None:
    where = {"model": "m", "tier": "w8a8", "epoch": "e1", **place}
    return latest_measurement(db, where["model"], where["tier"], gate, where["epoch"], since=since)


def test_the_latest_counts(database: Database) -> None:
    put_measurement(database, measurement(at=200.0, shown=Shown.FAILED))
    put_measurement(database, measurement(at=100.0))
    assert latest(database) == measurement(at=200.0, shown=Shown.FAILED)
    put_measurement(database, measurement(at=300.0, shown=Shown.UNDECIDED))
    found = latest(database)
    assert found is not None
    assert found.measured == Measured(shown=Shown.UNDECIDED, reason="SLO pass rate 0.97 against 0.96")


def test_one_of_the_same_moment_is_replaced(database: Database) -> None:
    put_measurement(database, measurement())
    put_measurement(database, measurement(shown=Shown.FAILED, numbers={}))
    assert latest(database) == measurement(shown=Shown.FAILED, numbers={})


def test_what_is_too_old_counts_as_none(database: Database) -> None:
    put_measurement(database, measurement(at=100.0))
    assert latest(database, since=100.0) is not None
    assert latest(database, since=100.5) is None


@pytest.mark.parametrize("other", [{"model": "n"}, {"tier": "w4a16"}, {"epoch": "e2"}, {"gate": Gate.MONEY}])
def test_it_is_of_one_tier_epoch_and_gate(other: dict[str, Any], database: Database) -> None:
    put_measurement(database, measurement(**other))
    assert latest(database) is None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"gate": Gate.QUALITY}, "load runs measure slo and money, not quality"),
        ({"reason": ""}, "needs a reason"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        measurement(**changes)


@pytest.mark.parametrize("numbers", [{"rate": float("nan")}, {"rate": object()}])
def test_numbers_that_are_not_json_are_refused(numbers: dict[str, Any], sqlite_url: str) -> None:
    from service.store.database import open_database

    database = open_database(sqlite_url)
    try:
        with pytest.raises(ValueError, match="JSON"):
            put_measurement(database, measurement(numbers=numbers))
    finally:
        database.close()
