"""What hurts and why: known answers, and no advice about decode for a slow first token."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.capacity.diagnosis import diagnose
from service.capacity.diagnosis_rules import DECODE_BATCH, Cause, Remedy
from service.capacity.symptoms import Signals, Stage, hurts

SLOW_FIRST: dict[str, Any] = {"ttft_p95": 3.0, "ttft_limit": 1.5}
SLOW_NEXT: dict[str, Any] = {"tpot_p95": 0.1, "tpot_limit": 0.08}


@pytest.mark.parametrize(
    ("told", "causes"),
    [
        ({**SLOW_FIRST, "waiting": 4.0}, [Cause.QUEUE]),
        ({**SLOW_FIRST, "waiting": 0.2}, [Cause.PREFILL]),
        ({**SLOW_FIRST, "waiting": 0.2, "prefix_rate": 0.1}, [Cause.PREFILL, Cause.CACHE]),
        (SLOW_FIRST, [Cause.UNKNOWN]),
        ({**SLOW_NEXT, "tpot_alone": 0.02}, [Cause.BATCH]),
        ({**SLOW_NEXT, "tpot_alone": 0.09}, [Cause.BANDWIDTH]),
        ({**SLOW_NEXT, "tpot_alone": 0.02, "preemptions": 3}, [Cause.PREEMPTION, Cause.BATCH, Cause.KV]),
        (SLOW_NEXT, [Cause.UNKNOWN]),
        (
            {"kv_usage": 0.95, "weights_share": 0.8, "waste_share": 0.2},
            [Cause.KV, Cause.WEIGHTS, Cause.FRAGMENTATION],
        ),
        ({"kv_usage": 0.5, "weights_share": 0.8}, []),
        ({"utilisation": 0.2}, [Cause.UTILISATION]),
        ({"failed_share": 0.05}, [Cause.FAILURES]),
    ],
)
def test_causes_have_evidence_of_their_own(told: dict[str, Any], causes: list[Cause]) -> None:
    found = diagnose(Signals(**told))
    assert [each.cause for each in found] == causes
    assert all(each.evidence and each.experiment and each.hurts for each in found)


@pytest.mark.parametrize(
    ("told", "causes"),
    [
        ({**SLOW_FIRST, "waiting": 1.0}, [Cause.QUEUE]),
        ({**SLOW_FIRST, "waiting": 0.999}, [Cause.PREFILL]),
        ({**SLOW_FIRST, "waiting": 1.0, "prefix_rate": 0.249}, [Cause.QUEUE, Cause.CACHE]),
        ({**SLOW_FIRST, "waiting": 1.0, "prefix_rate": 0.25}, [Cause.QUEUE]),
        ({**SLOW_NEXT, "tpot_alone": 0.08}, [Cause.BATCH]),
        ({**SLOW_NEXT, "tpot_alone": 0.0801}, [Cause.BANDWIDTH]),
        ({"kv_usage": 0.9, "weights_share": 0.7, "waste_share": 0.1}, [Cause.KV]),
        ({"kv_usage": 0.9, "weights_share": 0.701, "waste_share": 0.1}, [Cause.KV, Cause.WEIGHTS]),
        ({"kv_usage": 0.9, "weights_share": 0.7, "waste_share": 0.101}, [Cause.KV, Cause.FRAGMENTATION]),
        ({"kv_usage": 0.899, "weights_share": 0.8}, []),
        ({"ttft_p95": 1.5, "ttft_limit": 1.5, "waiting": 9.0}, []),
        ({"utilisation": 0.5}, []),
        ({"failed_share": 0.01}, []),
    ],
)
def test_a_bound_belongs_to_one_side(told: dict[str, Any], causes: list[Cause]) -> None:
    assert [each.cause for each in diagnose(Signals(**told))] == causes


def test_a_cause_tells_its_figures() -> None:
    (found,) = diagnose(Signals(**SLOW_FIRST, waiting=4.0, running=16.0))
    assert found.hurts == "P95 of TTFT is 3000 ms, its limit 1500 ms"
    assert found.evidence == "4.0 requests wait on average beside 16.0 that run"
    assert found.remedies == (Remedy.BACKENDS, Remedy.FALLBACK, Remedy.SEMANTIC_CACHE)
    assert "half the rate" in found.experiment


def test_an_unknown_cause_has_no_remedy_and_something_to_measure() -> None:
    (found,) = diagnose(Signals(**SLOW_NEXT))
    assert (found.remedies, found.experiment[:7]) == ((), "measure")


AMOUNT = st.none() | st.floats(min_value=0, allow_nan=False)
SHARE = st.none() | st.floats(min_value=0, max_value=1)
SIGNALS = st.builds(
    Signals,
    **dict.fromkeys(("ttft_p95", "ttft_limit", "tpot_p95", "tpot_limit", "tpot_alone"), AMOUNT),
    **dict.fromkeys(("waiting", "running", "preemptions", "utilisation"), AMOUNT),
    **dict.fromkeys(("prefix_rate", "kv_usage", "weights_share", "waste_share", "failed_share"), SHARE),
)


@given(SIGNALS)
def test_every_stage_that_hurts_is_told_and_no_other(signals: Signals) -> None:
    assert {each.stage for each in diagnose(signals)} == {
        stage for stage in Stage if hurts(signals, stage) is not None
    }


@given(SIGNALS)
def test_a_slow_first_token_never_yields_advice_about_decode_s_batch(signals: Signals) -> None:
    found = diagnose(signals)
    assert not any(DECODE_BATCH & set(each.remedies) for each in found if each.stage is Stage.TTFT)
    stages = {each.stage for each in found}
    remedies = {remedy for each in found for remedy in each.remedies}
    if Stage.TPOT not in stages:
        assert Remedy.SMALLER_BATCH not in remedies
    if {Stage.TTFT, Stage.TPOT} & stages:
        assert Remedy.LARGER_BATCH not in remedies
