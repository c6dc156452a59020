from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.fleet import Fallback, KvGuard, Limits, Priority
from service.settings import Settings

Loaded = Callable[..., Settings]
Problems = Callable[..., list[str]]


def limited(minimal: dict[str, Any], **limits: object) -> dict[str, Any]:
    minimal["models"]["qwen"]["limits"] = limits
    return minimal


def test_nothing_is_limited_by_default(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(minimal).ladders["qwen"].limits == Limits()
    assert Limits().concurrency is Limits().max_request is Limits().max_output_tokens is None


def test_limits_belong_to_their_model(minimal: dict[str, Any], loaded: Loaded) -> None:
    minimal["models"]["llama"] = {"ladder": minimal["models"]["qwen"]["ladder"]}
    found = loaded(
        limited(
            minimal,
            concurrency=64,
            queue=0,
            queue_timeout="1500ms",
            max_request="1MiB",
            max_prompt_tokens="32k",
            max_output_tokens=4096,
            require_max_tokens=True,
        )
    ).proxy.ladders
    assert found["llama"].limits == Limits()
    assert found["qwen"].limits == Limits(
        concurrency=64,
        queue=0,
        queue_seconds=1.5,
        max_request=1024**2,
        max_prompt_tokens=32_000,
        max_output_tokens=4096,
        require_max_tokens=True,
    )


def test_a_request_may_wait_for_as_long_as_its_client_does(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(limited(minimal, queue_timeout="none")).ladders["qwen"].limits.queue_seconds is None


@pytest.mark.parametrize(
    "limits",
    [
        {"concurrency": 0},
        {"concurrency": True},
        {"queue": -1},
        {"queue_timeout": "30"},
        {"max_prompt_tokens": 0},
        {"max_output_tokens": "many"},
        {"require_max_tokens": "yes"},
        {"max_tokens": 3},
    ],
)
def test_what_is_no_limit_is_refused_with_its_place(
    limits: dict[str, object], minimal: dict[str, Any], problems: Problems
) -> None:
    (problem,) = problems(limited(minimal, **limits))
    assert f"models.qwen.limits.{next(iter(limits))}" in problem


def test_each_process_needs_a_request_of_its_own(minimal: dict[str, Any], problems: Problems) -> None:
    minimal["proxy"] = {"processes": 4}
    minimal["models"]["qwen"]["ladder"][1]["backends"] = [{"url": "http://b:1", "max_concurrency": 3}]
    backend, concurrency = problems(limited(minimal, concurrency=3))
    assert "models.qwen.limits.concurrency" in concurrency
    assert "4 processes cannot share it" in concurrency
    assert "models.qwen.ladder[1].backends[0].max_concurrency" in backend


def test_as_many_as_there_are_processes_can_be_shared(minimal: dict[str, Any], loaded: Loaded) -> None:
    minimal["proxy"] = {"processes": 4}
    assert loaded(limited(minimal, concurrency=4)).ladders["qwen"].limits.concurrency == 4


def test_a_model_cannot_take_more_than_is_read(minimal: dict[str, Any], problems: Problems) -> None:
    (problem,) = problems(limited(minimal, max_request="33MiB"))
    assert "models.qwen.limits.max_request" in problem
    assert "proxy.max_request" in problem


def test_a_kv_guard_reopens_a_twentieth_below_its_level(minimal: dict[str, Any], loaded: Loaded) -> None:
    found = loaded(limited(minimal, kv_guard={"above": "90%"})).ladders["qwen"].limits.kv_guard
    assert found == KvGuard(above=0.9, below=0.9 * 0.95, every=1.0, stale=5.0)
    said = {"above": "90%", "below": "70%", "every": "500ms", "stale": "2s"}
    told = loaded(limited(minimal, kv_guard=said)).proxy.ladders["qwen"].limits.kv_guard
    assert told == KvGuard(above=0.9, below=0.7, every=0.5, stale=2.0)


@pytest.mark.parametrize(
    ("guard", "place", "why"),
    [
        ({"above": 0}, ".above", "nothing would ever be let in"),
        ({"above": "80%", "below": "80%"}, ".below", "open and close with every look"),
        ({"above": "80%", "every": "3s"}, "", "`stale` is shorter than 2 looks"),
        ({"above": "80%", "stale": "1s"}, ".stale", "`stale` is shorter than 2 looks"),
        ({"below": "80%"}, "", "the key `above` is missing"),
        ({"above": 90}, ".above", "write 90% if that is meant"),
    ],
)
def test_a_kv_guard_that_cannot_work_is_refused(
    guard: dict[str, object], place: str, why: str, minimal: dict[str, Any], problems: Problems
) -> None:
    (problem,) = problems(limited(minimal, kv_guard=guard))
    assert f"models.qwen.limits.kv_guard{place}" in problem
    assert why in problem


def test_who_goes_first_and_where_a_full_tier_s_requests_go(minimal: dict[str, Any], loaded: Loaded) -> None:
    limits = loaded(
        limited(
            minimal,
            priority={"short": "4k"},
            fallback="rung_below",
            kv_guard={"above": "90%"},
        )
    )
    found = limits.proxy.ladders["qwen"].limits
    assert found.priority == Priority(short=4000, ahead=4)
    assert found.fallback is Fallback.RUNG_BELOW


def test_a_rung_below_that_is_never_full_is_no_fallback(
    minimal: dict[str, Any], problems: Problems, loaded: Loaded
) -> None:
    (problem,) = problems(limited(minimal, fallback="rung_below"))
    assert "models.qwen.limits.fallback" in problem
    assert "is never full" in problem
    bounded = [{"url": "http://a:1", "max_concurrency": 3}]
    minimal["models"]["qwen"]["ladder"][0]["backends"] = bounded
    assert loaded(limited(minimal, fallback="rung_below")).ladders["qwen"].limits.kv_guard is None


@pytest.mark.parametrize(
    "limits",
    [
        {"priority": {}},
        {"priority": {"short": 0}},
        {"priority": {"short": 10, "ahead": 0}},
        {"priority": "short"},
        {"fallback": "rung_above"},
    ],
)
def test_what_is_no_priority_or_fallback_is_refused(
    limits: dict[str, object], minimal: dict[str, Any], problems: Problems
) -> None:
    assert f"models.qwen.limits.{next(iter(limits))}" in "".join(problems(limited(minimal, **limits)))
