"""McNemar's tests against R and the published example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.decision import mcnemar

ORACLES = Path(__file__).parent / "oracles"
COMPUTED = json.loads((ORACLES / "paired_binary_R.json").read_text())
PUBLISHED = json.loads((ORACLES / "published.json").read_text())


@pytest.mark.parametrize("case", COMPUTED["cases"], ids=lambda case: f"{case['b']}-{case['c']}-{case['n']}")
def test_p_values_agree_with_r(case: dict[str, Any]) -> None:
    tolerance = COMPUTED["tolerance"]["p"]
    assert mcnemar.exact_p(case["b"], case["c"]) == pytest.approx(case["mcnemar_exact"], abs=tolerance)
    assert mcnemar.mid_p(case["b"], case["c"]) == pytest.approx(case["mcnemar_midp"], abs=tolerance)
    assert mcnemar.harm_p(case["b"], case["c"]) == pytest.approx(case["mcnemar_harm_exact"], abs=tolerance)


@pytest.mark.parametrize(
    "case", [case for case in PUBLISHED["mcnemar"] if "exact" in case], ids=lambda case: case["src"]
)
def test_p_values_agree_with_the_published_example(case: dict[str, Any]) -> None:
    assert mcnemar.exact_p(case["b"], case["c"]) == pytest.approx(case["exact"], abs=case["tol"])
    if "midp" in case:
        assert mcnemar.mid_p(case["b"], case["c"]) == pytest.approx(case["midp"], abs=case["tol"])


def test_without_a_discordant_pair_there_is_no_difference() -> None:
    assert mcnemar.exact_p(0, 0) == mcnemar.mid_p(0, 0) == mcnemar.harm_p(0, 0) == 1


def test_ten_million_discordant_pairs_are_still_a_probability() -> None:
    assert mcnemar.mid_p(5_000_000, 5_000_000) == pytest.approx(1, abs=2e-4)
    assert 0 <= mcnemar.mid_p(5_004_000, 4_996_000) < 0.02
