"""Shared error rates: thresholds, attempts, Holm against R, e-Holm against the closed test."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.multiplicity import attempt_alpha, holm, log_e_holm, log_harm_threshold

ORACLE = json.loads((Path(__file__).parent / "oracles" / "holm_R.json").read_text())


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_holm_agrees_with_r(case: dict[str, Any]) -> None:
    assert holm(case["p"]) == pytest.approx(case["holm"], abs=1e-12)


@pytest.mark.parametrize(("criteria", "tiers", "threshold"), [(3, 1, 60), (3, 2, 120), (1, 1, 20)])
def test_harm_is_held_to_the_number_of_criteria_and_tiers(criteria: int, tiers: int, threshold: int) -> None:
    assert log_harm_threshold(criteria=criteria, tiers=tiers, alpha=0.05) == pytest.approx(
        math.log(threshold)
    )


@pytest.mark.parametrize(("criteria", "tiers"), [(0, 1), (1, 0)])
def test_nothing_under_test_is_refused(criteria: int, tiers: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        log_harm_threshold(criteria=criteria, tiers=tiers, alpha=0.05)


def test_all_attempts_together_err_at_most_alpha() -> None:
    spent = math.fsum(attempt_alpha(0.05, attempt) for attempt in range(1, 100_000))
    assert 0.05 - 1e-6 < spent < 0.05
    assert attempt_alpha(0.05, 2) == pytest.approx(attempt_alpha(0.05, 1) / 4)


def test_attempts_count_from_one() -> None:
    with pytest.raises(ValueError, match="count from 1"):
        attempt_alpha(0.05, 0)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=5))
def test_e_holm_is_the_closed_test_by_averages(log_e: list[float]) -> None:
    for r, adjusted in enumerate(log_e_holm(log_e)):
        others = [i for i in range(len(log_e)) if i != r]
        least = min(
            math.log(math.fsum(math.exp(log_e[i]) for i in (r, *chosen)) / (len(chosen) + 1))
            for size in range(len(others) + 1)
            for chosen in itertools.combinations(others, size)
        )
        assert adjusted == pytest.approx(least, abs=1e-9)


def test_e_holm_does_not_overflow_and_knows_bankruptcy() -> None:
    huge, broke = log_e_holm([15000.0, -math.inf])
    assert huge == pytest.approx(15000 - math.log(2))
    assert broke == -math.inf
    assert log_e_holm([-math.inf, -math.inf]) == (-math.inf, -math.inf)
    assert log_e_holm([]) == ()
