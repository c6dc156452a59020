"""Four outcomes of one request, read together: what the energy distance of a candidate is computed from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.decision.energy import Repeats, energy_distance
from service.decision.policy import Criterion, Policy
from service.fleet import Backend, Ladder, Tier
from service.store.scored.evidence import Place
from service.store.scored.pairs import record
from service.store.scored.repeats import energies_at
from service.store.scored.units import PairRow, Unit
from service.store.sql.database import Database
from service.store.verdicts.standing import Question, read_standing
from tests.approval.live import QUALITY_ONLY, add_pairs

CANDIDATE = Place("w8a8", "candidate", "epoch of w8a8")
CONTROL = Place("bf16", "control", "epoch of bf16")
POLICY = Policy(criteria=(Criterion(evaluator="structured_output"),), gates=QUALITY_ONLY)
QUESTION = Question(policy=POLICY, epoch_of=lambda model, tier: f"epoch of {tier}")
LADDER = Ladder(
    model="m",
    tiers=tuple(
        Tier(name=name, model="m", backends=(Backend(url="http://127.0.0.1:9"),)) for name in ("bf16", "w8a8")
    ),
)


def unit(number: int, arm: str, told: str, **changes: object) -> Unit:
    """`told`: whether each of its two outcomes passed, as p or f."""
    tier = "bf16" if arm == "control" else "w8a8"
    row = PairRow(outcome="scored", baseline_passed=told[0] == "p", candidate_passed=told[1] == "p")
    made = Unit(
        capture_id=f"capture {number}",
        model="m",
        tier=tier,
        arm=arm,
        evaluator="structured_output",
        version="1",
        epoch=f"epoch of {tier}",
        conversation=f"conversation {number}",
        stratum="short",
        tenant="",
        digest="",
        counted=True,
        rows=(row,),
        at=1_700_000_000.0 + number,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def add(db: Database, number: int, *units: Unit) -> None:
    assert record(db, capture_id=f"capture {number}", owner="nobody", units=units, at=units[0].at)


def energies(db: Database, **more: object) -> dict[str, object]:
    with db.read() as connection:
        return dict(energies_at(connection, "m", [CANDIDATE], CONTROL, **more)[CANDIDATE])  # type: ignore[arg-type]


def test_a_candidate_that_was_not_asked_twice_has_none(database: Database) -> None:
    add(database, 1, unit(1, "candidate", "pf"), unit(1, "control", "pp"))
    assert energies(database) == {}


def test_the_four_outcomes_of_a_request_are_put_together(database: Database) -> None:
    told = [("pp", "ff"), ("pf", "pf"), ("ff", "pp"), ("pp", "pp")]
    for number, (control, repeat) in enumerate(told):
        add(
            database,
            number,
            unit(number, "candidate", control[0] + repeat[0]),
            unit(number, "control", control),
            unit(number, "repeat", repeat),
        )
    failed = {"p": 0.0, "f": 1.0}
    wanted = energy_distance(
        Repeats(
            conversation=str(number),
            baseline=(failed[control[0]], failed[control[1]]),
            candidate=(failed[repeat[0]], failed[repeat[1]]),
        )
        for number, (control, repeat) in enumerate(told)
    )
    found = energies(database)["structured_output"]
    assert found == wanted
    # By hand: the terms are 1, -1/2, 1 and 0.
    assert wanted.value == pytest.approx((1 - 0.5 + 1 + 0) / 4)


def test_what_does_not_count_has_no_control_or_is_of_another_epoch_is_left_out(database: Database) -> None:
    add(database, 1, unit(1, "control", "pp"), unit(1, "repeat", "ff", counted=False))
    add(database, 2, unit(2, "repeat", "ff"))
    add(database, 3, unit(3, "control", "pp"), unit(3, "repeat", "ff", epoch="an older one"))
    add(database, 4, unit(4, "control", "pp", epoch="an older one"), unit(4, "repeat", "ff"))
    lost = PairRow(outcome="unscored", unscored_reason="timeout")
    add(database, 5, unit(5, "control", "pp"), unit(5, "repeat", "ff", rows=(lost,)))
    assert energies(database) == {}
    add(database, 6, unit(6, "control", "pp", version="2"), unit(6, "repeat", "ff", version="2"))
    assert energies(database, present={"structured_output": "1"}) == {}
    assert len(energies(database, present={"structured_output": "2"})) == 1


def test_repeats_are_shown_and_change_no_verdict(database: Database) -> None:
    add_pairs(
        database, "w8a8", epoch="epoch of w8a8", clean=600, harm=1, criteria=("structured_output",), model="m"
    )

    def rung() -> object:
        return read_standing(database, LADDER, QUESTION, now=1_800_000_000.0).rung("w8a8")

    before = rung()
    for number in range(40):
        add(database, number, unit(number, "repeat", "pf"))
    assert rung().verdict == before.verdict  # type: ignore[attr-defined]
    told = [replace(each.evidence, coverage=None) for each in (before, rung())]  # type: ignore[attr-defined]
    assert told[0] == told[1], "apart from the captures that were taken up"
    for number in range(40, 60):
        add(database, number, unit(number, "control", "pp"), unit(number, "repeat", "ff"))
    after = rung()
    assert after.evidence.energy["structured_output"].value == 1  # type: ignore[attr-defined]
    assert after.verdict.decision == before.verdict.decision  # type: ignore[attr-defined]
