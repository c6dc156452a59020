"""What verdicts are asked under, as settings and a real database give it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from service.settings import load
from service.settings.questions import question_of
from service.store.sql.database import Database
from service.store.verdicts.observations import record_look
from service.store.verdicts.standing import read_standing
from tests.engines.test_pages import vllm_facts

FACTS = vllm_facts("auto", 46592)


def test_a_verdict_follows_what_the_engines_turn_out_to_be(
    minimal: dict[str, Any], write: Callable[[object], Path], database: Database
) -> None:
    settings = load(write(minimal), {})
    question = question_of(settings, database)
    assert question.epoch_of("qwen", "w8a8") == settings.epoch_of("qwen", "w8a8")
    assert question.attribution_of("qwen", "w8a8") is None
    record_look(
        database,
        {("qwen", "bf16"): {"a": FACTS}, ("qwen", "w8a8"): {"b": replace(FACTS, prefix_caching=False)}},
        now=1000.0,
    )
    verdict = read_standing(database, settings.ladders["qwen"], question, now=1000.0).rung("w8a8").verdict
    assert verdict is not None
    assert verdict.epoch != settings.epoch_of("qwen", "w8a8")
    assert "attribution: prefix caching: baseline on, candidate off" in verdict.reasons


def test_a_tier_whose_replicas_disagree_is_undecided_and_names_them(
    minimal: dict[str, Any], write: Callable[[object], Path], database: Database
) -> None:
    settings = load(write(minimal), {})
    record_look(
        database,
        {("qwen", "w8a8"): {"http://b:1": FACTS, "http://c:1": replace(FACTS, version="0.33.0")}},
        now=1000.0,
    )
    question = question_of(settings, database)
    verdict = read_standing(database, settings.ladders["qwen"], question, now=1000.0).rung("w8a8").verdict
    assert verdict is not None
    assert (
        "attribution: w8a8: its backends disagree: engine: http://b:1 vllm 0.32.0, http://c:1 vllm 0.33.0"
        in verdict.reasons
    )
