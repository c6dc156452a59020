"""Cluster statistics against the published data sets, clust.bin.pair and clubSandwich."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from service.decision import clusters, tango
from service.decision.tally import Tally, Triple
from tests.decision import refused

ORACLE = json.loads((Path(__file__).parent / "oracles" / "cluster_R.json").read_text())
CASES = [pytest.param(case, id=case["name"]) for case in ORACLE["cases"]]
STATISTICS = {"obuchowski": clusters.obuchowski, "durkalski": clusters.durkalski, "yang": clusters.yang}


def tally_of(case: dict[str, Any]) -> Tally:
    tally = Tally()
    for a, b, c, d in zip(case["ak"], case["bk"], case["ck"], case["dk"], strict=True):
        tally = tally.add(pairs=a + b + c + d, harm=b, benefit=c, both_failed=a)
    return tally


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", STATISTICS)
def test_chi_squared_agrees_with_r_and_the_paper(case: dict[str, Any], name: str) -> None:
    found = STATISTICS[name](tally_of(case))
    assert found == pytest.approx(case["chi2"][name], abs=ORACLE["tolerance"]["computed"])
    if case["published_chi2"]:
        assert found == pytest.approx(case["published_chi2"][name], abs=ORACLE["tolerance"]["published"])


@pytest.mark.parametrize("case", CASES)
def test_the_standard_error_agrees_with_club_sandwich(case: dict[str, Any]) -> None:
    tally, tolerance = tally_of(case), ORACLE["tolerance"]["computed"]
    variance = clusters.cluster_variance(tally)
    assert variance is not None
    assert math.sqrt(variance) == pytest.approx(case["se_CR1"], abs=tolerance)
    uncorrected = variance * (tally.conversations - 1) / tally.conversations
    assert math.sqrt(uncorrected) == pytest.approx(case["se_CR0"], abs=tolerance)
    assert (tally.harm - tally.benefit) / tally.n == pytest.approx(case["estimate"], abs=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_mcnemar_of_their_pairs_and_the_bias_reduced_error_agree_too(case: dict[str, Any]) -> None:
    """Neither decides: the first takes pairs for independent, the second errs .066 to .091 (B1.6)."""
    tally, tolerance = tally_of(case), ORACLE["tolerance"]["computed"]
    found = tango.z(tally.harm, tally.benefit, tally.n, 0.0) ** 2
    assert found == pytest.approx(case["chi2"]["mcnemar"], abs=tolerance)
    error, degrees = refused.bias_reduced(tally)
    assert error == pytest.approx(case["se_CR2"], abs=tolerance)
    assert degrees == pytest.approx(case["df_satt_CR2"], abs=1e-6)


def test_pairs_of_their_own_have_no_design_effect() -> None:
    assert clusters.design_effect(Tally.of_pairs(n=5000, harm=60, benefit=50)) == pytest.approx(1, abs=1e-3)


def test_conversations_that_fail_as_one_count_once() -> None:
    # 30 conversations of 5 pairs go wrong in all five: five times too many pairs.
    tally = Tally(units={Triple(5, 5, 0): 30, Triple(5, 0, 5): 30, Triple(5, 0, 0): 940})
    assert clusters.design_effect(tally) == pytest.approx(5, abs=0.01)


def test_with_few_discordant_conversations_a_correlation_is_assumed() -> None:
    quiet = Tally(units={Triple(5, 0, 0): 100})
    assert clusters.design_effect(quiet) == pytest.approx(1 + (5 - 1) * 0.25)
    assert clusters.design_effect(quiet, correlation=0.5) == pytest.approx(1 + (5 - 1) * 0.5)


def test_one_conversation_has_no_variance_but_a_design_effect() -> None:
    alone = Tally(units={Triple(8, 2, 1): 1})
    assert clusters.cluster_variance(alone) is None
    assert clusters.design_effect(alone) == pytest.approx(1 + (8 - 1) * 0.25)
    assert clusters.design_effect(Tally(units={Triple(1, 1, 0): 1})) == 1


def test_without_evidence_nothing_is_said() -> None:
    assert clusters.design_effect(Tally()) == 1
    quiet = Tally(units={Triple(2, 0, 0): 5})
    assert [statistic(quiet) for statistic in STATISTICS.values()] == [0, 0, 0]


def test_twenty_discordant_conversations_speak_for_themselves_and_nineteen_do_not() -> None:
    spread = {Triple(5, 1, 0): 10, Triple(5, 0, 1): 10, Triple(5, 0, 0): 480}
    assert clusters.design_effect(Tally(units=spread)) == pytest.approx(1, abs=0.01)
    assert clusters.design_effect(Tally(units=spread | {Triple(5, 0, 1): 9})) == 1 + (5 - 1) * 0.25
