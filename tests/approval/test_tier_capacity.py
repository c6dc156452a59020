"""Advice about a tier's capacity over HTTP: from what is stored, and nothing where nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from service.capacity.prefix_gate import Reading
from service.capacity.prefix_window import Look
from service.engines.facts import EngineFacts
from service.store.access import tokens
from service.store.load.engine_readings import record_readings
from service.store.load.jobs import Job
from service.store.load.tier_capacity import read_capacity
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from service.store.verdicts.observations import record_look
from tests.approval.live import LiveApi
from tests.approval.reporting import reporting_api

CAPACITY = "/api/v1/models/{}/tiers/{}/capacity"
HOUR = 3600.0


@pytest.fixture
def measured(sqlite_database: Database, captures: Captures) -> Iterator[tuple[LiveApi, Job]]:
    """An API with a job of model `m` that is over."""
    with reporting_api(sqlite_database, captures) as found:
        yield found


def told(api: LiveApi, model: str, tier: str) -> Any:
    found = api.client().get(CAPACITY.format(model, tier))
    assert found.status_code == 200, found.text
    return found.json()


def test_where_nothing_is_stored_nothing_is_claimed(sqlite_api: LiveApi) -> None:
    found = told(sqlite_api, "org/model", "w8a8")
    assert (found["engines"], found["prefix"], found["load_run"], found["batch"]) == ([], None, None, None)
    assert found["causes"] == []
    assert found["not_judged"] == ["ttft", "tpot", "memory", "cost"], "which is not the same as well"
    assert {each["state"] for each in found["patterns"]} == {"not_told"}


def test_the_last_load_run_tells_where_to_begin_and_what_hurts(measured: tuple[LiveApi, Job]) -> None:
    api, job = measured
    found = told(api, "m", "w8a8")
    assert found["load_run"]["job"] == job.job_id
    assert found["batch"]["start"]["reason"]
    assert [each["concurrency"] for each in found["batch"]["costs"]["curve"]] == sorted(
        {each["concurrency"] for each in found["batch"]["costs"]["curve"]}
    )
    assert found["batch"]["costs"]["currency"] == "EUR"
    assert "ttft" not in found["not_judged"]
    assert "memory" in found["not_judged"], "no engine of that run told anything"


def test_the_baseline_has_capacity_too_and_unknown_names_are_404(measured: tuple[LiveApi, Job]) -> None:
    api, _ = measured
    assert told(api, "m", "bf16")["tier"] == "bf16"
    for path in (CAPACITY.format("m", "w9"), CAPACITY.format("n", "w8a8")):
        assert api.client().get(path).status_code == 404


def test_engines_tell_what_their_caches_hold(sqlite_api: LiveApi) -> None:
    facts = EngineFacts(
        engine="vllm",
        version="0.32.0",
        kv_dtype="fp8_e4m3",
        kv_tokens=93184,
        kv_bytes=1 << 30,
        max_model_len=4096,
    )
    record_look(sqlite_api.db, {("org/model", "w8a8"): {"http://a:1": facts}}, now=sqlite_api.clock.at)
    (engine,) = told(sqlite_api, "org/model", "w8a8")["engines"]
    assert (engine["kv_tokens"], engine["sequences"]) == (93184, 22)
    assert engine["token_bytes"] == pytest.approx((1 << 30) / 93184)


def day(now: float, *, rate: float, backend: str = "http://a:1") -> list[Look]:
    """A word every quarter of an hour for a day and a bit; 1000 tokens a time."""
    return [
        Look(
            backend=backend,
            at=now - 25 * HOUR + 900 * place,
            reading=Reading(prefill_tokens=1000.0 * place, reused_tokens=1000.0 * rate * place),
            running=3.0,
        )
        for place in range(101)
    ]


def test_a_day_of_counters_is_a_verdict_on_the_prefix_cache(sqlite_api: LiveApi) -> None:
    for look in day(sqlite_api.clock.at, rate=0.62):
        record_readings(sqlite_api.db, {("org/model", "bf16", look.backend): look})
    found = told(sqlite_api, "org/model", "bf16")["prefix"]
    assert found["advice"] == "linear"
    assert found["rate"] == pytest.approx(0.62)
    assert found["hours"] >= 24
    assert found["concurrency"] == 3.0
    sqlite_api.clock.at += 3 * HOUR
    assert told(sqlite_api, "org/model", "bf16")["prefix"] is None, "nobody has looked for hours"


def test_a_large_limit_without_concurrency_is_named(sqlite_api: LiveApi) -> None:
    ladder = sqlite_api.config.ladders["org/model"]
    base = replace(ladder.baseline, declares={"max_num_seqs": "256", "weights": "bf16"})
    known = dict(sqlite_api.config.ladders)
    known["org/model"] = replace(ladder, tiers=(base, *ladder.tiers[1:]))
    for look in day(sqlite_api.clock.at, rate=0.4):
        record_readings(sqlite_api.db, {("org/model", "bf16", look.backend): look})
    found = read_capacity(
        sqlite_api.db, known["org/model"], "bf16", accepted=None, unit=64, now=sqlite_api.clock.at
    )
    states = {each.pattern: (each.state, each.reason) for each in found.patterns}
    assert states["empty batch"] == (
        "found",
        "up to 256 may run at once, and 3 did at most: "
        "lower max-num-seqs, and give the memory to the KV cache",
    )


def test_a_token_of_another_model_is_refused(sqlite_api: LiveApi) -> None:
    secret = tokens.create(
        sqlite_api.db, name="other", scopes=["read"], now=sqlite_api.clock.at, models=["another"]
    )
    client = sqlite_api.client(Authorization=f"Bearer {secret}")
    assert client.get(CAPACITY.format("org/model", "w8a8")).status_code == 403
