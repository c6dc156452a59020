"""Which stages hurt: figures by their limits, and nothing where one is unknown."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.capacity.symptoms import Signals, Stage, hurts, not_judged


def hurting(**told: Any) -> list[Stage]:
    return [stage for stage in Stage if hurts(Signals(**told), stage) is not None]


@pytest.mark.parametrize(
    ("told", "stages"),
    [
        ({}, []),
        ({"ttft_p95": 1.6}, []),
        ({"ttft_p95": 1.5, "ttft_limit": 1.5}, []),
        ({"ttft_p95": 1.6, "ttft_limit": 1.5}, [Stage.TTFT]),
        ({"ttft_p95": math.inf, "ttft_limit": 1.5}, [Stage.TTFT]),
        ({"tpot_p95": 0.09, "tpot_limit": 0.08}, [Stage.TPOT]),
        ({"kv_usage": 0.9}, [Stage.MEMORY]),
        ({"kv_usage": 0.89, "preemptions": 0}, []),
        ({"preemptions": 1}, [Stage.MEMORY]),
        ({"utilisation": 0.49}, [Stage.COST]),
        ({"utilisation": 0.49, "ttft_p95": 2.0, "ttft_limit": 1.5}, [Stage.TTFT]),
        ({"failed_share": 0.02, "utilisation": 0.9}, [Stage.COST]),
    ],
)
def test_a_stage_hurts_where_its_figure_misses(told: dict[str, Any], stages: list[Stage]) -> None:
    assert hurting(**told) == stages


def test_requests_that_never_had_a_token_are_told_as_such() -> None:
    told = Signals(ttft_p95=math.inf, ttft_limit=1.5)
    assert hurts(told, Stage.TTFT) == "more than 5% of requests never had a TTFT, its limit is 1500 ms"


def test_what_is_not_told_is_not_well() -> None:
    assert not_judged(Signals()) == tuple(Stage)
    assert not_judged(Signals(ttft_p95=1, ttft_limit=2, kv_usage=0.1)) == (Stage.TPOT, Stage.COST)


@pytest.mark.parametrize("wrong", [{"waiting": -1.0}, {"kv_usage": 1.1}, {"ttft_p95": math.nan}])
def test_impossible_signals_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"below 0|is a share"):
        Signals(**wrong)
