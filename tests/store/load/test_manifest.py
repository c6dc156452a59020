from __future__ import annotations

import json
from typing import Any

import pytest

from service.store.load.manifest import FORMAT, JobPlan, Manifest, differences, plan_document


def document(**changes: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "format": FORMAT,
        "model": "m",
        "tiers": [
            {"tier": "bf16", "backends": ["http://a:1"], "price_per_hour": 60.0, "epoch": "e0"},
            {"tier": "w8a8", "backends": ["http://b:1"], "price_per_hour": 30.0, "epoch": "e1"},
        ],
        "corpus": {"digest": "c", "requests": 3},
        "seed": 7,
        "plan": plan_document(JobPlan()),
        "slo": {"ttft_seconds": 1.0, "tpot_seconds": 0.05},
    }
    return {**told, **changes}


def test_its_digest_depends_on_what_it_says_and_not_on_the_order() -> None:
    one = Manifest.of(document())
    other = Manifest.of(dict(reversed(document().items())))
    assert one.digest == other.digest
    assert len(one.digest) == 64
    assert Manifest.of(document(seed=8)).digest != one.digest
    assert Manifest.read(one.text).digest == one.digest


def test_it_is_read_by_name() -> None:
    found = Manifest.of(document())
    assert (found.model, found.seed, found.tiers, found.baseline) == ("m", 7, ("bf16", "w8a8"), "bf16")
    assert (found.ttft_seconds, found.tpot_seconds) == (1.0, 0.05)
    assert found.plan == JobPlan()
    assert found.tier("w8a8")["price_per_hour"] == 30.0
    with pytest.raises(KeyError):
        found.tier("w4a16")


def test_what_two_differ_in_is_told_by_path_and_a_further_tier_shifts_no_other() -> None:
    was = Manifest.of(document())
    tiers = [document()["tiers"][0], {"tier": "fp8"}, {**document()["tiers"][1], "price_per_hour": 20.0}]
    now = Manifest.of(document(tiers=tiers, policy="p2"))
    assert differences(was, now) == (
        "policy: was (nothing), is p2",
        "tiers[fp8].tier: was (nothing), is fp8",
        "tiers[w8a8].price_per_hour: was 30.0, is 20.0",
    )
    assert differences(was, was) == ()


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {},
        document(format=99),
        document(model=3),
        document(seed="x"),
        document(tiers=[]),
        document(tiers=[{}]),
        document(tiers="bf16"),
        document(slo={}),
        document(plan={}) | {"plan": {"rate": -1}},
        document(plan={"blocks": 8.5}),
        document(plan={"speed": 3}),
        document(plan={"parts": "slo"}),
        document(plan={"rate": True}),
        document(plan={"arms": 3}),
        document(corpus={"digest": float("nan")}),
    ],
)
def test_what_is_no_manifest_is_refused(broken: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Manifest.of(broken)


def test_a_plan_survives_json() -> None:
    plan = JobPlan(rate=2.5, arms="together", parts=("slo", "sweep"), budget_tokens=None, budget_seconds=None)
    assert JobPlan.of(json.loads(json.dumps(plan_document(plan)))) == plan


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"blocks": 7}, "blocks must be from 8"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"rate": float("nan")}, "rate must be above 0"),
        ({"window_seconds": 0.0}, "window_seconds"),
        ({"window_seconds": 0.001}, "holds no request: window_seconds must be at least 2"),
        ({"rate": 0.01}, "holds no request"),
        ({"arrivals": "bursty"}, "arrivals are one of"),
        ({"arms": "at once"}, "arms are loaded interleaved or together"),
        ({"parts": ("cost",)}, "needs the sweep"),
        ({"parts": ("slo", "slo")}, "in this order"),
        ({"budget_tokens": 0}, "at least one token"),
        ({"budget_seconds": float("inf")}, "at most a week"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        JobPlan(**changes)
