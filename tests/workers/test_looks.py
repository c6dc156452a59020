"""The guard's looks, over real stores."""

from __future__ import annotations

from dataclasses import replace

import pytest
import redis

from service.decision.verdict import Decision
from service.store.sql.database import Database
from service.store.verdicts.looks import read_looks
from tests.workers.guarding import DOWN, NOW, guard_over, judged
from workers.looks import take_looks
from workers.watching import Guard


@pytest.fixture
def guard(database: Database, redis_client: redis.Redis) -> Guard:
    return guard_over(database, redis_client, DOWN, DOWN, DOWN)


def test_it_keeps_how_the_limits_of_every_tier_narrow(guard: Guard) -> None:
    judged(guard.db, "w8a8", harm=False, count=5)
    judged(guard.db, "w4a16", harm=True, count=40)
    assert take_looks(guard, now=NOW) == 2
    judged(guard.db, "w8a8", harm=False, count=60, at=NOW + 30)
    assert take_looks(guard, now=NOW + 60) == 1
    first, second = read_looks(guard.db, "m", "w8a8", "epoch of w8a8")
    assert (first.at, first.pairs, first.decision) == (NOW, 5, Decision.UNDECIDED)
    assert (second.at, second.pairs, second.decision) == (NOW + 60, 65, Decision.ACCEPT)
    assert second.upper - second.lower < first.upper - first.lower
    (harmed,) = read_looks(guard.db, "m", "w4a16", "epoch of w4a16")
    assert harmed.decision is Decision.REJECT


def test_without_evidence_it_keeps_nothing(guard: Guard) -> None:
    assert take_looks(guard, now=NOW) == 0


def test_a_model_that_cannot_be_read_keeps_no_other_waiting(guard: Guard) -> None:
    def broken(model: str, tier: str) -> str:
        if model == "a":
            raise LookupError("no epoch")
        return f"epoch of {tier}"

    judged(guard.db, "w8a8", harm=False, count=5)
    ladders = {"a": replace(guard.ladders["m"], model="a"), **guard.ladders}
    both = replace(guard, ladders=ladders, question=replace(guard.question, epoch_of=broken))
    with pytest.raises(ExceptionGroup, match="not every model could be looked at"):
        take_looks(both, now=NOW)
    assert len(read_looks(guard.db, "m", "w8a8", "epoch of w8a8")) == 1
