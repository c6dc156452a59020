from __future__ import annotations

import pytest

from service.decision.evidence import Attribution, Shown
from service.decision.policy import Gate
from service.decision.ramp import OnSloLoss, Promotion
from service.fleet import Route
from service.store.decided.decisions import read
from service.store.decided.holds import HoldKind
from service.store.decided.routes import current_route, set_route
from service.store.sql.database import Database
from service.store.verdicts.measurements import Measurement, put_measurement
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import read_standing
from tests.workers.guarding import (
    DOWN,
    NOW,
    GuardMaker,
    actions,
    approve,
    epoch_of,
    judged,
    log_of,
    serving,
)
from workers.guard import watch_serving
from workers.ramp import SAME_TIME_SECONDS
from workers.watching import Guard

HOUR = 3600.0
STEPS = Promotion(ramp=(5, 25, 100))
BACK = Promotion(ramp=(5, 25, 100), on_slo_loss=OnSloLoss.ROLL_BACK)
SLO = (Gate.SLO,)


def rung(guard: Guard, tier: str = "w8a8", *, now: float = NOW) -> Rung:
    return read_standing(guard.db, guard.ladders["m"], guard.question, now=now).rung(tier)


def measured(db: Database, shown: Shown, *, at: float, tier: str = "w8a8", epoch: str | None = None) -> None:
    reason = f"SLO pass rate of {tier}: 0.91 against 0.95"
    put_measurement(
        db,
        Measurement(
            model="m",
            tier=tier,
            gate=Gate.SLO,
            epoch=epoch or epoch_of("m", tier),
            at=at,
            shown=shown,
            reason=reason,
        ),
    )


def warned(db: Database, tier: str = "w8a8") -> None:
    """A rise is shown, far from the margin: a few harms more than benefits, among many clean pairs."""
    judged(db, tier, harm=False, count=60, at=NOW - 20)
    judged(db, tier, harm=True, count=7, at=NOW - 10)


def test_steps_are_taken_after_their_hold_and_logged(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, promotion=STEPS)
    approve(guard.db, "w8a8", weight=5)
    watch_serving(guard, now=NOW + HOUR - 1)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    watch_serving(guard, now=NOW + HOUR)
    assert serving(guard) == {"bf16": 75, "w8a8": 25}
    told = guard.captures.read_route("m")
    assert told is not None
    assert told.weights == {"bf16": 75, "w8a8": 25}
    watch_serving(guard, now=NOW + HOUR + 1)
    assert serving(guard) == {"bf16": 75, "w8a8": 25}
    watch_serving(guard, now=NOW + 2 * HOUR + 1)
    watch_serving(guard, now=NOW + 9 * HOUR)
    assert serving(guard) == {"w8a8": 100}
    steps = log_of(guard, "promote")[1:]
    assert [(step.actor, step.detail["because"]) for step in steps] == [("guard", "ramp")] * 2
    assert [(step.detail["from"], step.detail["to"]) for step in steps] == [(5, 25), (25, 100)]


