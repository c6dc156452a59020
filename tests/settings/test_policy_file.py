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


def test_an_empty_file_is_the_policy_of_defaults(minimal: dict[str, Any], write: Write) -> None:
    default = load(write(minimal), {}).policy
    read = read_policy(write(""))
    assert read.policy == default
    assert {each.origin for each in read.told} == {"default"}
