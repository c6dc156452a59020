"""Where answers differ, over HTTP."""

from __future__ import annotations

from service.store.scored.pairs import PairRow, Unit, record
from tests.approval.live import LiveApi, add_pairs

DIFFERENCES = "/api/v1/models/org/model/tiers/{}/differences"
EVIDENCE = "/api/v1/models/org/model/tiers/{}/evidence"


def put(api: LiveApi, tier: str, arm: str, epoch: str, details: tuple[tuple[str, str, int], ...]) -> None:
    version = api.config.evaluators["field_agreement"]
    row = PairRow(outcome="scored", baseline_passed=True, candidate_passed=False, details=details)
    unit = Unit(
        capture_id=f"{tier} {arm}",
        model="org/model",
        tier=tier,
        arm=arm,
        evaluator="field_agreement",
        version=version,
        epoch=epoch,
        conversation=f"talk {tier} {arm}",
        stratum="short",
        tenant="",
        digest="",
        counted=True,
        rows=(row,),
        at=1.0,
    )
    assert record(api.db, capture_id=unit.capture_id, owner="w", units=[unit], at=1.0)


def test_fields_are_told_with_the_control_and_an_empty_epoch_has_none(api: LiveApi) -> None:
    client = api.client()
    empty = client.get(DIFFERENCES.format("w8a8")).raise_for_status().json()
    assert (empty["evaluator"], empty["names"], empty["epoch"]) == ("field_agreement", [], "epoch-w8a8")
    put(api, "w8a8", "candidate", "epoch-w8a8", (("/total", "value", 1), ("/id", "agrees", 3)))
    put(api, "bf16", "control", "epoch-bf16", (("/total", "agrees", 2),))
    found = client.get(DIFFERENCES.format("w8a8")).raise_for_status().json()
    assert found["names"] == [
        {"name": "/id", "candidate": {"agrees": 3}, "control": {}},
        {"name": "/total", "candidate": {"value": 1}, "control": {"agrees": 2}},
    ]


def test_an_evaluator_that_is_not_installed_is_unknown(sqlite_api: LiveApi) -> None:
    for path in (DIFFERENCES, EVIDENCE):
        found = sqlite_api.client().get(path.format("w8a8"), params={"evaluator": "fields"})
        assert found.status_code == 404
        assert found.json()["code"] == "unknown_evaluator"
        assert found.json()["hint"] == "did you mean 'field_agreement'?"


def test_pairs_of_what_is_only_shown_do_not_crowd_out_those_that_decide(sqlite_api: LiveApi) -> None:
    add_pairs(sqlite_api.db, "w8a8", epoch="epoch-w8a8", harm=2)
    add_pairs(sqlite_api.db, "w8a8", epoch="epoch-w8a8", harm=3, criteria=("field_agreement",))

    def evaluators(**asked: str) -> set[str]:
        found = sqlite_api.client().get(EVIDENCE.format("w8a8"), params=asked).raise_for_status().json()
        return {pair["evaluator"] for pair in found["pairs"]}

    assert evaluators() == {"structured_output", "refusal"}
    assert evaluators(evaluator="field_agreement") == {"field_agreement"}
    assert evaluators(evaluator="any") == {"structured_output", "refusal", "field_agreement"}
