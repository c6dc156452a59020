from __future__ import annotations

import pytest
import redis

from service.store.redis.redis_keys import probe_tokens
from service.store.redis.spending import Budget

DAY = 86_400
NOW = 1_000_000.0


def test_without_a_limit_everything_is_granted(redis_client: redis.Redis) -> None:
    budget = Budget(redis_client, tokens_per_day=None)
    assert all(budget.take(10**9, now=NOW) for _ in range(3))
    budget.give_back(5)
    assert redis_client.keys() == []


def test_a_budget_of_nothing_grants_nothing(redis_client: redis.Redis) -> None:
    assert not Budget(redis_client, tokens_per_day=0).take(1, now=NOW)


def test_an_hours_share_may_go_at_once_and_the_rest_fills_through_the_day(redis_client: redis.Redis) -> None:
    budget = Budget(redis_client, tokens_per_day=2400)
    assert [budget.take(50, now=NOW) for _ in range(3)] == [True, True, False]
    assert not budget.take(50, now=NOW)
    assert budget.take(50, now=NOW + DAY / 48)  # half an hour: 50 tokens


def test_what_is_overdrawn_has_to_refill_first(redis_client: redis.Redis) -> None:
    budget = Budget(redis_client, tokens_per_day=2400)
    assert budget.take(1000, now=NOW)  # more than the bucket holds, and yet its turn
    assert not budget.take(1, now=NOW + 8 * 3600)
    assert budget.take(1, now=NOW + 9.1 * 3600)


def test_over_a_day_the_average_holds(redis_client: redis.Redis) -> None:
    budget = Budget(redis_client, tokens_per_day=2400)
    spent = sum(7 for minute in range(24 * 60) if budget.take(7, now=NOW + 60 * minute))
    assert 2400 <= spent <= 2400 + 100 + 7


def test_an_estimate_can_be_corrected_either_way(redis_client: redis.Redis) -> None:
    budget = Budget(redis_client, tokens_per_day=2400)
    budget.take(100, now=NOW)
    assert not budget.take(1, now=NOW)
    budget.give_back(30)
    assert budget.take(10, now=NOW)
    budget.give_back(-25)
    assert not budget.take(1, now=NOW)


def test_a_clock_that_runs_behind_takes_nothing_away(redis_client: redis.Redis) -> None:
    budget = Budget(redis_client, tokens_per_day=2400)
    budget.take(50, now=NOW)
    assert budget.take(10, now=NOW - 3600)
    assert float(redis_client.hget("tiergate:shadow:tokens", "level") or 0) == pytest.approx(40)


def test_buckets_of_different_names_are_filled_apart(redis_client: redis.Redis) -> None:
    one, other = (Budget(redis_client, tokens_per_day=2400, key=probe_tokens(model)) for model in ("a", "b"))
    assert one.take(100, now=NOW)
    assert not one.take(1, now=NOW)
    assert other.take(1, now=NOW)
    assert Budget(redis_client, tokens_per_day=2400).take(1, now=NOW)


def test_a_negative_budget_is_an_error(redis_client: redis.Redis) -> None:
    with pytest.raises(ValueError, match="negative"):
        Budget(redis_client, tokens_per_day=-1)
