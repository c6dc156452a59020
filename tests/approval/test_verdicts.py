"""Verdict and evidence over HTTP: exact fields, finite numbers, the ladder's order."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from service.decision.evidence import Attribution
from service.decision.policy import Criterion, Policy
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import ENOUGH, LiveApi, live_api

VERDICT = "/api/v1/models/org/model/tiers/{}/verdict"
EVIDENCE = "/api/v1/models/org/model/tiers/{}/evidence"


def strict(text: str) -> Any:
    """JSON as strict parsers take it: no NaN, no Infinity."""

    def refuse(literal: str) -> Any:
        raise AssertionError(f"{literal} in JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_verdict_has_exactly_the_promised_fields(api: LiveApi) -> None:
    api.record("w8a8", harm=1, benefit=2, clean=30)
    answer = api.client().get(VERDICT.format("w8a8"))
    assert answer.status_code == 200
    verdict = strict(answer.text)
    assert set(verdict) >= {
        "model",
        "tier",
        "decision",
        "reasons",
        "findings",
        "gates",
        "epoch",
        "attempt",
        "alpha",
        "policy",
        "evaluated_at",
        "thresholds",
        "age_seconds",
        "not_shown",
        "baseline_after_approval",
        "measured",
        "measured_within_seconds",
    }
    finding = verdict["findings"][0]
    assert set(finding) == {
        "criterion",
        "decision",
        "reason",
        "n",
        "conversations",
        "harm",
        "benefit",
        "estimate",
        "interval",
        "margin",
        "log_e",
        "warn",
        "more_pairs",
        "role",
        "not_shown",
        "max_pairs",
        "worst_strata",
        "log_e_holm",
        "noise",
        "correction",
    }
    assert set(finding["interval"]) == {"lower", "upper", "level", "method"}
    assert set(finding["log_e"]) == {"noninferiority", "harm", "warn"}
    assert (verdict["model"], verdict["tier"], verdict["epoch"]) == ("org/model", "w8a8", "epoch-w8a8")
    counts = finding["n"], finding["conversations"], finding["harm"], finding["benefit"]
    assert counts == (33, 33, 1, 2)
    assert finding["estimate"] == pytest.approx((1 - 2) / 33)
    assert finding["interval"]["lower"] < finding["estimate"] < finding["interval"]["upper"]
    assert set(verdict["gates"]) == {"quality", "control", "coverage", "attribution", "slo", "money"}


def test_without_a_pair_it_is_undecided_with_no_estimate(api: LiveApi) -> None:
    verdict = strict(api.client().get(VERDICT.format("w8a8")).text)
    assert verdict["decision"] == "undecided"
    assert verdict["findings"][0]["estimate"] is None
    assert verdict["findings"][0]["more_pairs"] > 0
    assert verdict["reasons"]


def test_enough_clean_pairs_accept_and_name_what_was_not_asked(api: LiveApi) -> None:
    api.accept("w8a8")
    verdict = strict(api.client().get(VERDICT.format("w8a8")).text)
    assert verdict["decision"] == "accept"
    assert verdict["gates"] == {
        "quality": "passed",
        "control": "not_asked",
        "coverage": "not_asked",
        "attribution": "not_asked",
        "slo": "not_asked",
        "money": "not_asked",
    }
    assert verdict["policy"]["gates"]["slo"] == "off"


def test_beside_a_wide_policy_stands_what_production_would_still_need(api: LiveApi) -> None:
    api.accept("w8a8")
    production = strict(api.client().get(VERDICT.format("w8a8")).text)["production"]
    assert production["in_force"] is False
    assert production["decision"] == "undecided"
    assert production["gates"]["slo"] == "missing"
    criterion = production["criteria"][0]
    assert (criterion["margin"], criterion["min_pairs"]) == (0.01, 300)
    assert criterion["more_pairs"] > 300 - ENOUGH


def test_production_s_own_policy_is_in_force_and_misses_slo_and_money(
    sqlite_database: Database, captures: Captures
) -> None:
    policy = Policy(criteria=(Criterion(evaluator="refusal"),))
    with live_api(sqlite_database, captures, policy=policy) as api:
        verdict = strict(api.client().get(VERDICT.format("w8a8")).text)
    assert verdict["production"]["in_force"] is True
    assert {"missing_slo", "missing_money"} <= set(verdict["reasons"])
    assert verdict["gates"]["slo"] == verdict["gates"]["control"] == "missing"


def test_harm_on_one_criterion_rejects_for_that_criterion(api: LiveApi) -> None:
    api.record("w8a8", clean=ENOUGH, criteria=("refusal",))
    api.record("w8a8", harm=30, criteria=("structured_output",))
    verdict = strict(api.client().get(VERDICT.format("w8a8")).text)
    decisions = {finding["criterion"]: finding["decision"] for finding in verdict["findings"]}
    assert verdict["decision"] == "reject"
    assert decisions == {"structured_output": "reject", "refusal": "accept"}
    assert any("structured_output" in reason for reason in verdict["reasons"])


def test_a_tier_is_not_accepted_before_the_rung_below_it(api: LiveApi) -> None:
    api.accept("w4a16")
    client = api.client()
    waiting = strict(client.get(VERDICT.format("w4a16")).text)
    assert waiting["decision"] == "undecided"
    assert "rung_below_not_accepted" in waiting["reasons"]
    api.accept("w8a8")
    assert strict(client.get(VERDICT.format("w4a16")).text)["decision"] == "accept"


def test_evidence_of_another_epoch_does_not_count(sqlite_api: LiveApi) -> None:
    from tests.approval.live import add_pairs

    add_pairs(sqlite_api.db, "w8a8", clean=ENOUGH, epoch="an older recipe")
    verdict = strict(sqlite_api.client().get(VERDICT.format("w8a8")).text)
    assert verdict["findings"][0]["n"] == 0


def test_evidence_shows_tallies_control_and_the_pairs_whose_arms_differ(api: LiveApi) -> None:
    api.record("w8a8", harm=2, benefit=1, clean=4)
    api.record("bf16", clean=3, arm="control")
    evidence = strict(api.client().get(EVIDENCE.format("w8a8"), params={"pairs": 50}).text)
    tally = {tally["evaluator"]: tally for tally in evidence["tallies"]}["refusal"]
    assert (tally["n"], tally["harm"], tally["benefit"], tally["due"]) == (7, 2, 1, 7)
    assert (tally["baseline_failures"], tally["candidate_failures"]) == (1, 2)
    assert {control["evaluator"]: control["n"] for control in evidence["control"]} == {
        "refusal": 3,
        "structured_output": 3,
    }
    assert len(evidence["pairs"]) == 3 * 2
    assert all(pair["baseline_passed"] != pair["candidate_passed"] for pair in evidence["pairs"])
    assert evidence["coverage"]["evidence"]["short"] == 7


def test_a_verdict_says_what_its_numbers_are_held_to(api: LiveApi) -> None:
    api.accept("w8a8")
    verdict = strict(api.client().get(VERDICT.format("w8a8")).text)
    thresholds = verdict["thresholds"]
    assert thresholds["accept"] == pytest.approx(-math.log(verdict["alpha"]))
    assert thresholds["harm"] == pytest.approx(math.log(2 * 2 / 0.05))  # criteria x tiers under test
    assert thresholds["strata"] == pytest.approx(
        math.log(2 * 2 * thresholds["strata_under_test"] / verdict["policy"]["alpha_strata"])
    )
    assert verdict["age_seconds"] >= 0
    finding = verdict["findings"][0]
    assert (finding["role"], finding["not_shown"]) == ("decisive", False)
    assert finding["max_pairs"] >= finding["n"]
    assert verdict["policy"]["units"] == "first_sampled"
    assert {each["role"] for each in verdict["policy"]["criteria"]} == {"decisive"}


def test_harm_in_one_stratum_rejects_and_the_stratum_is_named_first(api: LiveApi) -> None:
    long, short = "32k-128k/free/whole", "under-2k/free/whole"
    api.record("w8a8", clean=150, stratum=short)
    api.record("w8a8", harm=40, clean=2, stratum=long)
    verdict = strict(api.client().get(VERDICT.format("w8a8")).text)
    assert verdict["decision"] == "reject"
    assert any(f"in stratum {long}" in reason for reason in verdict["reasons"])
    worst = verdict["findings"][0]["worst_strata"][0]
    assert (worst["stratum"], worst["n"], worst["harm"]) == (long, 42, 40)
    assert worst["log_e_harm"] >= verdict["thresholds"]["strata"]
    strata = strict(api.client().get(EVIDENCE.format("w8a8")).text)["strata"]
    crossed = [each for each in strata if "=" not in each["stratum"] and each["evaluator"] == "refusal"]
    assert [each["stratum"] for each in crossed] == [long, short]
    assert crossed[0]["log_e_harm"] == pytest.approx(verdict["findings"][1]["worst_strata"][0]["log_e_harm"])
    assert crossed[1]["log_e_harm"] is None


def test_the_tenant_on_whom_an_acceptance_rests_comes_first(api: LiveApi) -> None:
    api.record("w8a8", clean=ENOUGH, tenant="large")
    api.record("w8a8", clean=5, tenant="small")
    tenants = strict(api.client().get(EVIDENCE.format("w8a8")).text)["tenants"]
    of_one = [each for each in tenants if each["evaluator"] == "structured_output"]
    assert [(each["tenant"], each["n"]) for each in of_one] == [("large", ENOUGH), ("small", 5)]
    assert [each["passes_without"] for each in of_one] == [False, True]
    assert of_one[0]["share"] == pytest.approx(ENOUGH / (ENOUGH + 5))


def test_what_the_engines_tell_is_in_the_evidence(sqlite_database: Database, captures: Captures) -> None:
    differs = Attribution(differences=("engine version: 0.9 and 0.10",), not_told=("chat template",))
    with live_api(sqlite_database, captures, attribution_of=lambda model, tier: differs) as api:
        told = strict(api.client().get(EVIDENCE.format("w8a8")).text)["attribution"]
    assert told == {
        "differences": ["engine version: 0.9 and 0.10"],
        "unsettled": None,
        "not_told": ["chat template"],
    }


def test_all_pairs_or_none_can_be_asked_for(sqlite_api: LiveApi) -> None:
    sqlite_api.record("w8a8", harm=1, clean=4)
    client = sqlite_api.client()
    everything = client.get(EVIDENCE.format("w8a8"), params={"discordant": "false", "pairs": 200}).json()
    nothing = client.get(EVIDENCE.format("w8a8"), params={"pairs": 0}).json()
    assert (len(everything["pairs"]), len(nothing["pairs"])) == (10, 0)


@pytest.mark.parametrize("pairs", ["-1", "201", "many", "1e3", "", "9" * 400])
def test_a_senseless_number_of_pairs_is_refused(sqlite_api: LiveApi, pairs: str) -> None:
    answer = sqlite_api.client().get(EVIDENCE.format("w8a8"), params={"pairs": pairs})
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_request"


def test_without_capacity_for_a_control_the_evidence_says_so(
    sqlite_database: Database, captures: Captures
) -> None:
    from tests.approval.live import Upstream, ladder_over

    upstream = Upstream()
    try:
        with live_api(sqlite_database, captures, ladder=ladder_over(upstream, shadow=False)) as api:
            assert api.client().get(EVIDENCE.format("w8a8")).json()["control"] is None
    finally:
        upstream.stop()


def test_the_baseline_has_no_verdict(sqlite_api: LiveApi) -> None:
    answer = sqlite_api.client().get(VERDICT.format("bf16"))
    assert answer.status_code == 409
    assert answer.json()["code"] == "baseline"
    assert "w8a8, w4a16" in answer.json()["hint"]
