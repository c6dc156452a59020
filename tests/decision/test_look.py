"""One table judged alone."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.decision.look import LEAST_ALPHA, MOST_PAIRS, look
from service.decision.verdict import Decision


def test_a_table_is_judged_by_its_e_values_and_shown_with_single_looks() -> None:
    seen = look(n=1000, harm=12, benefit=10, margin=0.01, alpha=0.05)
    assert seen.finding.decision is Decision.UNDECIDED
    assert seen.finding.estimate == pytest.approx(0.002)
    assert seen.tango_p == pytest.approx(0.0549, abs=5e-5)
    assert seen.exact_p is not None
    assert seen.exact_p > seen.tango_p
    assert seen.tango_interval.lower < 0.002 < seen.tango_interval.upper
    assert seen.tango_interval.level == pytest.approx(0.9)
    assert math.exp(seen.limits.accept) == pytest.approx(20)
    assert math.exp(seen.limits.harm) == pytest.approx(20)


def test_a_single_look_that_passes_does_not_decide() -> None:
    seen = look(n=300, harm=0, benefit=0, margin=0.01, alpha=0.05)
    assert seen.exact_p is not None
    assert max(seen.exact_p, seen.tango_p) < 0.05
    assert seen.finding.decision is Decision.UNDECIDED


def test_without_pairs_there_is_no_z() -> None:
    seen = look(n=0, harm=0, benefit=0, margin=0.01, alpha=0.05)
    assert seen.tango_z is None
    assert seen.finding.decision is Decision.UNDECIDED
    assert seen.finding.more_pairs == 481


def test_many_discordant_pairs_are_not_enumerated() -> None:
    assert look(n=10_000, harm=80, benefit=80, margin=0.01, alpha=0.05).exact_p is None


@pytest.mark.parametrize(
    "extreme",
    [
        {"n": MOST_PAIRS, "harm": MOST_PAIRS // 2, "benefit": MOST_PAIRS // 2},
        {"n": MOST_PAIRS, "harm": 0, "benefit": 0},
        {"alpha": LEAST_ALPHA},
        {"margin": 1e-9},
        {"margin": 1 - 1e-9},
    ],
)
def test_the_extremes_are_numbers(extreme: dict[str, Any]) -> None:
    seen = look(**({"n": 1000, "harm": 12, "benefit": 10, "margin": 0.01, "alpha": 0.05} | extreme))
    assert seen.tango_z is not None
    assert math.isfinite(seen.tango_z)
    assert math.isfinite(seen.finding.log_e.noninferiority)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"harm": 600, "benefit": 600}, "cannot exceed n"),
        ({"harm": -1}, "negative"),
        ({"n": -5, "harm": 0, "benefit": 0}, "negative"),
        ({"n": MOST_PAIRS + 1}, "at most"),
        ({"margin": 0.0}, "margin"),
        ({"margin": math.nan}, "margin"),
        ({"alpha": 0.5}, "alpha"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_what_cannot_be_a_table_is_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        look(**({"n": 1000, "harm": 12, "benefit": 10, "margin": 0.01, "alpha": 0.05} | wrong))
