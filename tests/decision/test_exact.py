"""The exact unconditional p against a brute-force enumeration in R, and against one here."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.decision import exact, tango

ORACLE = json.loads((Path(__file__).parent / "oracles" / "exact_unconditional_R.json").read_text())


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda case: f"{case['b']}-{case['c']}-{case['n']}")
def test_p_agrees_with_enumeration_in_r(case: dict[str, Any]) -> None:
    found = exact.exact_p(case["b"], case["c"], case["n"], case["delta"])
    assert found == pytest.approx(case["p"], abs=ORACLE["tolerance"])
    # The R numbers are a maximum over a coarser grid: ours must not be below it.
    assert found >= case["p"] - 1e-9


@pytest.mark.parametrize(
    ("harm", "benefit", "n", "margin"), [(1, 2, 15, 0.1), (0, 0, 12, 0.2), (3, 1, 18, 0.15)]
)
def test_p_is_the_worst_case_over_all_tables_as_extreme(
    harm: int, benefit: int, n: int, margin: float
) -> None:
    observed = tango.z(harm, benefit, n, margin)
    extreme = [
        (i, j) for i in range(n + 1) for j in range(n + 1 - i) if tango.z(i, j, n, margin) <= observed + 1e-9
    ]
    worst = max(
        math.fsum(
            math.comb(n, i)
            * math.comb(n - i, j)
            * (q + margin) ** i
            * q**j
            * (1 - 2 * q - margin) ** (n - i - j)
            for i, j in extreme
        )
        for q in np.linspace(0, (1 - margin) / 2, 400)
    )
    assert exact.exact_p(harm, benefit, n, margin) == pytest.approx(worst, abs=2e-5)


def test_zero_discordance_passes_one_point_from_299_pairs() -> None:
    assert exact.exact_p(0, 0, 298, 0.01) == pytest.approx(0.99**298, rel=1e-9)
    assert exact.exact_p(0, 0, 298, 0.01) > 0.05
    assert exact.exact_p(0, 0, 299, 0.01) <= 0.05


@pytest.mark.parametrize(("harm", "benefit", "n"), [(12, 10, 1000), (0, 1, 268), (3, 6, 500), (5, 5, 5)])
def test_a_search_inside_the_interval_costs_little_more_than_gamma(harm: int, benefit: int, n: int) -> None:
    if harm + benefit > n:
        harm, benefit = n, 0
    full = exact.exact_p(harm, benefit, n, 0.01)
    inside = exact.exact_p(harm, benefit, n, 0.01, gamma=1e-6)
    assert inside <= full + 1.1e-6
    assert inside > full * 0.9


def test_all_benefits_are_no_obstacle() -> None:
    assert exact.exact_p(0, 20, 20, 0.01, gamma=1e-6) < 1e-5


def test_many_pairs_are_searched_inside_the_interval_and_pay_gamma() -> None:
    assert exact.exact_p(0, 0, 10_000_000, 0.01) == pytest.approx(exact.GAMMA, rel=1e-6)


def test_without_pairs_nothing_is_shown() -> None:
    assert exact.exact_p(0, 0, 0, 0.01) == 1


def test_every_pair_a_harm_is_no_evidence_of_noninferiority() -> None:
    assert exact.exact_p(30, 0, 30, 0.01) == pytest.approx(1)


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.01])
def test_a_margin_is_inside_zero_and_one(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        exact.exact_p(0, 0, 10, margin)


def test_enumeration_is_cheap_for_few_pairs_or_few_discordant_ones() -> None:
    assert exact.is_cheap(2000, 2000, 5000)
    assert exact.is_cheap(60, 40, 10_000_000)
    assert not exact.is_cheap(60, 41, 5001)


def test_it_holds_its_size_where_tango_does_not() -> None:
    """Statistics B1.2 at n = 268, theta = .01, no benefits: Tango .0676, exact .0490."""
    n, margin = 268, 0.01
    tail = {"tango": 0.0, "exact": 0.0}
    for harms in range(n + 1):
        mass = math.comb(n, harms) * margin**harms * (1 - margin) ** (n - harms)
        if mass < 1e-12:
            break
        tail["tango"] += mass * (tango.noninferiority_p(harms, 0, n, margin) <= 0.05)
        tail["exact"] += mass * (exact.exact_p(harms, 0, n, margin) <= 0.05)
    assert tail["tango"] == pytest.approx(0.0676, abs=5e-5)
    assert tail["exact"] <= 0.05
