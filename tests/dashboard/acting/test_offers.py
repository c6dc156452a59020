"""What is offered where a tier stands."""

from __future__ import annotations

import pytest

from service.dashboard.acting.offers import Act, offers
from service.store.decided.holds import reject
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from service.store.verdicts.standing import Question, read_standing
from tests.approval.live import ENOUGH, MODEL, WIDE, add_pairs, live_api


def offered(db: Database, captures: Captures, tier: str) -> list[Act]:
    with live_api(db, captures) as api:
        question = Question(policy=WIDE, epoch_of=api.config.epoch_of)
        standing = read_standing(db, api.config.ladders[MODEL], question, now=api.clock())
    return [offer.act for offer in offers(standing, standing.rung(tier), WIDE)]


def test_an_accepted_tier_can_be_approved_or_rejected(sqlite_database: Database, captures: Captures) -> None:
    add_pairs(sqlite_database, "w8a8", epoch="epoch-w8a8", clean=ENOUGH)
    assert offered(sqlite_database, captures, "w8a8") == [Act.APPROVE, Act.REJECT]


def test_one_that_is_not_accepted_takes_an_override(sqlite_database: Database, captures: Captures) -> None:
    assert offered(sqlite_database, captures, "w4a16") == [Act.OVERRIDE, Act.REJECT]


@pytest.mark.parametrize(
    ("tier", "more"), [("w8a8", [Act.SKIP]), ("w4a16", [])], ids=["below another", "at the top"]
)
def test_a_rejected_verdict_can_be_skipped_where_tiers_wait(
    tier: str, more: list[Act], sqlite_database: Database, captures: Captures
) -> None:
    for rejected in ("w8a8", "w4a16"):
        add_pairs(sqlite_database, rejected, epoch=f"epoch-{rejected}", harm=60)
    assert offered(sqlite_database, captures, tier) == [Act.OVERRIDE, Act.REJECT, *more]


def test_a_tier_that_a_person_rejected_is_not_rejected_again(
    sqlite_database: Database, captures: Captures
) -> None:
    add_pairs(sqlite_database, "w8a8", epoch="epoch-w8a8", clean=ENOUGH)
    reject(sqlite_database, model=MODEL, tier="w8a8", epoch="epoch-w8a8", reason="r", at=1.0, actor="ann")
    assert offered(sqlite_database, captures, "w8a8") == [Act.OVERRIDE]


def test_nothing_is_decided_about_the_baseline(sqlite_database: Database, captures: Captures) -> None:
    assert offered(sqlite_database, captures, "bf16") == []
