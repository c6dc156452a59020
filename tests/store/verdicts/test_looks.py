"""Looks that are kept: as many as tell how the limits narrowed, whoever looks how often."""

from __future__ import annotations

import math
from typing import Any

from service.decision.policy import Gate
from service.decision.verdict import Decision, Finding, GateState, Interval, LogE, Verdict
from service.store.sql.database import Database
from service.store.verdicts.looks import GROWTH, LookTaken, keep_looks, read_looks

NOW = 1_800_000_000.0


def finding(n: int, decision: Decision = Decision.UNDECIDED, **changes: Any) -> Finding:
    half = 1 / math.sqrt(n) if n else 1.0
    told: dict[str, Any] = {
        "criterion": "structured_output",
        "decision": decision,
        "reason": "not yet shown within the margin of 0.01: e-value 3 < 20",
        "n": n,
        "conversations": n,
        "harm": n // 100,
        "benefit": 0,
        "estimate": (n // 100) / n if n else None,
        "interval": Interval(lower=-half, upper=half, level=0.9, method="confidence sequence"),
        "margin": 0.01,
        "log_e": LogE(noninferiority=0.0, harm=0.0, warn=0.0),
        "warn": False,
        "more_pairs": None,
    }
    return Finding(**{**told, **changes})


def verdict(*findings: Finding, **changes: Any) -> Verdict:
    told: dict[str, Any] = {
        "model": "m",
        "tier": "w8a8",
        "decision": Decision.UNDECIDED,
        "reasons": (),
        "findings": findings,
        "gates": dict.fromkeys(Gate, GateState.NOT_ASKED),
        "epoch": "e1",
    }
    return Verdict(**{**told, **changes})


def kept(db: Database, criterion: str = "structured_output", **place: str) -> list[LookTaken]:
    where = {"model": "m", "tier": "w8a8", "epoch": "e1"} | place
    return [look for look in read_looks(db, **where) if look.criterion == criterion]


def test_a_look_is_kept_with_every_number_it_found(database: Database) -> None:
    assert keep_looks(database, [verdict(finding(400, Decision.ACCEPT))], at=NOW) == 1
    assert kept(database) == [
        LookTaken(
            criterion="structured_output",
            at=NOW,
            pairs=400,
            conversations=400,
            harm=4,
            benefit=0,
            estimate=0.01,
            lower=-0.05,
            upper=0.05,
            level=0.9,
            margin=0.01,
            decision=Decision.ACCEPT,
        )
    ]


def test_a_criterion_without_pairs_has_nothing_to_keep(database: Database) -> None:
    assert keep_looks(database, [verdict(finding(0))], at=NOW) == 0
    assert keep_looks(database, [], at=NOW) == 0
    assert kept(database) == []


def test_looks_at_the_same_pairs_are_kept_once(database: Database) -> None:
    for minute in range(3):
        keep_looks(database, [verdict(finding(400))], at=NOW + 60 * minute)
    assert [look.at for look in kept(database)] == [NOW]


def test_one_is_kept_again_when_the_pairs_have_grown_by_a_twentieth(database: Database) -> None:
    for n in (400, 419, 420, 440, 441):
        keep_looks(database, [verdict(finding(n))], at=NOW + n)
    assert [look.pairs for look in kept(database)] == [400, 420, 441]


def test_another_decision_is_kept_sooner(database: Database) -> None:
    keep_looks(database, [verdict(finding(400))], at=NOW)
    keep_looks(database, [verdict(finding(403, Decision.ACCEPT))], at=NOW + 60)
    keep_looks(database, [verdict(finding(404, Decision.ACCEPT))], at=NOW + 120)
    assert [(look.pairs, look.decision) for look in kept(database)] == [
        (400, Decision.UNDECIDED),
        (404, Decision.ACCEPT),
    ]


def test_pairs_that_were_taken_off_again_are_no_look_of_their_own(database: Database) -> None:
    """What overtook a replay does not count until that is done: for a while there are fewer pairs."""
    keep_looks(database, [verdict(finding(400))], at=NOW)
    keep_looks(database, [verdict(finding(300))], at=NOW + 60)
    assert [look.pairs for look in kept(database)] == [400]


def test_a_million_pairs_leave_a_few_hundred_looks() -> None:
    """By the rule alone: that many looks by hand would take an hour."""
    n, many = 1, 0
    while n <= 1_000_000:
        many, n = many + 1, max(n + 1, math.ceil(GROWTH * n))
    assert many < 300


def test_tiers_epochs_and_criteria_are_kept_apart(database: Database) -> None:
    refusal = finding(50, criterion="refusal")
    told = [
        verdict(finding(100), refusal),
        verdict(finding(200), tier="w4a16"),
        verdict(finding(300), epoch="e2"),
        verdict(finding(400), model="another"),
    ]
    assert keep_looks(database, told, at=NOW) == 5
    assert [look.pairs for look in kept(database)] == [100]
    assert [look.pairs for look in kept(database, "refusal")] == [50]
    assert [look.pairs for look in kept(database, tier="w4a16")] == [200]
    assert [look.pairs for look in kept(database, epoch="e2")] == [300]
    assert [look.pairs for look in kept(database, model="another")] == [400]
