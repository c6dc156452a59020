"""What changed since the run before: said only where the limits of both have nothing in common."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.verdict import Decision
from service.report.changes import (
    BETTER_UP,
    KEY_FIGURES,
    Change,
    as_earlier,
    decision_changes,
    figure_changes,
    judged,
    manifest_changes,
)
from service.report.measured import Figure
from tests.report.sample import sample


def figure(value: float, half: float = 1.0) -> Figure:
    return Figure(value=value, lower=value - half, upper=value + half, level=0.95)


@pytest.mark.parametrize(
    ("name", "before", "now", "change"),
    [
        ("ttft_p95", figure(10), figure(13), Change.WORSE),
        ("ttft_p95", figure(13), figure(10), Change.BETTER),
        ("goodput", figure(10), figure(13), Change.BETTER),
        ("goodput", figure(13), figure(10), Change.WORSE),
        ("goodput", figure(10), figure(12), Change.WITHIN),
        ("goodput", Figure(value=1), figure(99), Change.TOLD),
        ("goodput", None, figure(1), Change.NEW),
        ("goodput", figure(1), None, Change.GONE),
    ],
)
def test_a_change_is_judged_by_limits(
    name: str, before: Figure | None, now: Figure | None, change: Change
) -> None:
    assert judged(name, before, now) is change


@given(st.sampled_from(sorted(KEY_FIGURES)), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_going_back_turns_the_judgement_round(name: str, first: float, second: float, half: float) -> None:
    turned = {Change.BETTER: Change.WORSE, Change.WORSE: Change.BETTER, Change.WITHIN: Change.WITHIN}
    there = judged(name, figure(first, half), figure(second, half))
    assert judged(name, figure(second, half), figure(first, half)) is turned[there]
    assert judged(name, figure(first, half), figure(first, half)) is Change.WITHIN


def test_what_is_better_when_it_is_more_is_said() -> None:
    assert set(KEY_FIGURES) >= BETTER_UP


def test_a_report_against_the_week_before() -> None:
    report = sample()
    assert report.earlier is not None
    assert decision_changes(report, report.earlier) == (
        ("w8a8", Decision.UNDECIDED, Decision.ACCEPT),
        ("w4a16-fp8kv", None, Decision.REJECT),
    )
    found = {(each.tier, each.figure): each.change for each in figure_changes(report, report.earlier)}
    assert found["w8a8", "goodput"] is Change.BETTER
    assert found["w8a8", "ttft_p95"] is Change.WITHIN
    assert found["bf16", "unit_cost"] is Change.WITHIN
    assert found["w4a16-fp8kv", "goodput"] is Change.NEW
    places = {
        place: (before, now)
        for place, before, now in manifest_changes(report.earlier.manifest, report.manifest)
    }
    assert places == {"policy.digest": ("9f00", "a3c9"), "corpus.digest": ("11aa", "6b1f")}


def test_a_tier_that_is_gone_is_told_last() -> None:
    report = sample()
    without = replace(report, tiers=report.tiers[:2])
    found = figure_changes(without, as_earlier(report))
    assert {each.change for each in found if each.tier == "w4a16-fp8kv"} == {Change.GONE}
    assert found[-1].tier == "w4a16-fp8kv"
    assert decision_changes(without, as_earlier(report)) == (("w4a16-fp8kv", Decision.REJECT, None),)


def test_manifests_are_compared_by_leaf_and_tiers_by_name() -> None:
    before = {
        "tiers": [{"tier": "a", "price": 1}, {"tier": "b", "price": 2}],
        "plan": {"parts": ["slo"], "deep": None},
    }
    now = {
        "tiers": [{"tier": "b", "price": 3}],
        "plan": {"parts": ["slo", "cost"], "deep": True},
        "long": "x" * 200,
    }
    assert manifest_changes(before, now) == (
        ("tiers[b].price", "2", "3"),
        ("plan.parts[1]", "–", "cost"),
        ("plan.deep", "null", "true"),
        ("long", "–", "x" * 80 + "…"),
        ("tiers[a].tier", "a", "–"),
        ("tiers[a].price", "1", "–"),
    )
    assert manifest_changes(now, now) == ()
