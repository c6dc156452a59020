"""Requests that are sent again: who counts as a retry, of which tier, and how sampling is corrected for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from service.store.sql.database import Database
from service.store.traffic.resends import ResendRate, Sent, count_within, earlier_tiers, resend_rates

WINDOW = 300.0


def sent(capture_id: str, at: float = 1000.0, **changes: Any) -> Sent:
    fields: dict[str, Any] = {
        "capture_id": capture_id,
        "model": "m",
        "tier": "bf16",
        "tenant": "t1",
        "prompt": "p1",
        "at": at,
        "together": False,
    }
    return Sent(**{**fields, **changes})


@pytest.fixture
def looked(redis_client: redis.Redis) -> Callable[..., dict[str, str]]:
    """What a batch finds."""
    return lambda *batch, window=WINDOW: earlier_tiers(redis_client, batch, window=window)


def test_the_same_prompt_of_the_same_tenant_within_the_window_is_a_retry_of_the_tier_that_answered_first(
    looked,
):
    assert looked(sent("a", 1000.0, tier="bf16")) == {}
    assert looked(sent("b", 1200.0, tier="w8a8")) == {"b": "bf16"}
    assert looked(sent("c", 1600.0)) == {}
    assert looked(sent("d", 1500.0, tier="fp8")) == {"d": "fp8"}, "taken up late: it came before"


@pytest.mark.parametrize(
    "other", [{"tenant": "t2"}, {"prompt": "p2"}, {"model": "n"}, {"tenant": ""}, {"at": 1300.5}]
)
def test_another_tenant_prompt_or_model_or_a_later_time_is_no_retry(looked, other):
    looked(sent("a", 1000.0, tenant="" if other.get("tenant") == "" else "t1"))
    assert looked(sent("b", **{"at": 1100.0, **other})) == {}


def test_a_batch_finds_its_own_retries_and_a_second_delivery_is_none(looked):
    assert looked(sent("a"), sent("b", 1010.0), sent("c", 1020.0)) == {"b": "bf16", "c": "bf16"}
    assert looked(sent("c", 1020.0)) == {}
    assert looked(sent("d", 1030.0), window=0.0) == {}


def test_prompts_are_remembered_by_hash_and_for_minutes(looked, redis_client):
    looked(sent("a", prompt="a secret prompt"))
    [key] = redis_client.keys("tiergate:prompt:*")
    assert b"secret" not in key + redis_client.get(key)
    assert 0 < redis_client.ttl(key) <= 600


def counted(db: Database, *requests: tuple[Sent, str | None], share: float) -> None:
    with db.write() as connection:
        for each, earlier in requests:
            count_within(db, connection, each, earlier=earlier, share=share)


def test_a_rate_is_corrected_for_the_share_that_was_sampled(database: Database) -> None:
    counted(database, *[(sent(f"a{n}"), "bf16" if n < 2 else None) for n in range(100)], share=0.1)
    counted(
        database,
        *[(sent(f"b{n}", together=True), "bf16" if n < 1 else None) for n in range(10)],
        share=0.1,
    )
    found = resend_rates(database, "m")["bf16"]
    assert (found.total, found.resent, found.exposed) == (110, 3, 20)
    assert found.chances == pytest.approx(100 * 0.1 + 10)
    assert found.rate == pytest.approx(3 / 20)


def test_a_retry_speaks_of_the_tier_that_answered_before(database: Database) -> None:
    counted(database, (sent("a", tier="w8a8"), None), (sent("b", tier="bf16"), "w8a8"), share=1.0)
    found = resend_rates(database, "m")
    assert (found["w8a8"].total, found["w8a8"].resent, found["w8a8"].rate) == (1, 1, 1.0)
    assert (found["bf16"].total, found["bf16"].resent, found["bf16"].rate) == (1, 0, 0.0)


def test_older_days_and_requests_without_a_key_are_left_out(database: Database) -> None:
    counted(
        database,
        (sent("a", 86_400.0 * 5), None),
        (sent("b", 86_400.0 * 9), None),
        (sent("c", 86_400.0 * 9, tenant=""), None),
        share=1.0,
    )
    assert resend_rates(database, "m", since=86_400.0 * 8)["bf16"].total == 1
    assert resend_rates(database, "m")["bf16"].total == 2
    assert resend_rates(database, "other") == {}
    assert ResendRate().rate is None
