"""Asking backends whether they are up."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from service.approval.backends import ask_health
from service.fleet import Backend, Tier
from tests.approval.live import Upstream


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    started = Upstream()
    yield started
    started.stop()


def tier(*urls: str, api_key: str | None = None) -> Tier:
    return Tier(name="w8a8", model="m", backends=tuple(Backend(url=url, api_key=api_key) for url in urls))


async def test_a_healthy_backend_is_asked_once_with_its_own_key(upstream: Upstream) -> None:
    health = await ask_health(tier(upstream.url, api_key="sk-1"), timeout_seconds=5)
    assert health.can_serve
    assert upstream.asked == [("/health", "Bearer sk-1")]
    assert health.complaint == ""


async def test_where_there_is_no_health_page_the_models_decide(upstream: Upstream) -> None:
    upstream.statuses["/health"] = 404
    assert (await ask_health(tier(upstream.url), timeout_seconds=5)).can_serve
    assert [path for path, _ in upstream.asked] == ["/health", "/v1/models"]
    upstream.statuses["/v1/models"] = 401
    health = await ask_health(tier(upstream.url), timeout_seconds=5)
    assert health.down == {upstream.url: "answers 401"}


@pytest.mark.parametrize("status", [503, 500, 302, 429])
async def test_a_backend_that_is_loading_broken_or_elsewhere_is_down(upstream: Upstream, status: int) -> None:
    upstream.statuses["/health"] = status
    health = await ask_health(tier(upstream.url), timeout_seconds=5)
    assert not health.can_serve
    assert str(status) in health.complaint


async def test_a_backend_that_hangs_is_down_in_time(upstream: Upstream) -> None:
    upstream.statuses["/health"] = 0
    began = time.monotonic()
    health = await ask_health(tier(upstream.url), timeout_seconds=0.2)
    assert time.monotonic() - began < 60
    assert "no answer within 0.2 s" in health.complaint


async def test_one_backend_that_is_up_is_enough_and_the_others_are_named(
    upstream: Upstream, free_port: int
) -> None:
    nobody = f"http://127.0.0.1:{free_port}"
    health = await ask_health(tier(nobody, upstream.url), timeout_seconds=5)
    assert health.can_serve
    assert health.up == (upstream.url,)
    assert set(health.down) == {nobody}


async def test_a_tier_without_backends_cannot_serve() -> None:
    assert not (await ask_health(tier(), timeout_seconds=1)).can_serve
