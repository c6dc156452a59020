"""Methods that never approve, against R and the published tables, and how often they would be wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from service.decision import exact, newcombe, planning, tango
from tests.decision import group_sequential, refused
from tests.decision.refused import Limits

ORACLES = Path(__file__).parent / "oracles"
COMPUTED = json.loads((ORACLES / "refused_R.json").read_text())
PUBLISHED = json.loads((ORACLES / "published.json").read_text())
SEQUENTIAL = json.loads((ORACLES / "group_sequential_gsDesign.json").read_text())
PLANNING = json.loads((ORACLES / "planning_R.json").read_text())
CASES = [pytest.param(case, id=f"{case['b']}-{case['c']}-{case['n']}") for case in COMPUTED["cases"]]
METHODS: dict[str, Callable[[float, float, float, float], Limits]] = {
    "wald": refused.wald,
    "agresti_min": refused.agresti_min,
    "bonett_price": refused.bonett_price,
    "scas": refused.scas,
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", METHODS)
def test_limits_agree_with_r(case: dict[str, Any], name: str) -> None:
    told = case[f"{name}_ci95"]
    if told is not None:
        found = METHODS[name](case["b"], case["c"], case["n"], 0.95)
        assert found == pytest.approx(told, abs=COMPUTED["tolerance"]["ci"])


@pytest.mark.parametrize(
    "case",
    [each for each in PUBLISHED["cases"] if each["method"] in METHODS],
    ids=lambda case: f"{case['method']} {case['src']}",
)
def test_limits_agree_with_the_published_tables(case: dict[str, Any]) -> None:
    both, first, second, neither = case["x"]
    found = METHODS[case["method"]](first, second, both + first + second + neither, case["conf"])
    assert found == pytest.approx(case["ci"], abs=case["tol"])


@pytest.mark.parametrize("case", CASES)
def test_mcnemar_with_continuity_agrees_with_r(case: dict[str, Any]) -> None:
    found = refused.mcnemar_continuity_p(case["b"], case["c"])
    assert found == pytest.approx(case["mcnemar_cc"], abs=COMPUTED["tolerance"]["p"])


def test_mcnemar_with_continuity_agrees_with_the_published_examples() -> None:
    for case in PUBLISHED["mcnemar"]:
        told = case.get("asymptotic_cc", case.get("p_cc"))
        if told is not None:
            assert refused.mcnemar_continuity_p(case["b"], case["c"]) == pytest.approx(told, abs=case["tol"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.values[0]["fay_lumbard_upper95"] is not None]
)
def test_the_melded_exact_test_agrees_with_r(case: dict[str, Any]) -> None:
    b, c, n, tolerance = case["b"], case["c"], case["n"], COMPUTED["tolerance"]["fay_lumbard"]
    assert refused.fay_lumbard_p(b, c, n, 0.01) == pytest.approx(case["fay_lumbard_ni_p"], abs=tolerance)
    assert refused.fay_lumbard_upper(b, c, n, 0.05) == pytest.approx(
        case["fay_lumbard_upper95"], abs=tolerance
    )


def test_the_published_interval_of_the_melded_exact_test() -> None:
    (case,) = (each for each in PUBLISHED["mcnemar"] if "ci95_two_sided_fay_lumbard" in each)
    upper = refused.fay_lumbard_upper(case["b"], case["c"], 21, 0.025)
    lower = -refused.fay_lumbard_upper(case["c"], case["b"], 21, 0.025)
    assert (lower, upper) == pytest.approx(case["ci95_two_sided_fay_lumbard"], abs=2e-4)


def test_its_upper_limit_without_a_discordant_pair_is_the_rule_of_three() -> None:
    assert refused.fay_lumbard_upper(0, 0, 299, 0.05) == pytest.approx(1 - 0.05 ** (1 / 299), abs=1e-4)


@pytest.mark.parametrize("case", SEQUENTIAL["cases"], ids=lambda case: f"{case['spending']}-{case['info']}")
def test_bounds_of_planned_looks_agree_with_gs_design(case: dict[str, Any]) -> None:
    spending = {"LDOF": group_sequential.obrien_fleming, "LDPocock": group_sequential.pocock}[
        case["spending"]
    ]
    alpha, tolerance = case["alpha_one_sided"], SEQUENTIAL["tolerance"]
    spent = [spending(alpha, information) for information in case["info"]]
    assert spent == pytest.approx(case["cum_alpha"], rel=1e-9)
    assert group_sequential.bounds(spending, alpha, case["info"]) == pytest.approx(case["z"], abs=tolerance)


def test_bounds_of_planned_looks_agree_with_the_published_ones() -> None:
    case = PUBLISHED["group_sequential"]
    found = group_sequential.bounds(group_sequential.obrien_fleming, 0.025, [0.2, 0.4, 0.6, 0.8, 1])
    assert found == pytest.approx(case["z"], abs=case["tol"])


def wald_pairs(psi: float, theta: float, delta: float, alpha: float, power: float) -> float:
    """Lu & Bean 1995 (Stat Med 14:1831): as if the variance at the margin were that of the truth."""
    return float((ndtri(1 - alpha) + ndtri(power)) ** 2 * (psi - theta**2) / (delta - theta) ** 2)


@pytest.mark.parametrize(
    "case",
    PLANNING["cases"],
    ids=lambda case: "-".join(f"{case[name]:g}" for name in ("delta", "theta", "psi", "alpha", "power")),
)
def test_a_sample_planned_by_wald_agrees_with_r(case: dict[str, float]) -> None:
    found = wald_pairs(case["psi"], case["theta"], case["delta"], case["alpha"], case["power"])
    assert found == pytest.approx(case["n_wald"], rel=PLANNING["tolerance_rel"])


def test_a_sample_planned_by_wald_agrees_with_the_published_example() -> None:
    case = PUBLISHED["sample_size"]
    found = wald_pairs(case["sigma2"], 0.0, case["effect"], case["alpha_one_sided"], case["power"])
    assert math.ceil(found) == case["n"]


def test_a_sample_planned_by_wald_is_too_small_where_events_are_rare() -> None:
    """Statistics B4: 429 instead of 762 pairs at a discordance of .5 %."""
    assert wald_pairs(0.005, 0, 0.01, 0.05, 0.9) == pytest.approx(429, abs=1)
    ours = planning.fixed_pairs(margin=0.01, discordance=0.005, alpha=0.05, power=0.9)
    assert ours == pytest.approx(762, abs=1)


def test_walds_size_is_the_one_that_equivnoninf_prints() -> None:
    """mcnasc_ni(0.05, 50, 0.05, sw=0.05): SIZE_unc = .08287665, the sup over discordances in steps of sw."""
    n, margin, z = 50, 0.05, refused.quantile(0.9)

    def approves(b: int, c: int) -> bool:
        variance = b + c - (b - c) ** 2 / n
        return variance > 0 and (b - c - n * margin) / math.sqrt(variance) < -z

    tables = refused.approved(approves, n, n)
    sizes = [refused.size(tables, n, margin, (psi - margin) / 2) for psi in np.arange(0.05, 1.0, 0.05)]
    assert max(sizes) == pytest.approx(0.08287665, abs=1e-8)


def by_limit(limits: Callable[[float, float, float, float], Limits], n: int) -> Callable[[int, int], bool]:
    return lambda b, c: limits(b, c, n, 0.9)[1] < 0.01


SIZES = {
    # Statistics B1.2: margin one point, alpha .05, the worst benefit rate up to 5 %.
    268: {"tango": 0.0676, "wald": 0.251, "agresti_min": 0.0676, "bonett_price": 0.0676},
    300: {"tango": 0.0492, "wald": 0.198, "agresti_min": 0.0717, "bonett_price": 0.0490},
}


def rising(rule: Callable[[int, int], bool]) -> Callable[[int, int], bool]:
    """The same rule, asked no further than to the first number of harms that it does not approve."""

    @cache
    def approves(b: int, c: int) -> bool:
        return (b == 0 or approves(b - 1, c)) and rule(b, c)

    return approves


@pytest.mark.parametrize("n", SIZES)
def test_what_never_approves_would_err_too_often(n: int) -> None:
    rules: dict[str, Callable[[int, int], bool]] = {
        name: by_limit(METHODS[name], n) for name in ("wald", "agresti_min", "bonett_price")
    }
    rules["tango"] = lambda b, c: tango.noninferiority_p(b, c, n, 0.01) <= 0.05
    for name, rule in rules.items():
        tables = refused.approved(rising(rule), n, 50)
        worst = max(refused.size(tables, n, 0.01, q) for q in [0.0, *np.geomspace(2e-4, 0.05, 40)])
        assert worst == pytest.approx(SIZES[n][name], abs=1e-3), name
    # Of more than ten benefits hardly any table comes where these are rare.
    ours = refused.approved(rising(lambda b, c: exact.exact_p(b, c, n, 0.01) <= 0.05), n, 10)
    assert 0.03 < max(refused.size(ours, n, 0.01, q) for q in [0.0, *np.geomspace(2e-4, 0.006, 20)]) <= 0.05


def test_newcombes_limit_errs_little() -> None:
    """Statistics B1.2, with .5 % of pairs that fail in both arms: .0490 at 268 pairs."""
    n, both = 268, 1

    def approves(b: int, c: int) -> bool:
        if both + b + c > n:
            return False
        limits = newcombe.interval(both_failed=both, harm=b, benefit=c, n=n, level=0.9)
        return limits[1] < 0.01

    tables = refused.approved(approves, n, 50)
    assert max(refused.size(tables, n, 0.01, q) for q in np.geomspace(2e-4, 0.05, 40)) <= 0.055


def test_chances_of_all_tables_add_up() -> None:
    every = refused.approved(lambda b, c: True, 60, 60)
    assert [refused.size(every, 60, 0.01, q) for q in (0.0, 0.02, 0.495)] == pytest.approx([1, 1, 1])
