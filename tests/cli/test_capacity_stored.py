"""`tiergate capacity prefix --observed` and `replay --captured`: what the database tells."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from service.capacity.prefix_gate import Reading
from service.capacity.prefix_window import Look
from service.store.kept.prompt_prefixes import PromptPrefix, keep_prefix_within
from service.store.load.engine_readings import record_readings
from service.store.sql.database import Database, open_database
from tests.cli.test_capacity import ran

URL = "http://127.0.0.1:9"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "tiergate.yaml"
    file.write_text(f"models:\n  my/model:\n    ladder: [{{tier: bf16, backends: ['{URL}']}}]\n")
    return file


@pytest.fixture
def stored(config: Path) -> Iterator[Database]:
    state = config.parent / ".tiergate"
    state.mkdir()
    opened = open_database(f"sqlite:///{state / 'tiergate.db'}")
    yield opened
    opened.close()


def told(database: Database, hours: float, *, rate: float, until: float = 0.0) -> None:
    """A word every quarter of an hour."""
    now = time.time() - until
    for step in range(round(4 * hours) + 1):
        at = now - 3600 * hours + 900 * step
        reading = Reading(
            prefill_tokens=1000.0 * step,
            reused_tokens=1000.0 * step * rate,
            prefill_seconds=1.0 * step,
            decode_seconds=1.0 * step,
        )
        look = Look(backend=URL, at=at, reading=reading, running=12.0)
        record_readings(database, {("my/model", "bf16", URL): look})


def captured(database: Database, *prompts: tuple[str, tuple[int, ...]], share: float = 1.0) -> None:
    """Prompts of these tenants and names, a second apart."""
    with database.write() as connection:
        for number, (tenant, named) in enumerate(prompts):
            kept = PromptPrefix(
                capture_id=f"c{number}",
                model="my/model",
                tenant=tenant,
                at=1000.0 + number,
                tokens=64 * len(named),
                named=named,
                share=share,
                together=number % 2 == 0,
            )
            keep_prefix_within(database, connection, kept, expires_at=1e12)


def asked(config: Path, *arguments: str) -> Result:
    return ran(*arguments, "-c", str(config))


def document(config: Path, *arguments: str, exit_code: int = 0) -> Any:
    outcome = asked(config, *arguments, "--json")
    assert outcome.exit_code == exit_code, outcome.output
    return json.loads(outcome.stdout)


def test_a_day_of_observations_ends_in_a_verdict(config: Path, stored: Database) -> None:
    told(stored, 25, rate=0.7)
    named = [
        ("a", (talk, *range(100 * talk, 100 * talk + turn))) for talk in range(1, 13) for turn in (9, 12)
    ]
    captured(stored, *named)
    found = document(config, "prefix", "--observed", "my/model", "bf16")
    assert (found["advice"], found["hours"]) == ("own_pool", pytest.approx(24.0, abs=0.3))
    assert (found["rate"], found["prefill_share"]) == (pytest.approx(0.7), pytest.approx(0.5))
    assert found["doubts"] == []
    outcome = asked(config, "prefix", "--observed", "my/model", "bf16")
    assert "this traffic deserves a pool of its own" in outcome.output


def test_what_captured_prompts_share_is_a_precondition(config: Path, stored: Database) -> None:
    told(stored, 25, rate=0.7)
    captured(stored, ("a", (1, 2)), ("a", (1, 3)))
    found = document(config, "prefix", "--observed", "my/model", "bf16")
    assert [doubt.split(":")[0] for doubt in found["doubts"]] == [
        "prefixes of 64 tokens",
        "1 distinct prefixes, not tens",
    ]
    given = ("--prefixes", "40", "--prefix-tokens", "900")
    assert document(config, "prefix", "--observed", "my/model", "bf16", *given)["doubts"] == []


def test_less_than_a_day_waits(config: Path, stored: Database) -> None:
    told(stored, 6, rate=0.7)
    found = document(config, "prefix", "--observed", "my/model", "bf16", exit_code=3)
    assert (found["advice"], found["hours"]) == ("wait", pytest.approx(6.0))


@pytest.mark.parametrize("hours_ago", [None, 3.0])
def test_who_told_nothing_lately_is_said_to(hours_ago: float | None, config: Path, stored: Database) -> None:
    if hours_ago is not None:
        told(stored, 25, rate=0.7, until=3600 * hours_ago)
    outcome = asked(config, "prefix", "--observed", "my/model", "bf16")
    assert outcome.exit_code == 3
    assert ("not once" in outcome.output) is (hours_ago is None)
    assert "SGLang needs --enable-metrics" in outcome.output


def test_captured_prompts_have_a_curve(config: Path, stored: Database) -> None:
    captured(stored, ("a", (1, 2, 3)), ("a", (1, 2, 4)), ("b", (1, 2, 3)), ("a", (1, 2, 3)))
    found = document(config, "replay", "--captured", "my/model")
    assert found["requests"] == 4
    assert found["prefill_tokens"] == 4 * 192
    assert found["unlimited_rate"] == pytest.approx((128 + 176) / 768)
    assert found["captured"] == {"share": 1.0, "whole": 0.5}
    across = document(config, "replay", "--captured", "my/model", "--across-tenants")
    assert across["unlimited_rate"] == pytest.approx((128 + 176 + 176) / 768)


def test_tenants_are_told_apart_and_what_pools_of_their_own_would_give(
    config: Path, stored: Database
) -> None:
    flood = [("b", (100 * number, 100 * number + 1)) for number in range(1, 9)]
    mixed = [each for number in range(8) for each in (("a", (1, 2)), flood[number])]
    captured(stored, *mixed)
    found = document(config, "replay", "--captured", "my/model", "--pool", "128")
    a, b = found["tenants"]
    assert (a["tenant"], a["shared_rate"], a["own_rate"]) == ("a", 0.0, pytest.approx(7 * 64 / (8 * 128)))
    assert (b["tenant"], b["shared_rate"], b["own_rate"]) == ("b", 0.0, 0.0)


def test_of_a_sample_sizes_are_of_all_traffic(config: Path, stored: Database) -> None:
    captured(stored, ("a", (1, 2, 3)), ("a", (1, 2, 3)), share=0.05)
    found = document(config, "replay", "--captured", "my/model")
    assert found["distinct_blocks"] == 20 * 12
    assert found["curve"][-1]["tokens"] == 20 * 192
    outcome = asked(config, "replay", "--captured", "my/model")
    assert "0.05 of the traffic was sampled: sizes are for all of it. 50% of these requests" in outcome.output


def test_without_captured_prompts_the_next_step_is_told(config: Path, stored: Database) -> None:
    outcome = asked(config, "replay", "--captured", "my/model")
    assert outcome.exit_code == 3
    assert "unless `corpus.prefixes` is 0" in outcome.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("prefix", "--observed", "model", "bf16"), "did you mean 'my/model'?"),
        (("prefix", "--observed", "my/model", "bf"), "has no tier 'bf'; did you mean 'bf16'?"),
        (("prefix", "--observed", "my/model", "bf16", "--reused-tokens", "3"), "not several"),
        (("prefix", "x.prom", "--observed", "my/model", "bf16"), "not several"),
        (("replay",), "give traces, or --captured MODEL"),
        (("replay", "x.jsonl", "--captured", "my/model"), "give traces, or --captured MODEL"),
        (("replay", "--captured", "my/model", "--unit", "512"), "--unit is of traces"),
        (("replay", "--captured", "my/model", "--across-tenants", "--pool", "9"), "there is but one"),
        (("replay", "x.jsonl", "--across-tenants"), "is of captured prompts"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    arguments: tuple[str, ...], told: str, config: Path, stored: Database
) -> None:
    outcome = asked(config, *arguments)
    assert outcome.exit_code == 2, outcome.output
    assert told in " ".join(outcome.output.replace("│", " ").split())


def test_without_a_database_nothing_is_made(config: Path) -> None:
    outcome = asked(config, "replay", "--captured", "my/model")
    assert outcome.exit_code == 2
    assert "workers" in outcome.output
    assert not (config.parent / ".tiergate" / "tiergate.db").exists()
