"""Where a change of route leads, decided from a standing alone."""

from __future__ import annotations

from typing import Any

import pytest

from service.approval.errors import Problem
from service.approval.promotion import (
    artifact_of,
    below,
    check_verdict,
    highest,
    is_same,
    lasts,
    rollback_target,
    without,
)
from service.approval.schemas import ApprovalBody
from service.decision.decide import decide
from service.decision.evidence import Evidence
from service.decision.tally import Tally
from service.fleet import Ladder, Route, Tier
from service.store.decided.approvals import Approval
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing
from tests.approval.live import CRITERIA, WIDE

NAMES = ("bf16", "w8a8", "w4a16", "w2")
LADDER = Ladder(model="m", tiers=tuple(Tier(name=name, model="m", backends=()) for name in NAMES))


def approval(tier: str = "w8a8", **changes: Any) -> Approval:
    said: dict[str, Any] = {
        "model": "m",
        "tier": tier,
        "actor": "ci",
        "at": 100.0,
        "epoch": "e",
        "policy_digest": "p",
        "verdict": {},
    }
    return Approval(**said | changes)


def standing(
    weights: dict[str, int], *, approved: tuple[str, ...] = (), expired: tuple[str, ...] = (), clean: int = 0
) -> Standing:
    tallies = {name: Tally.of_pairs(n=clean, harm=0, benefit=0) for name in CRITERIA}
    rungs = []
    for position, tier in enumerate(LADDER.tiers):
        evidence = Evidence(model="m", tier=tier.name, epoch="e", tallies=tallies) if position else None
        rungs.append(
            Rung(
                tier=tier,
                position=position,
                weight=weights.get(tier.name, 0),
                evidence=evidence,
                verdict=None if evidence is None else decide(WIDE, evidence, rung_below=None),
                below=None,
                approval=approval(tier.name) if tier.name in approved + expired else None,
                expired=tier.name in expired,
            )
        )
    return Standing(ladder=LADDER, route=Route(model="m", weights=weights), rungs=tuple(rungs), at=0.0)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (None, None),
        (1, 1),
        (90, 90),
        ("1s", 1),
        ("2m", 120),
        ("3h", 10_800),
        ("30d", 2_592_000),
        ("1w", 604_800),
    ],
)
def test_a_duration_is_seconds(asked: int | str | None, seconds: int | None) -> None:
    assert lasts(asked) == seconds


@pytest.mark.parametrize("asked", ["367d", "53w", "999999999w"])
def test_longer_than_a_year_is_refused(asked: str) -> None:
    with pytest.raises(Problem) as refused:
        lasts(asked)
    assert refused.value.status == 422


def test_only_accept_is_approved_without_an_override() -> None:
    accepted, undecided = standing({"bf16": 100}, clean=40), standing({"bf16": 100})
    assert check_verdict(accepted.rung("w8a8"), ApprovalBody()) is False
    assert check_verdict(undecided.rung("w8a8"), ApprovalBody(override=True, reason="r")) is True
    with pytest.raises(Problem) as refused:
        check_verdict(undecided.rung("w8a8"), ApprovalBody(reason="r"))
    assert refused.value.status == 409
    assert refused.value.reasons == undecided.rung("w8a8").verdict.reasons  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("weights", "approved", "expired", "tier", "next_lower"),
    [
        ({"w2": 100}, ("w8a8", "w4a16", "w2"), (), "w2", "w4a16"),
        ({"w2": 100}, ("w8a8", "w2"), (), "w2", "w8a8"),
        ({"w2": 100}, ("w8a8", "w2"), ("w4a16",), "w2", "w8a8"),
        ({"w2": 100}, ("w2",), ("w8a8",), "w2", "bf16"),
        ({"w8a8": 100}, ("w8a8", "w2"), (), "w8a8", "bf16"),
    ],
)
def test_below_is_the_nearest_rung_with_an_approval_in_force_or_the_baseline(
    weights: dict[str, int], approved: tuple[str, ...], expired: tuple[str, ...], tier: str, next_lower: str
) -> None:
    assert below(standing(weights, approved=approved, expired=expired), tier) == next_lower


@pytest.mark.parametrize(
    ("weights", "tier"),
    [({"bf16": 100}, "bf16"), ({"bf16": 95, "w4a16": 5}, "w4a16"), ({"w8a8": 50, "bf16": 50}, "w8a8")],
)
def test_the_highest_serving_tier_is_the_most_aggressive_one_with_any_share(
    weights: dict[str, int], tier: str
) -> None:
    assert highest(standing(weights)) == tier


@pytest.mark.parametrize(
    ("weights", "to", "target"),
    [
        ({"w4a16": 100}, None, "w8a8"),
        ({"w8a8": 99, "w2": 1}, None, "w8a8"),
        ({"w4a16": 100}, "bf16", "bf16"),
        ({"w4a16": 100}, "w8a8", "w8a8"),
        ({"bf16": 100}, "bf16", "bf16"),
    ],
)
def test_a_rollback_goes_down(weights: dict[str, int], to: str | None, target: str) -> None:
    assert rollback_target(standing(weights, approved=("w8a8",)), to) == target


@pytest.mark.parametrize(
    ("weights", "to", "code"),
    [
        ({"bf16": 100}, None, "nothing_below"),
        ({"w8a8": 100}, "w4a16", "not_lower"),
        ({"w2": 100}, "w4a16", "not_approved"),
        ({"w2": 100}, "fp8", "unknown_tier"),
    ],
)
def test_a_rollback_never_goes_up_nor_where_nobody_approved(
    weights: dict[str, int], to: str | None, code: str
) -> None:
    with pytest.raises(Problem) as refused:
        rollback_target(standing(weights, approved=("w8a8", "w2")), to)
    assert refused.value.code == code


def test_a_tier_that_leaves_gives_its_share_to_the_target() -> None:
    route = Route(model="m", weights={"bf16": 70, "w8a8": 20, "w4a16": 10})
    assert without(route, "w4a16", "w8a8").weights == {"bf16": 70, "w8a8": 30}
    assert without(Route.only("m", "w8a8"), "w8a8", "bf16").weights == {"bf16": 100}


@pytest.mark.parametrize(
    ("known", "same"),
    [
        (None, False),
        (approval(), True),
        (approval(at=5.0, actor="another"), True),
        (approval(artifact="sha256:x"), False),
        (approval(epoch="older"), False),
        (approval(policy_digest="older"), False),
        (approval(override=True, reason="r"), False),
        (approval(expires_at=1000.0), False),
        (approval(at=5.0, expires_at=50.0), False),
    ],
)
def test_an_approval_is_the_same_when_it_says_the_same(known: Approval | None, same: bool) -> None:
    assert is_same(known, approval(), 100.0) is same


def test_an_approval_with_an_end_is_renewed_rather_than_the_same() -> None:
    assert not is_same(approval(), approval(expires_at=1000.0), 100.0)


def test_the_declared_artifact_is_taken_and_held_to() -> None:
    tier = Tier(name="w8a8", model="m", backends=(), declares={"artifact": "sha256:ab"})
    assert artifact_of(tier, None) == "sha256:ab"
    assert artifact_of(tier, "ab") == "ab"
    shouted = Tier(name="w8a8", model="m", backends=(), declares={"artifact": "AB"})
    assert artifact_of(shouted, "sha256:ab") == "sha256:ab"
    with pytest.raises(Problem):
        artifact_of(tier, "cd")
    assert artifact_of(Tier(name="w8a8", model="m", backends=()), "cd") == "cd"
