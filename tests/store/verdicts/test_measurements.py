from __future__ import annotations

from typing import Any

import pytest

from service.decision.evidence import Evidence, Measured, Shown
from service.decision.policy import Criterion, Gate, Policy
from service.decision.slo import slo_gate
from service.decision.tally import Tally, Triple
from service.decision.terms import Terms
from service.decision.thresholds import run_alpha, thresholds
from service.store.sql.database import Database
from service.store.verdicts.measurements import (
    Measurement,
    held_to,
    latest_measurement,
    put_measurement,
)


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
    assert found.measured(now=350.0) == Measured(
        shown=Shown.UNDECIDED,
        reason="SLO pass rate 0.97 against 0.96",
        numbers={"pass_rate": 0.97, "requests": 4000},
        age_seconds=50.0,
    )


def test_the_jth_run_of_an_epoch_is_held_to_alpha_j(database: Database) -> None:
    policy = Policy(criteria=(Criterion(evaluator="refusal"),), load_runs=Terms(slo_margin=0.02))
    evidence = Evidence(model="m", tier="w8a8", epoch="e1", attempt=2)
    limits = thresholds(policy, tiers=1, attempt=2)
    blocks = Tally(units={Triple(240, 2, 2): 24})
    for run, at in ((1, 100.0), (2, 200.0)):
        held = held_to(database, policy, evidence, Gate.SLO, at=at)
        assert (held.run, held.alpha, held.terms) == (run, run_alpha(limits, run), policy.load_runs)
        shown = slo_gate(blocks, alpha=held.alpha, terms=held.terms)
        put_measurement(database, Measurement.of(shown, evidence, Gate.SLO, at=at, run=held.run))
    found = latest(database)
    assert found is not None
    assert (found.run, found.shown, found.numbers["margin"]) == (2, Shown.PASSED, 0.02)


def test_a_run_that_is_looked_at_again_keeps_its_number(database: Database) -> None:
    """A worker that died after it had written it down asks again."""
    policy, evidence = (
        Policy(criteria=(Criterion(evaluator="refusal"),)),
        Evidence(model="m", tier="w8a8", epoch="e1"),
    )
    put_measurement(database, measurement(at=100.0, run=1))
    put_measurement(database, measurement(at=200.0, run=2))
    assert held_to(database, policy, evidence, Gate.SLO, at=200.0).run == 2
    assert held_to(database, policy, evidence, Gate.SLO, at=300.0).run == 3


def test_runs_of_another_gate_or_epoch_and_those_that_were_never_made_spend_nothing(
    database: Database,
) -> None:
    policy, evidence = (
        Policy(criteria=(Criterion(evaluator="refusal"),)),
        Evidence(model="m", tier="w8a8", epoch="e1"),
    )
    put_measurement(database, measurement(at=1.0, run=None))
    put_measurement(database, measurement(at=2.0, run=1, gate=Gate.MONEY))
    put_measurement(database, measurement(at=3.0, run=1, epoch="e2"))
    put_measurement(database, measurement(at=4.0, run=1, tier="w4a16"))
    assert held_to(database, policy, evidence, Gate.SLO, at=9.0).run == 1


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
        ({"run": 0}, "runs count from 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        measurement(**changes)


@pytest.mark.parametrize("numbers", [{"rate": float("nan")}, {"rate": object()}])
def test_numbers_that_are_not_json_are_refused(numbers: dict[str, Any], sqlite_url: str) -> None:
    from service.store.sql.database import open_database

    database = open_database(sqlite_url)
    try:
        with pytest.raises(ValueError, match="JSON"):
            put_measurement(database, measurement(numbers=numbers))
    finally:
        database.close()
