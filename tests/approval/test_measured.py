"""Load runs in verdicts: what they showed, when, and whether it still counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from service.decision.evidence import Evidence
from service.decision.money import Arm, money_gate
from service.decision.policy import Asked, Gate
from service.decision.slo import slo_gate
from service.decision.tally import Tally, Triple
from service.store.redis.captures import Captures
from service.store.scored.pairs import PairRow, Unit, record
from service.store.sql.database import Database
from service.store.verdicts.measurements import Measurement, held_to, put_measurement
from tests.approval.live import MODEL, WIDE, LiveApi, live_api
from tests.approval.test_verdicts import VERDICT, strict

MEASURED = replace(WIDE, gates={**WIDE.gates, Gate.SLO: Asked.REQUIRED, Gate.MONEY: Asked.REQUIRED})
DAY = 86_400.0
RATES = (980.0, 1010.0, 995.0, 1005.0, 1000.0, 990.0, 1015.0, 1005.0)


@pytest.fixture
def measured_api(database: Database, captures: Captures) -> Iterator[LiveApi]:
    with live_api(database, captures, policy=MEASURED) as running:
        running.accept("w8a8")
        yield running


def verdict(api: LiveApi) -> Any:
    answer = api.client().get(VERDICT.format("w8a8"))
    assert answer.status_code == 200, answer.text
    return strict(answer.text)


def measure(api: LiveApi, *, misses: int = 2, ratio: float = 1.2, days: float = 0.0) -> None:
    """One load run, written down as a shadow job does, that ended so long ago."""
    evidence = Evidence(model=MODEL, tier="w8a8", epoch="epoch-w8a8")
    at = api.clock() - days * DAY
    held = held_to(api.db, MEASURED, evidence, Gate.SLO, at=at)
    slo = slo_gate(Tally(units={Triple(240, misses, 2): 24}), alpha=held.alpha, terms=held.terms)
    slow, fast = (
        Arm(
            price_per_hour=60,
            tokens_per_second=tuple(times * rate for rate in RATES),
            mean_output_tokens=300,
        )
        for times in (1.0, ratio)
    )
    clean = Tally.of_pairs(n=3000, harm=10, benefit=10)
    money = money_gate(slow, fast, clean, alpha=held.alpha, terms=held.terms)
    for gate, found in ((Gate.SLO, slo), (Gate.MONEY, money)):
        put_measurement(api.db, Measurement.of(found, evidence, gate, at=at, run=held.run))


def test_without_a_load_run_both_gates_are_missing(measured_api: LiveApi) -> None:
    told = verdict(measured_api)
    assert told["decision"] == "undecided"
    assert {"missing_slo", "missing_money"} <= set(told["reasons"])
    assert told["measured"] == {}
    assert told["measured_within_seconds"] == 14 * DAY


def test_a_load_run_that_shows_it_completes_the_acceptance(measured_api: LiveApi) -> None:
    measure(measured_api, days=3)
    told = verdict(measured_api)
    assert told["decision"] == "accept", told["reasons"]
    slo, money = told["measured"]["slo"], told["measured"]["money"]
    assert (slo["shown"], slo["counts"], slo["run"]) == ("passed", True, 1)
    assert slo["age_seconds"] == pytest.approx(3 * DAY)
    assert slo["ended_at"] == "2023-11-11T22:13:20Z"
    assert slo["numbers"]["requests"] == 24 * 240
    assert money["numbers"]["baseline per 1M tokens"] == pytest.approx(60e6 / 3600 / 1000, rel=0.01)
    assert money["numbers"]["net benefit per request, lower"] > 0


def test_what_it_lost_rejects_and_says_when(measured_api: LiveApi) -> None:
    measure(measured_api, misses=14, ratio=0.8, days=2)
    told = verdict(measured_api)
    assert told["decision"] == "reject"
    assert all(reason.endswith("(load run 2 d ago)") for reason in told["reasons"])
    assert {reason.partition(":")[0] for reason in told["reasons"]} == {"slo", "money"}


def test_a_load_run_that_is_too_old_counts_as_none(measured_api: LiveApi) -> None:
    measure(measured_api, misses=14, days=15)
    told = verdict(measured_api)
    assert told["decision"] == "undecided"
    old = "missing_slo: the last load run ended 15 d ago, and after 14 d it counts as none"
    assert old in told["reasons"]
    assert (told["measured"]["slo"]["shown"], told["measured"]["slo"]["counts"]) == ("failed", False)


def test_the_second_run_says_that_it_is(measured_api: LiveApi) -> None:
    measure(measured_api, days=7)
    measure(measured_api, days=1)
    slo = verdict(measured_api)["measured"]["slo"]
    assert slo["run"] == 2
    assert slo["age_seconds"] == pytest.approx(DAY)
    answer = measured_api.client().get(VERDICT.format("w8a8") + "/why")
    steps = {step["title"]: step for step in strict(answer.text)["steps"]}
    assert "ended 24 h ago" in steps["slo: load run"]["sentence"] or "1 d ago" in str(steps["slo: load run"])
    assert "It is run 2 of this epoch" in steps["slo: load run"]["sentence"]
    assert steps["slo: load run"]["numbers"]["alpha"] == pytest.approx(slo["numbers"]["alpha"])
    assert steps["money: load run"]["numbers"]["k: failure in baseline requests"] == 4


def test_the_noise_of_the_control_is_told(measured_api: LiveApi) -> None:
    measured_api.record("bf16", harm=1, benefit=1, clean=98, arm="control")
    measured_api.record("w8a8", harm=4, benefit=4, clean=52, stratum="2k-8k/free/whole")
    told = verdict(measured_api)
    noise = told["findings"][0]["noise"]
    assert (noise["control"], noise["candidate"]) == (pytest.approx(0.02), pytest.approx(0.08))
    assert (noise["share"], noise["energy_at_most"]) == (pytest.approx(0.25), pytest.approx(0.07))
    assert noise["energy"] is None
    answer = measured_api.client().get(VERDICT.format("w8a8") + "/why")
    steps = {step["title"]: step for step in strict(answer.text)["steps"]}
    assert "differs from itself in 2.00% of 100 pairs" in steps["structured_output: noise"]["sentence"]


def test_the_energy_distance_is_told_where_candidates_are_asked_twice(measured_api: LiveApi) -> None:
    measured_api.record("w8a8", harm=4, benefit=4, clean=52)
    for number in range(10):
        row = PairRow(outcome="scored", baseline_passed=number > 1, candidate_passed=number > 1)
        whole = PairRow(outcome="scored", baseline_passed=True, candidate_passed=True)
        units = [
            Unit(
                capture_id=f"twice {number}",
                model=MODEL,
                tier=tier,
                arm=arm,
                evaluator="structured_output",
                version="1",
                epoch=f"epoch-{tier}",
                conversation=f"twice {number}",
                stratum="short",
                tenant="",
                digest="",
                counted=True,
                rows=(each,),
                at=1_700_000_000.0,
            )
            for tier, arm, each in (("bf16", "control", whole), ("w8a8", "repeat", row))
        ]
        record(measured_api.db, capture_id=f"twice {number}", owner="nobody", units=units, at=1_700_000_000.0)
    told = {each["criterion"]: each["noise"] for each in verdict(measured_api)["findings"]}
    energy = told["structured_output"]["energy"]
    assert (energy["requests"], energy["conversations"]) == (10, 10)
    assert (energy["value"], energy["psi_between"]) == (pytest.approx(0.2), pytest.approx(0.2))
    assert (energy["psi_control"], energy["psi_candidate"]) == (0, 0)
    assert 0 < energy["p_value"] < 0.5
    answer = measured_api.client().get(VERDICT.format("w8a8") + "/why")
    steps = {step["title"]: step for step in strict(answer.text)["steps"]}
    assert steps["structured_output: noise"]["numbers"]["energy distance"] == pytest.approx(0.2)


def test_without_a_control_there_is_no_noise(measured_api: LiveApi) -> None:
    assert verdict(measured_api)["findings"][0]["noise"] is None
