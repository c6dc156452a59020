"""One paragraph that a manager can act on, from the verdicts as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.decision.policy import Gate
from service.decision.verdict import Decision, GateState
from service.report.conclusion import conclude
from service.report.document import Report, TierReport
from service.report.measured import Figure
from service.report.words import Language, words
from tests.report.sample import sample

EN, ZH = words(Language.EN), words(Language.ZH)
REPORT = sample()


def with_candidates(*tiers: TierReport) -> Report:
    return replace(REPORT, tiers=(REPORT.tiers[0], *tiers))


def w8a8(decision: Decision = Decision.ACCEPT, **gates: GateState) -> TierReport:
    tier = REPORT.tiers[1]
    assert tier.verdict is not None
    told = dict(tier.verdict.gates) | {Gate(name): state for name, state in gates.items()}
    return replace(tier, verdict=replace(tier.verdict, decision=decision, gates=told))


def test_the_accepted_tier_is_to_be_approved_and_the_rejected_one_named_with_its_harm() -> None:
    text = conclude(REPORT, EN)
    assert "w8a8 may replace the baseline" in text
    assert "the closest is long-context recall, +0.17 [−0.54, +0.88] pp (90 %), margin 1 pp" in text
    assert "a request costs less by CNY 0.0008108" in text
    assert "w4a16-fp8kv must not replace the baseline: structured output fails more often, +4.08 [" in text
    assert text.endswith("To do: approve w8a8 and let its ramp begin; the guard goes on watching it.")


def test_it_says_the_same_in_chinese() -> None:
    text = conclude(REPORT, ZH)
    assert "w8a8 可以替换基线" in text
    assert "w4a16-fp8kv 不得替换基线：结构化输出失败更多，+4.08 [+2.78, +5.38] pp" in text
    assert text.endswith("建议：批准 w8a8 并开始放量；守护任务会继续监视。")


def test_of_several_accepted_the_most_aggressive_one_is_to_be_approved() -> None:
    second = replace(w8a8(), name="w4a16")
    assert "approve w4a16" in conclude(with_candidates(w8a8(), second), EN)


def test_an_undecided_tier_says_what_is_missing_and_to_wait() -> None:
    tier = w8a8(Decision.UNDECIDED, coverage=GateState.MISSING, slo=GateState.UNDECIDED)
    assert tier.verdict is not None
    first, *others = tier.verdict.findings
    open_ones = (
        replace(first, decision=Decision.UNDECIDED, n=210, more_pairs=300),
        replace(others[0], decision=Decision.UNDECIDED, n=900, more_pairs=None),
        *others[1:],
    )
    tier = replace(tier, verdict=replace(tier.verdict, findings=open_ones))
    text = conclude(with_candidates(tier), EN)
    assert "structured output has 210 pairs and needs about 300 more" in text
    assert "long-context recall is not shown after 900 pairs" in text
    assert "open gates: coverage, SLO" in text
    assert "To do: leave the traffic where it is, and let the evidence grow" in text
    assert "未决" in conclude(with_candidates(tier), ZH)


def test_a_gate_that_fails_is_named_and_nothing_is_to_be_approved() -> None:
    text = conclude(with_candidates(w8a8(Decision.REJECT, slo=GateState.FAILED)), EN)
    assert "w8a8 must not replace the baseline: the gate SLO is shown to fail" in text
    assert "approve" not in text


@pytest.mark.parametrize(
    ("benefit", "told"),
    [
        (Figure(value=1, lower=0.5, upper=2, level=0.9), "a request costs less by CNY 1"),
        (Figure(value=-1, lower=-2, upper=-0.5, level=0.9), "a request costs more, net benefit −CNY 1"),
        (Figure(value=1, lower=-1, upper=3, level=0.9), "whether it saves money is open"),
        (Figure(value=1), "whether it saves money is open"),
        (None, "what it saves was not measured"),
    ],
)
def test_money_is_told_as_far_as_its_limits_show(benefit: Figure | None, told: str) -> None:
    tier = w8a8()
    assert tier.money is not None
    tier = replace(tier, money=replace(tier.money, net_benefit=benefit))
    assert told in conclude(with_candidates(tier), EN)


def test_without_a_verdict_nothing_can_be_approved() -> None:
    for say in (EN, ZH):
        assert conclude(replace(REPORT, tiers=REPORT.tiers[:1]), say)
    assert "nothing can be approved" in conclude(replace(REPORT, tiers=()), EN)


def test_a_verdict_without_criteria_that_decide_is_worded_too() -> None:
    tier = w8a8(Decision.UNDECIDED)
    assert tier.verdict is not None
    bare = replace(tier, verdict=replace(tier.verdict, findings=()))
    assert "for the reasons listed under Quality" in conclude(with_candidates(bare), EN)
