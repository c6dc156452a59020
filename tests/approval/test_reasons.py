"""`GET .../verdict/why`: the whole chain, the worst pairs, and commands that give the same numbers again."""

from __future__ import annotations

import json
import math
import shlex
from typing import Any

import pytest
from typer.testing import CliRunner

from service.cli import app
from tests.approval.live import LiveApi
from tests.approval.test_verdicts import strict

WHY = "/api/v1/models/org/model/tiers/{}/verdict/why"


def why(api: LiveApi, tier: str = "w8a8", **asked: Any) -> Any:
    answer = api.client().get(WHY.format(tier), params=asked)
    assert answer.status_code == 200, answer.text
    return strict(answer.text)


def test_the_steps_lead_from_counts_to_the_decision(api: LiveApi) -> None:
    api.record("w8a8", harm=1, benefit=2, clean=30)
    told = why(api)
    titles = [step["title"] for step in told["steps"]]
    assert titles[:3] == ["evidence", "thresholds", "structured_output: counts"]
    assert titles[-1] == "decision"
    steps = {step["title"]: step for step in told["steps"]}
    assert steps["structured_output: counts"]["numbers"]["pairs n"] == 33
    assert "33 counted pairs" in steps["structured_output: counts"]["sentence"]
    assert steps["decision"]["sentence"].startswith(told["decision"])
    assert set(told) == {
        "model",
        "tier",
        "decision",
        "epoch",
        "attempt",
        "policy_digest",
        "steps",
        "worst_pairs",
        "recompute",
        "evaluated_at",
    }


def test_the_worst_pairs_have_labels_and_reasons_and_no_prompt(api: LiveApi) -> None:
    api.record("w8a8", harm=3, clean=20, stratum="under-2k/free/whole")
    api.record("w8a8", harm=6, benefit=2, clean=3, stratum="32k-128k/free/whole")
    worst = {each["criterion"]: each for each in why(api, pairs=4)["worst_pairs"]}
    structured, refusal = worst["structured_output"], worst["refusal"]
    assert structured["pairs"] == 9
    assert refusal["pairs"] == 11, "equivalence: what only the baseline failed speaks against it as well"
    assert structured["labels"] == [{"baseline": "ok", "candidate": "not_json", "pairs": 9}]
    assert structured["strata"] == [
        {"stratum": "32k-128k/free/whole", "pairs": 6},
        {"stratum": "under-2k/free/whole", "pairs": 3},
    ]
    assert [each["stratum"][:3] for each in structured["examples"]] == ["32k", "32k", "und", "und"]
    assert {each["candidate_reason"] for each in structured["examples"]} == {"expected JSON, found prose"}


def test_its_commands_give_the_same_numbers_again(sqlite_api: LiveApi) -> None:
    sqlite_api.record("w8a8", harm=1, benefit=2, clean=30)
    told = why(sqlite_api)
    verdict = sqlite_api.client().get(WHY.format("w8a8").removesuffix("/why")).json()
    finding = verdict["findings"][0]
    command = next(each["command"] for each in told["recompute"] if "stats" in each["command"])
    again = run(command)
    assert again["log_e"]["noninferiority"] == pytest.approx(finding["log_e"]["noninferiority"])
    assert again["log_e"]["harm"] == pytest.approx(finding["log_e"]["harm"])
    assert again["log_thresholds"]["accept"] == pytest.approx(verdict["thresholds"]["accept"])
    assert again["confidence_sequence"]["upper"] == pytest.approx(finding["interval"]["upper"])
    other_way = [each["command"] for each in told["recompute"] if "other direction" in each["what"]]
    down = run(other_way[0])["log_e"]
    up = run(next(each["command"] for each in told["recompute"] if each["what"].startswith("refusal: E_NI")))
    refusal = verdict["findings"][1]["log_e"]
    assert refusal["noninferiority"] == pytest.approx(
        min(down["noninferiority"], up["log_e"]["noninferiority"])
    )
    assert math.exp(refusal["harm"]) == pytest.approx(
        (math.exp(down["harm"]) + math.exp(up["log_e"]["harm"])) / 2
    )


def run(command: str) -> Any:
    outcome = CliRunner().invoke(app, [*shlex.split(command)[1:], "--json"])
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_without_a_pair_the_chain_is_whole(shared_api: LiveApi) -> None:
    told = why(shared_api, "w4a16")
    assert told["decision"] == "undecided"
    assert [each["pairs"] for each in told["worst_pairs"]] == [0, 0]
    assert "tiergate recount" in [each["command"] for each in told["recompute"]]


@pytest.mark.parametrize(("tier", "status"), [("bf16", 409), ("w8a9", 404)])
def test_only_candidates_have_reasons(tier: str, status: int, shared_api: LiveApi) -> None:
    assert shared_api.client().get(WHY.format(tier)).status_code == status
    assert shared_api.client().get(WHY.format("w8a8"), params={"pairs": 51}).status_code == 422
