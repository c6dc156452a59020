"""What a verdict is read from, and that a whole ladder is read at one moment in few questions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from sqlalchemy import Engine, event

from service.decision.evidence import Attribution
from service.decision.policy import Criterion, Policy, Role
from service.decision.tally import Triple
from service.decision.verdict import Decision
from service.fleet import Backend, Ladder, Tier
from service.store.scored.breakdown import read_strata
from service.store.scored.counting import Counts, Part
from service.store.scored.pairs import add_counts
from service.store.scored.recount import recount
from service.store.sql.database import Database
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Question, read_standing
from service.strata import UNIVERSE
from tests.approval.live import QUALITY_ONLY, add_pairs

NOW = 1_800_000_000.0
LADDER = Ladder(
    model="m",
    tiers=tuple(
        Tier(name=name, model="m", backends=(Backend(url="http://127.0.0.1:9"),))
        for name in ("bf16", "w8a8", "w4a16")
    ),
)
POLICY = Policy(criteria=(Criterion(evaluator="structured_output"),), gates=QUALITY_ONLY)
QUESTION = Question(policy=POLICY, epoch_of=lambda model, tier: f"epoch of {tier}")


@pytest.fixture
def count(database: Database) -> Callable[..., None]:
    """Count so many independent pairs of one tier in one stratum."""

    def add(stratum: str, *, clean: int = 0, harm: int = 0, benefit: int = 0, tenant: str = "") -> None:
        counts = Counts()
        place = ("m", "w8a8", "candidate", "epoch of w8a8", "structured_output", "1")
        for worse, better, times in ((1, 0, harm), (0, 1, benefit), (0, 0, clean)):
            part = Part(*place, (stratum,), tenant, 1, worse, better, 0)
            counts.add_conversation([part], times)
        with database.write() as connection:
            add_counts(database, connection, counts)

    return add


def rung(database: Database, question: Question = QUESTION, now: float = NOW) -> Rung:
    return read_standing(database, LADDER, question, now=now).rung("w8a8")


def test_a_tier_that_is_fine_on_average_and_breaks_on_long_contexts_is_rejected(
    database: Database, count: Callable[..., None]
) -> None:
    count("under-2k/free/whole", clean=6000, harm=10, benefit=10)
    found = rung(database)
    assert found.verdict is not None
    assert found.verdict.decision is Decision.ACCEPT
    count("32k-128k/free/whole", clean=170, harm=30)
    found = rung(database)
    assert found.verdict is not None
    (finding,) = found.verdict.findings
    assert finding.estimate is not None
    assert finding.estimate < 0.005  # half the margin
    assert found.verdict.decision is Decision.REJECT
    assert "32k-128k/free/whole" in finding.reason


def test_only_strata_that_could_show_harm_are_evidence_of_it(
    database: Database, count: Callable[..., None]
) -> None:
    count("under-2k/free/whole", clean=500)
    count("32k-128k/free/whole", clean=40, harm=10)
    count("a stratum of another version", harm=50)
    evidence = rung(database).evidence
    assert evidence is not None
    assert list(evidence.strata["structured_output"]) == ["32k-128k/free/whole"]
    assert evidence.strata_under_test == len(UNIVERSE)


def test_tenants_are_read_where_the_policy_caps_them(database: Database, count: Callable[..., None]) -> None:
    count("under-2k/free/whole", clean=3, tenant="a")
    count("under-2k/free/whole", clean=1, tenant="b")
    without = rung(database).evidence
    assert without is not None
    assert not without.tenants
    capped = dataclasses.replace(QUESTION, policy=dataclasses.replace(POLICY, tenant_share_cap=0.5))
    evidence = rung(database, capped).evidence
    assert evidence is not None
    tenants = evidence.tenants["structured_output"]
    assert {name: tally.n for name, tally in tenants.items()} == {"a": 3, "b": 1}


def test_the_end_and_the_age_of_an_epoch_are_evidence(database: Database) -> None:
    policy = dataclasses.replace(
        POLICY, criteria=(Criterion(evaluator="structured_output", min_pairs=3),), longest_seconds=500.0
    )
    question = dataclasses.replace(QUESTION, policy=policy)
    before = rung(database, question).evidence
    assert before is not None
    assert (dict(before.max_pairs), before.age_seconds) == ({}, None)
    add_pairs(database, "w8a8", epoch="epoch of w8a8", model="m", clean=3, criteria=["structured_output"])
    first = rung(database, question).evidence
    assert first is not None
    assert first.age_seconds is not None
    planned = dict(first.max_pairs)
    assert planned["structured_output"] > 300
    add_pairs(database, "w8a8", epoch="epoch of w8a8", model="m", harm=5, criteria=["structured_output"])
    later = rung(database, question, now=NOW + 100).evidence
    assert later is not None
    assert dict(later.max_pairs) == planned
    assert later.age_seconds == pytest.approx(first.age_seconds + 100)


def test_the_engines_are_asked_about_each_candidate(database: Database) -> None:
    told = {"w8a8": Attribution(differences=("it differs",)), "w4a16": None}
    question = dataclasses.replace(QUESTION, attribution_of=lambda model, tier: told[tier])
    found = read_standing(database, LADDER, question, now=NOW).rungs
    assert [each.evidence.attribution for each in found if each.evidence] == list(told.values())


def test_a_longer_ladder_takes_no_more_questions(database: Database, count: Callable[..., None]) -> None:
    count("under-2k/free/whole", clean=400)

    def asked(*names: str) -> int:
        statements: list[str] = []

        def listen(connection: object, cursor: object, statement: str, *more: object) -> None:
            statements.append(statement)

        tiers = tuple(
            Tier(name=name, model="m", backends=(Backend(url="http://127.0.0.1:9"),)) for name in names
        )
        ladder = Ladder(model="m", tiers=tiers)
        read_standing(database, ladder, QUESTION, now=NOW)  # numbers the epochs
        event.listen(Engine, "before_cursor_execute", listen)
        try:
            read_standing(database, ladder, QUESTION, now=NOW)
        finally:
            event.remove(Engine, "before_cursor_execute", listen)
        return len(statements)

    assert asked("bf16", "w8a8") == asked("bf16", "w8a8", "w4a16", "w4a16-fp8kv")


def test_what_was_counted_here_are_triples_of_one_pair(
    database: Database, count: Callable[..., None]
) -> None:
    count("under-2k/free/whole", clean=2, harm=1)
    evidence = rung(database).evidence
    assert evidence is not None
    assert evidence.tallies["structured_output"].units == {Triple(1, 0, 0): 2, Triple(1, 1, 0): 1}
    assert not recount(database).equal  # no pair says so


def test_of_a_criterion_that_is_only_shown_the_present_version_alone_is_read(database: Database) -> None:
    """Its version is in no epoch, so two of them can be in one."""
    criteria = (*POLICY.criteria, Criterion(evaluator="loops", role=Role.SHOWN))
    policy = dataclasses.replace(POLICY, criteria=criteria, tenant_share_cap=0.5)
    counts = Counts()
    for evaluator in ("loops", "structured_output"):
        for version, harm in (("1", 40), ("2", 30)):
            place = ("m", "w8a8", "candidate", "epoch of w8a8", evaluator, version)
            part = Part(*place, ("32k-128k/free/whole",), "t", 1, 1, 0, 0)
            counts.add_conversation([part], harm)
    with database.write() as connection:
        add_counts(database, connection, counts)
    versions = {"loops": "2", "structured_output": "2"}
    question = dataclasses.replace(QUESTION, policy=policy, versions=versions)
    evidence = rung(database, question).evidence
    assert evidence is not None
    assert {name: tally.n for name, tally in evidence.tallies.items()} == {
        "loops": 30,
        "structured_output": 70,  # decisive: its version is in the epoch, so there is but one
    }
    assert {name: [tally.n for tally in strata.values()] for name, strata in evidence.strata.items()} == {
        "loops": [30],
        "structured_output": [70],
    }
    assert evidence.tenants["loops"]["t"].n == 30
    strata = read_strata(database, "m", "w8a8", "epoch of w8a8", present=question.present)
    assert [(each.evaluator, each.sums.units) for each in strata] == [
        ("loops", 30),
        ("structured_output", 70),
    ]
