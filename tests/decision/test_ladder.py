"""Tiers in order: each waits for the one below, and a rollback goes to the nearest that can serve."""

from __future__ import annotations

import pytest

from service.decision.evidence import Evidence
from service.decision.ladder import counts_as_reject, decide_ladder, next_lower_rung
from service.decision.policy import Asked, Criterion, Gate, Policy
from service.decision.tally import Tally
from service.decision.verdict import Decision

POLICY = Policy(
    criteria=(Criterion(evaluator="x"),),
    gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED},
)
CLEAN = Tally.of_pairs(n=1000, harm=0, benefit=0)
HARM = Tally.of_pairs(n=1000, harm=100, benefit=0)
NOISY = Tally.of_pairs(n=1000, harm=12, benefit=10)
RUNGS = ("bf16", "fp8kv", "w8a8", "w4a16")


def candidate(tier: str, tally: Tally, **limits: int) -> Evidence:
    return Evidence(model="m", tier=tier, epoch="e", tallies={"x": tally}, max_pairs=limits)


def test_a_ladder_is_climbed_one_accepted_rung_at_a_time() -> None:
    tallies = (CLEAN, NOISY, CLEAN)
    verdicts = decide_ladder(
        POLICY, [candidate(t, tally) for t, tally in zip(RUNGS[1:], tallies, strict=True)]
    )
    assert [verdict.decision for verdict in verdicts] == [
        Decision.ACCEPT,
        Decision.UNDECIDED,
        Decision.UNDECIDED,
    ]
    assert verdicts[2].reasons == ("rung_below_not_accepted",)
    assert decide_ladder(POLICY, []) == ()


def test_a_tier_is_given_up_when_rejected_or_not_shown_in_time() -> None:
    harmed, open_, exhausted = decide_ladder(
        POLICY, [candidate("a", HARM), candidate("b", NOISY), candidate("c", NOISY, x=900)]
    )
    assert [counts_as_reject(verdict) for verdict in (harmed, open_, exhausted)] == [True, False, True]


@pytest.mark.parametrize(
    ("tier", "usable", "target"),
    [
        ("w4a16", set(RUNGS), "w8a8"),
        ("w4a16", {"bf16", "fp8kv", "w4a16"}, "fp8kv"),
        ("fp8kv", {"w8a8", "w4a16"}, None),
        ("bf16", set(RUNGS), None),
    ],
)
def test_a_rollback_goes_to_the_nearest_usable_rung_below(
    tier: str, usable: set[str], target: str | None
) -> None:
    assert next_lower_rung(RUNGS, tier, usable) == target


def test_a_tier_off_the_ladder_has_no_rung_below() -> None:
    with pytest.raises(ValueError, match="int4"):
        next_lower_rung(RUNGS, "int4", RUNGS)
