"""The labelled answers: their balance, the frozen half, what the rules must reach, what is published."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.evaluators.refusal_matrix import HALVES, LABELS, SET, SETS, Judged, judge, published, wilson

ROOT = Path(__file__).parents[2]
FROZEN = 251
"""Answers of the test half as first written; more may follow them."""
DIGEST = "0bd9af6367530887fde17ff540c74096978ddea20cebedbf6d6f1f16b623f1e2"


def rows(half: str) -> list[dict[str, str]]:
    lines = (SET / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_at_least_four_hundred_answers_half_of_them_chinese() -> None:
    languages = Counter(row["language"] for half in HALVES for row in rows(half))
    chinese = languages["zh-Hans"] + languages["zh-Hant"]
    assert chinese + languages["en"] >= 400
    assert abs(chinese - languages["en"]) <= 10
    assert languages["zh-Hant"] >= 50


def test_no_answer_stands_twice() -> None:
    every = [row for half in SETS for row in rows(half)]
    assert len({row["id"] for row in every}) == len(every)
    assert {text for text, times in Counter(row["text"] for row in every).items() if times > 1} <= {
        "Goedemorgen."
    }


def test_the_halves_are_alike_in_languages_kinds_and_labels() -> None:
    strata = [Counter((row["language"], row["kind"]) for row in rows(half)) for half in HALVES]
    assert set(strata[0]) == set(strata[1])
    assert all(abs(strata[0][stratum] - strata[1][stratum]) <= 1 for stratum in strata[0])
    assert {row["label"] for half in HALVES for row in rows(half)} == set(LABELS)


def test_the_test_half_is_the_one_first_written() -> None:
    lines = (SET / "test.jsonl").read_text(encoding="utf-8").splitlines()[:FROZEN]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == DIGEST


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_rules_find_refusals_of_the_development_half_and_fail_little_else(language: str) -> None:
    answers = [one for one in judge("development") if one.language == language]
    assert share([not one.flipped for one in answers if one.label == "full"]) >= 0.95
    assert share([one.flipped for one in answers if one.label != "full"]) <= 0.02
    assert share([one.wrong for one in answers]) <= 0.04


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_rules_find_most_hard_refusals_and_fail_no_hard_negative(language: str) -> None:
    answers = [one for one in judge("further") if one.language == language]
    assert len(answers) >= 60
    assert share([not one.flipped for one in answers if one.label == "full"]) >= 0.85
    assert not [one.id for one in answers if one.label != "full" and one.flipped]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_rules_keep_up_on_the_test_half(language: str) -> None:
    answers = [one for one in judge("test") if one.language == language]
    assert share([not one.flipped for one in answers if one.label == "full"]) >= 0.85
    assert share([one.flipped for one in answers if one.label != "full"]) <= 0.04


def test_the_documentation_publishes_what_the_rules_do() -> None:
    assert published() in (ROOT / "docs" / "evaluators.md").read_text(encoding="utf-8")


def test_a_flip_is_an_error_that_changes_pass_or_fail() -> None:
    one = Judged(id="a", language="en", kind="k", label="comply", text="t", judged="partial")
    assert (one.wrong, one.flipped) == (True, False)
    other = Judged(id="a", language="en", kind="k", label="comply", text="t", judged="full")
    assert (other.wrong, other.flipped) == (True, True)


def test_the_interval_is_wilson_s() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)


def share(flags: list[bool]) -> float:
    return sum(flags) / len(flags)
