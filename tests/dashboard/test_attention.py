"""Which facts need a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.dashboard.attention import SOON_SECONDS, Known, Matter, matters
from service.store.decided.approvals import current_approval, put_approval
from service.store.decided.holds import HoldKind, begin_hold
from service.store.load.jobs import JobState, read_job
from service.store.outgoing.callbacks import CallbackState
from service.store.sql.database import Database
from service.store.traffic.ledger import account
from service.store.verdicts.standing import read_standing
from tests.dashboard.house import CHAT, CODE, NOW, QUESTION, House, epoch_of, ladders


def known_of(db: Database, model: str) -> Known:
    return Known(
        standing=read_standing(db, ladders()[model], QUESTION, now=NOW),
        ledger=account(db, None, model, now=NOW),
        last_job=None,
        to_label=0,
    )


def kinds(found: tuple[Matter, ...]) -> list[str]:
    return [each.kind for each in found]


def test_a_ladder_in_order_needs_nobody(house_database: Database) -> None:
    known = known_of(house_database, CHAT)
    quiet = replace(known.ledger, dropped={}, expired=0, lost=0)
    rungs = tuple(rung for rung in known.standing.rungs if rung.tier.name in ("bf16", "fp8-kv", "w4a16"))
    in_order = replace(known, ledger=quiet, standing=replace(known.standing, rungs=rungs))
    assert matters([in_order], {}, now=NOW) == (), "a reject that serves nobody was dealt with"


def test_a_hold_of_a_tier_that_serves_and_a_ramp_that_stopped(house_database: Database) -> None:
    for kind in (HoldKind.SLO_LOST, HoldKind.FROZEN):
        begin_hold(
            house_database,
            model=CHAT,
            tier="fp8-kv",
            epoch=epoch_of(CHAT, "fp8-kv"),
            kind=kind,
            reason="seen",
            at=NOW,
            actor="guard",
        )
    found = kinds(matters([known_of(house_database, CHAT)], {}, now=NOW))
    assert found[0] == "barred"
    assert "frozen" in found


def test_losses_too_small_to_act_on_are_left_to_the_ledger(house_database: Database) -> None:
    known = known_of(house_database, CHAT)
    small = replace(known, ledger=replace(known.ledger, sampled=1_000_000))
    assert "lost" in kinds(matters([known], {}, now=NOW))
    assert "lost" not in kinds(matters([small], {}, now=NOW))
    wrong = replace(known, ledger=replace(known.ledger, balanced=False))
    assert kinds(matters([wrong], {}, now=NOW))[0] == "unbalanced"


@pytest.mark.parametrize(
    ("state", "told"), [(JobState.FAILED, True), (JobState.ABORTED, True), (JobState.DONE, False)]
)
def test_the_last_job_is_told_where_it_went_wrong(
    state: JobState, told: bool, house_database: Database, house: House
) -> None:
    job = replace(read_job(house_database, house.failed_job), state=state)
    known = replace(known_of(house_database, CODE), last_job=job)
    found = [each for each in matters([known], {}, now=NOW) if each.href == f"/job?id={house.failed_job}"]
    assert bool(found) is told


def test_what_could_not_be_delivered_is_told_by_receiver() -> None:
    found = matters(
        [],
        {
            ("webhook:ops", CallbackState.GIVEN_UP): 2,
            ("github", CallbackState.GIVEN_UP): 1,
            ("gitlab", CallbackState.WAITING): 7,
        },
        now=NOW,
    )
    assert [(each.kind, each.numbers) for each in found] == [
        ("unanswered", {"tool": "github", "count": "1"}),
        ("given_up", {"tool": "ops", "count": "2"}),
    ]


@pytest.mark.parametrize(
    ("left", "told"), [(SOON_SECONDS + 60, False), (SOON_SECONDS - 60, True), (60, True)]
)
def test_an_approval_that_is_about_to_end_is_told_in_time(
    left: float, told: bool, house_database: Database
) -> None:
    approval = current_approval(house_database, CHAT, "fp8-kv")
    assert approval is not None
    put_approval(house_database, replace(approval, at=NOW, expires_at=NOW + left))
    found = matters([known_of(house_database, CHAT)], {}, now=NOW)
    assert ("expiring" in kinds(found)) is told
    assert "expired" not in kinds(found)