def test_without_a_ramp_a_split_route_is_left_alone(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8", weight=40)
    watch_serving(guard, now=NOW + 9 * HOUR)
    assert serving(guard) == {"bf16": 60, "w8a8": 40}


def test_a_tier_without_an_approval_in_force_takes_no_step(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, promotion=STEPS)
    set_route(guard.db, Route(model="m", weights={"bf16": 95, "w8a8": 5}), at=NOW, actor="somebody")
    watch_serving(guard, now=NOW + 9 * HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}


def test_an_approval_of_another_epoch_takes_no_step(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, promotion=STEPS)
    approve(guard.db, "w8a8", weight=5, epoch="of another recipe")
    watch_serving(guard, now=NOW + 9 * HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}


def test_a_step_waits_for_room_and_is_then_taken(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, promotion=STEPS, rooms=(64, 10, None))
    approve(guard.db, "w8a8", weight=5)
    watch_serving(guard, now=NOW + HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}  # 25 % of 64 are 16
    watch_serving(guard_of(up, DOWN, up, promotion=STEPS), now=NOW + HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    watch_serving(guard_of(up, up, up, promotion=STEPS, rooms=(64, 16, None)), now=NOW + HOUR)
    assert serving(guard) == {"bf16": 75, "w8a8": 25}


def test_a_step_waits_until_the_engines_are_settled(guard_of: GuardMaker, up: str) -> None:
    gates = (Gate.ATTRIBUTION,)
    unsettled = Attribution(unsettled="w8a8: its backends disagree")
    guard = guard_of(up, up, up, promotion=STEPS, gates=gates, attribution=unsettled)
    approve(guard.db, "w8a8", weight=5)
    watch_serving(guard, now=NOW + HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    watch_serving(
        guard_of(up, up, up, promotion=STEPS, gates=gates, attribution=Attribution()), now=NOW + HOUR
    )
    assert serving(guard) == {"bf16": 75, "w8a8": 25}


def test_a_warning_freezes_the_ramp_once_and_it_stays_frozen_when_the_warning_goes(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up, promotion=STEPS)
    warned(guard.db)
    approve(guard.db, "w8a8", weight=5)
    verdict = rung(guard).verdict
    assert verdict is not None
    assert verdict.findings[0].warn
    watch_serving(guard, now=NOW + HOUR)
    watch_serving(guard, now=NOW + HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    [frozen] = log_of(guard, "frozen")
    assert (frozen.actor, frozen.tier) == ("guard", "w8a8")
    assert ">= 20" in frozen.detail["reasons"][0]
    assert dict(guard.acted) == {("frozen", "m"): 1}
    assert "frozen: at 5 %" in rung(guard).sentence
    judged(guard.db, "w8a8", harm=False, benefit=True, count=9, at=NOW - 5)
    verdict = rung(guard).verdict
    assert verdict is not None
    assert not verdict.findings[0].warn
    watch_serving(guard, now=NOW + 9 * HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}


def test_an_approval_in_view_of_the_warning_sets_the_ramp_going_after_another_hold(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up, promotion=STEPS)
    warned(guard.db)
    approve(guard.db, "w8a8", weight=5)
    watch_serving(guard, now=NOW + HOUR)
    approve(guard.db, "w8a8", weight=5, at=NOW + 2 * HOUR, warned=("structured_output",))
    assert not rung(guard).frozen
    watch_serving(guard, now=NOW + 3 * HOUR - 1)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    watch_serving(guard, now=NOW + 3 * HOUR)
    assert serving(guard) == {"bf16": 75, "w8a8": 25}
    assert len(log_of(guard, "frozen")) == 1


def test_an_approval_that_did_not_know_the_warning_freezes_again(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, promotion=STEPS)
    warned(guard.db)
    approve(guard.db, "w8a8", weight=5)
    watch_serving(guard, now=NOW + HOUR)
    approve(guard.db, "w8a8", weight=5, at=NOW + 2 * HOUR)
    watch_serving(guard, now=NOW + 9 * HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    assert len(log_of(guard, "frozen")) == 2


def test_a_lost_slo_pages_once_freezes_and_rolls_nothing_back(
    guard_of: GuardMaker, up: str, caplog: pytest.LogCaptureFixture
) -> None:
    guard = guard_of(up, up, up, promotion=STEPS, gates=SLO)
    approve(guard.db, "w8a8", weight=5)
    measured(guard.db, Shown.FAILED, at=NOW + 10)
    for _ in range(3):
        watch_serving(guard, now=NOW + 9 * HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    [lost] = log_of(guard, "slo_lost")
    assert lost.detail["reasons"] == ["slo: SLO pass rate of w8a8: 0.91 against 0.95"]
    assert dict(guard.acted) == {("slo_lost", "m"): 1}
    assert "w8a8 serves clients and loses its SLO" in caplog.text
    assert [hold.kind for hold in rung(guard).frozen] == [HoldKind.SLO_LOST]


def test_it_goes_on_after_a_measurement_that_shows_the_contrary(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, promotion=STEPS, gates=SLO)
    approve(guard.db, "w8a8", weight=5)
    measured(guard.db, Shown.FAILED, at=NOW + 10)
    watch_serving(guard, now=NOW + 20)
    measured(guard.db, Shown.PASSED, at=NOW + 30)
    watch_serving(guard, now=NOW + 40)
    assert not rung(guard).frozen
    assert len(log_of(guard, "slo_lost_ended")) == 1
    watch_serving(guard, now=NOW + 39 + HOUR)
    assert serving(guard) == {"bf16": 95, "w8a8": 5}
    watch_serving(guard, now=NOW + 40 + HOUR)
    assert serving(guard) == {"bf16": 75, "w8a8": 25}
    measured(guard.db, Shown.FAILED, at=NOW + 2 * HOUR)
    watch_serving(guard, now=NOW + 2 * HOUR)
    assert len(log_of(guard, "slo_lost")) == 2


def test_measurements_that_are_too_old_or_of_another_epoch_count_as_none(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up, gates=SLO)
    approve(guard.db, "w8a8")
    measured(guard.db, Shown.FAILED, at=NOW)
    measured(guard.db, Shown.FAILED, at=NOW + 14 * 24 * HOUR, epoch="of another recipe")
    later = NOW + 14 * 24 * HOUR + 1
    watch_serving(guard, now=later)
    assert log_of(guard, "slo_lost") == []
    verdict = rung(guard, now=later).verdict
    assert verdict is not None
    assert any(reason.startswith("missing_slo: the last load run ended") for reason in verdict.reasons)


def test_a_gate_that_is_not_asked_for_pages_nobody(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    measured(guard.db, Shown.FAILED, at=NOW + 10)
    watch_serving(guard, now=NOW + 20)
    assert log_of(guard, "slo_lost") == []


@pytest.mark.parametrize(
    ("below", "apart", "weight"),
    [
        (Shown.PASSED, 60.0, 25),
        (Shown.FAILED, 60.0, 25),  # a spike: every tier loses it
        (Shown.UNDECIDED, 60.0, 25),
        (None, 60.0, 25),
        (Shown.PASSED, SAME_TIME_SECONDS + 1, 25),  # not the same load
        (Shown.PASSED, 60.0, 100),  # the rung below serves nobody
    ],
)
def test_it_rolls_back_for_the_slo_only_while_the_rung_below_serves_and_keeps_it(
    below: Shown | None, apart: float, weight: int, guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up, promotion=BACK, gates=SLO)
    approve(guard.db, "w8a8", weight=weight)
    measured(guard.db, Shown.FAILED, at=NOW + HOUR)
    if below is not None:
        measured(guard.db, below, at=NOW + HOUR - apart, tier="bf16")
    watch_serving(guard, now=NOW + HOUR + 1)
    legal = (below, apart, weight) == (Shown.PASSED, 60.0, 25)
    assert (serving(guard) == {"bf16": 100}) is legal
    assert len(log_of(guard, "slo_lost")) == 1
    if legal:
        [entry] = log_of(guard, "roll_back")
        assert entry.detail["because"] == "slo_lost"
        assert len(entry.detail["reasons"]) == 2
        assert [hold.kind for hold in rung(guard).barred] == [HoldKind.SLO_LOST]


def test_a_tier_rolled_back_for_its_slo_is_free_again_once_shown_to_keep_it(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up, promotion=BACK, gates=SLO)
    approve(guard.db, "w4a16", weight=5)
    approve(guard.db, "w8a8", weight=50)
    for tier, shown in (("w4a16", Shown.PASSED), ("w8a8", Shown.FAILED), ("bf16", Shown.PASSED)):
        measured(guard.db, shown, at=NOW + 10, tier=tier)
    watch_serving(guard, now=NOW + 20)
    route = current_route(guard.db, "m")
    assert route is not None
    assert not route.weights.get("w8a8")
    measured(guard.db, Shown.PASSED, at=NOW + 30)
    watch_serving(guard, now=NOW + 40)
    assert not rung(guard).barred
    assert rung(guard).approval is None
    assert not route.weights.get("w8a8")


def test_harm_comes_before_steps(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, promotion=STEPS)
    approve(guard.db, "w8a8", weight=5)
    judged(guard.db, "w8a8", harm=True)
    watch_serving(guard, now=NOW + HOUR)
    assert serving(guard) == {"bf16": 100}
    assert actions(guard)[-1] == ("guard", "roll_back")
    watch_serving(guard, now=NOW + 9 * HOUR)
    assert len(read(guard.db, "m")) == read(guard.db, "m")[-1].seq
    assert serving(guard) == {"bf16": 100}
