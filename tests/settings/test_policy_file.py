"""A policy is read by itself from any file that holds one, and every value tells where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.decision.policy import Role
from service.settings import SettingsError, load
from service.settings.policy_file import Told, read_policy

Write = Callable[[object], Path]


def told(read: Any) -> dict[str, Told]:
    return {each.key: each for each in read.told}


@pytest.mark.parametrize("above", ["", "policy:\n  "])
def test_a_policy_alone_may_have_its_heading_or_not(above: str, write: Write) -> None:
    criteria = "{refusal: {margin: 3pp, role: shown}, structured_output: }"
    read = read_policy(write(f"{above}{{margin: 2pp, criteria: {criteria}}}\n"))
    named = {each.evaluator: (each.margin, each.role) for each in read.policy.criteria}
    assert named["refusal"] == (pytest.approx(0.03), Role.SHOWN)
    assert named["structured_output"] == (pytest.approx(0.02), Role.DECISIVE)
    assert [each.evaluator for each in read.policy.decisive] == ["structured_output"]
    assert read.candidates == {}


def test_every_value_has_its_source_and_its_line(write: Write) -> None:
    read = read_policy(
        write("min_pairs: 500\ncriteria:\n  refusal:\n    margin: 3pp\nalpha: {strata: 0.5%}\nlongest: 30d\n")
    )
    by_key = told(read)
    own = by_key["criteria.refusal.margin"]
    assert (own.value, own.origin, own.line) == ("3pp", "policy.criteria.refusal.margin", 4)
    inherited = by_key["criteria.refusal.min_pairs"]
    assert (inherited.value, inherited.origin, inherited.line) == ("500", "policy.min_pairs", 1)
    assert (by_key["alpha.strata"].value, by_key["alpha.strata"].line) == ("0.5%", 5)
    assert (by_key["longest"].value, by_key["longest"].line) == ("30d", 6)
    assert not any(each.value.endswith(".0") or "[" in each.value for each in read.told), "as people write"
    for key, value in (("alpha.accept", "5%"), ("idle", "30m"), ("criteria.refusal.max_pairs", "planned")):
        assert (by_key[key].value, by_key[key].origin, by_key[key].line) == (value, "default", None)


def test_what_it_reads_is_what_the_whole_configuration_has(minimal: dict[str, Any], write: Write) -> None:
    minimal["policy"] = {
        "criteria": {"refusal": {"margin": "2pp"}},
        "baseline_after_approval": "switched_off",
    }
    path = write(minimal)
    read = read_policy(path)
    assert read.policy == load(path, {}).policy
    assert read.candidates == {"qwen": ("w8a8",)}


def test_nothing_is_made_and_no_secret_is_read(minimal: dict[str, Any], write: Write, tmp_path: Path) -> None:
    minimal["models"]["qwen"]["ladder"][0]["backends"] = [
        {"url": "http://gpu-a:8000", "api_key_file": "/nowhere/key"}
    ]
    minimal["mirror"] = {"capture": {"key_file": "/nowhere/capture.key"}}
    assert read_policy(write(minimal)).policy.criteria
    assert [path.name for path in tmp_path.iterdir()] == ["tiergate.yaml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("margn: 1pp\n", "policy.margn (line 1): unknown key; did you mean `margin`?"),
        ("policy:\n  margn: 1pp\n", "policy.margn (line 2): unknown key; did you mean `margin`?"),
        ("criteria: {recall: {}}\n", "policy.criteria.recall (line 1): no evaluator has this name"),
        ("margin: 1pp\nmargin: 2pp\n", "policy.margin (line 2): this key is already set on line 1"),
        ("mirror: {}\npolicy: {}\n", "the key `models` is missing here"),
        ("criteria: {refusal: {role: shown}}\n", "policy.criteria (line 1): a policy without a decisive"),
        ("- margin\n", "line 1: expected keys and values"),
        ("margin: [\n", "this is not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, message: str, write: Write) -> None:
    with pytest.raises(SettingsError) as caught:
        read_policy(write(text))
    assert any(message in str(problem) for problem in caught.value.problems), caught.value


BELOW_HALF = "an error rate lies above 0% and below 50%, got"
MARGIN = "a margin lies above 0pp and below 100pp, got"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("margin: 0", f"policy.margin (line 1): {MARGIN} 0pp"),
        ("margin: 1", f"policy.margin (line 1): {MARGIN} 100pp"),
        ("margin: -1pp", "policy.margin (line 1): expected"),
        ("margin: true", "policy.margin (line 1): expected"),
        ("margin: .nan", "policy.margin (line 1): expected"),
        ("criteria:\n  refusal:\n    margin: 0pp", f"policy.criteria.refusal.margin (line 3): {MARGIN} 0pp"),
        ("alpha:\n  accept: 0%", f"policy.alpha.accept (line 2): {BELOW_HALF} 0%"),
        (
            "alpha:\n  accept: 95%",
            f"policy.alpha.accept (line 2): {BELOW_HALF} 95%; for a confidence of 95% write 5%",
        ),
        ("alpha:\n  harm: 1", f"policy.alpha.harm (line 2): {BELOW_HALF} 100%"),
        ("alpha:\n  warn: 50%", f"policy.alpha.warn (line 2): {BELOW_HALF} 50%"),
        ("alpha:\n  strata: 0", f"policy.alpha.strata (line 2): {BELOW_HALF} 0%"),
        ("alpha:\n  gates: 0", f"policy.alpha.gates (line 2): {BELOW_HALF} 0%"),
        ("tenant_share_cap: 0%", "policy.tenant_share_cap (line 1): this share lies above 0%, got 0%"),
        (
            "criteria:\n  refusal:\n    min_pairs: 500\n    max_pairs: 499",
            "policy.criteria.refusal.max_pairs (line 4): max_pairs of refusal must be at least its min_pairs",
        ),
        (
            "criteria:\n  refusal:\n    baseline_failure_cap: 0%",
            "policy.criteria.refusal.baseline_failure_cap (line 3): this share lies above 0%, got 0%",
        ),
        ("load_runs:\n  slo_margin: 0", f"policy.load_runs.slo_margin (line 2): {MARGIN} 0pp"),
        ("load_runs:\n  power: 100%", "policy.load_runs.power (line 2): this chance lies above 0% and below"),
        ("load_runs:\n  baseline_misses: 0", "policy.load_runs.baseline_misses (line 2): this share lies"),
        ("load_runs:\n  failure_weight: -1", "policy.load_runs.failure_weight (line 2): a multiple lies"),
        ("load_runs:\n  failure_weight: 1e308x", "policy.load_runs.failure_weight (line 2): expected a mult"),
        ("load_runs:\n  failure_weight: 1e308", "policy.load_runs.failure_weight (line 2): a multiple lies"),
    ],
)
def test_a_number_that_cannot_be_meant_is_told_once_with_its_key_and_its_line(
    text: str, message: str, write: Write
) -> None:
    with pytest.raises(SettingsError) as caught:
        read_policy(write(f"{text}\n"))
    (problem,) = caught.value.problems
    assert str(problem).startswith(message)


def test_what_a_policy_alone_says_nothing_below_is_the_default(write: Write) -> None:
    assert read_policy(write("policy:\n")).policy == read_policy(write("")).policy


def test_an_empty_file_is_the_policy_of_defaults(minimal: dict[str, Any], write: Write) -> None:
    default = load(write(minimal), {}).policy
    read = read_policy(write(""))
    assert read.policy == default
    assert {each.origin for each in read.told} == {"default"}
