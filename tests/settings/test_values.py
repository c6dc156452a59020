"""An epoch changes with everything that can change an answer or its judgement, and with nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from service.settings import Settings

Loaded = Callable[..., Settings]
LADDER = ("models", "qwen", "ladder")


def changed(content: dict[str, Any], place: tuple[str | int, ...], written: object) -> dict[str, Any]:
    other = copy.deepcopy(content)
    spot: Any = other
    for step in place[:-1]:
        spot = spot.setdefault(step, {}) if isinstance(spot, dict) else spot[step]
    spot[place[-1]] = written
    return other


def test_the_same_configuration_has_the_same_epoch(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(minimal).epoch_of("qwen", "w8a8") == loaded(minimal).epoch_of("qwen", "w8a8")


@pytest.mark.parametrize(
    ("place", "written"),
    [
        ((*LADDER, 1, "declares"), {"weights": "int8"}),
        ((*LADDER, 0, "declares"), {"engine": "vllm 0.32"}),
        ((*LADDER, 1, "model"), "qwen-w8a8"),
        (("policy", "margin"), "2pp"),
        (("policy", "alpha"), {"accept": "1%"}),
        (("policy", "criteria"), {"refusal": {}}),
        (("policy", "alpha"), {"strata": "2%"}),
        (("policy", "units"), "closed_conversations"),
        (("policy", "baseline_after_approval"), "switched_off"),
        (("probe", "max_tokens"), 1024),
        (("probe", "planted"), 1),
        (("models", "qwen", "probe"), {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}),
    ],
)
def test_what_changes_answers_or_their_judgement_starts_a_new_epoch(
    place: tuple[str | int, ...], written: object, minimal: dict[str, Any], loaded: Loaded
) -> None:
    before = loaded(minimal).epoch_of("qwen", "w8a8")
    assert loaded(changed(minimal, place, written)).epoch_of("qwen", "w8a8") != before


@pytest.mark.parametrize(
    ("place", "written"),
    [
        ((*LADDER, 1, "backends"), ["http://elsewhere:9000"]),
        ((*LADDER, 1, "price_per_hour"), 60),
        ((*LADDER, 0, "shadow"), ["http://spare:8000"]),
        (("mirror", "sample"), "50%"),
        (("policy", "gates"), {"slo": "off"}),
        (("policy", "min_pairs"), 20),
        (("policy", "longest"), "30d"),
        (("policy", "tenant_share_cap"), "50%"),
        (("policy", "load_runs"), {"slo_margin": "0.5pp"}),
        (("policy", "alpha"), {"gates": "1%"}),
        (("money",), {"failure": {"retry": "2x"}}),
    ],
)
def test_what_changes_no_answer_keeps_the_epoch(
    place: tuple[str | int, ...], written: object, minimal: dict[str, Any], loaded: Loaded
) -> None:
    before = loaded(minimal).epoch_of("qwen", "w8a8")
    assert loaded(changed(minimal, place, written)).epoch_of("qwen", "w8a8") == before


def test_each_tier_has_its_own_epoch_and_unknown_names_have_none(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    found = loaded(minimal)
    assert found.epoch_of("qwen", "w8a8") != found.epoch_of("qwen", "bf16")
    for model, tier in (("qwen", "w4a16"), ("other", "bf16")):
        with pytest.raises(KeyError):
            found.epoch_of(model, tier)


def test_a_criterion_that_is_only_shown_may_come_and_go_and_one_that_decides_may_not(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    def epoch(**criteria: dict[str, str]) -> str:
        return loaded(changed(minimal, ("policy", "criteria"), criteria)).epoch_of("qwen", "w8a8")

    alone = epoch(refusal={})
    assert epoch(refusal={}, structured_output={"role": "shown"}) == alone
    assert epoch(refusal={}, structured_output={"role": "muted"}) == alone
    assert epoch(refusal={}, structured_output={}) != alone
    assert epoch(refusal={"max_pairs": "9k"}) == alone
