"""Latencies and pass rates from blocks: by the gate's own rounds, with limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.load.figures import OVER_SATURATED as THEIRS
from service.load.figures import BlockFigures, Columns
from service.load.plan import BlockPlan, Part
from service.report.gathering.loads import OVER_SATURATED, loads, rounds
from service.report.measured import Load, Metric
from tests.report.gathering.jobs import run
from tests.workers.load_tiers import ModelTier, manifest_of, tiers
from tests.workers.test_load_plan import PLAN
from workers.load_reading import rounds_of

SLO = {"ttft_seconds": 1.0, "tpot_seconds": 0.05}
TIERS = ("bf16", "w8a8")


def block(
    tier: str, *, ttft: tuple[float | None, ...], tokens: tuple[int, ...] | None = None, **more: Any
) -> BlockFigures:
    """One block; what has no TTFT failed."""
    told = tokens if tokens is not None else tuple(0 if each is None else 10 for each in ttft)
    met = tuple(each is not None and each <= 1.0 for each in ttft)
    return BlockFigures(
        plan=BlockPlan(tier=tier, part=Part.SLO, rate=4.0, window_seconds=10.0),
        offered=len(ttft),
        passed=sum(met),
        columns=Columns(
            scheduled=tuple(float(place) for place in range(len(ttft))),
            request=tuple(range(len(ttft))),
            ttft=ttft,
            tpot=tuple(0.01 if many >= 2 else None for many in told),
            e2e=ttft,
            tokens=told,
            met=met,
        ),
        **more,
    )


def read(*blocks: BlockFigures, gates: tuple[Any, ...] = ()) -> dict[str, Load]:
    return loads([each.document() for each in blocks], TIERS, gates, SLO)


def test_the_reason_of_a_block_that_could_not_keep_up_begins_as_load_runs_have_it() -> None:
    assert OVER_SATURATED == THEIRS


@given(
    st.lists(st.tuples(*(st.sampled_from(("", f"{THEIRS}: x", "generator_lag: y")),) * 2), max_size=4),
    st.booleans(),
)
def test_rounds_are_those_of_the_gate(reasons: list[tuple[str, str]], unfinished: bool) -> None:
    manifest = manifest_of(TIERS, PLAN)
    blocks = [
        block(tier, ttft=(0.1,), invalid=(reason,) if reason else ())
        for both in reasons
        for tier, reason in zip(TIERS, both, strict=True)
    ]
    blocks += [block("bf16", ttft=(0.2,))] if unfinished else []
    theirs = [{tier: each.document() for tier, each in one.items()} for one in rounds_of(manifest, blocks)]
    assert rounds([each.document() for each in blocks], TIERS) == theirs


def test_counts_are_sums_over_the_rounds_that_count() -> None:
    found = read(
        block("bf16", ttft=(0.1, 0.2), lag_p99=0.001, asked_rate=4.0, achieved_rate=4.0),
        block("w8a8", ttft=(0.1, 2.0), failed={"timeout": 1}, identity_error=1e-5),
        block("bf16", ttft=(0.1, 0.2), invalid=("generator_lag: 50 ms",)),
        block("w8a8", ttft=(0.1, 0.1)),
        block(
            "bf16", ttft=(0.3, None), lag_p99=0.003, asked_rate=4.2, achieved_rate=4.0, failed={"cut_off": 1}
        ),
        block("w8a8", ttft=(0.1, 0.2), failed={"timeout": 2}),
    )
    bf16, w8a8 = found["bf16"], found["w8a8"]
    assert (bf16.blocks, bf16.offered, bf16.passed, dict(bf16.failed)) == (2, 4, 3, {"cut_off": 1})
    assert (w8a8.blocks, w8a8.offered, w8a8.passed, dict(w8a8.failed)) == (2, 4, 3, {"timeout": 3})
    assert bf16.invalid == ("generator_lag: 50 ms",)
    assert (bf16.lag_p99_seconds, bf16.asked_rate, bf16.achieved_rate) == (0.003, pytest.approx(4.1), 4.0)
    assert w8a8.identity_error_seconds == 1e-5
    assert bf16.pass_rate is not None
    assert bf16.pass_rate.value == 0.75
    assert bf16.pass_rate.lower is None, "two blocks have no limits"


def test_quantiles_are_those_of_all_requests_and_a_failure_is_later_than_any() -> None:
    times = tuple(0.1 + place / 1000 for place in range(100))
    found = read(block("bf16", ttft=(*times, None, None)), block("w8a8", ttft=times))["bf16"].latency(
        Metric.TTFT
    )
    assert found is not None
    assert (found.n, found.never, found.limit_seconds) == (102, 2, 1.0)
    both = [*times, math.inf, math.inf]
    assert found.quantiles["0.5"].value == pytest.approx(np.quantile(both, 0.5))
    assert found.quantiles["0.95"].value == pytest.approx(np.quantile(both, 0.95))
    assert found.quantiles["0.95"].upper is None, "so high, a failure might stand there"
    assert "0.99" not in found.quantiles
    shares = [share for share, _ in found.distribution]
    assert shares == sorted(set(shares))
    assert shares[-1] == pytest.approx(100 / 102)
    assert found.distribution[-1][1] == times[-1]
    for share, seconds in found.distribution:
        assert sum(number <= seconds for number in both) / 102 >= share - 1e-9


def test_a_request_of_one_token_has_no_tpot_and_is_no_failure() -> None:
    found = read(block("bf16", ttft=(0.1, 0.1, None), tokens=(10, 1, 0)), block("w8a8", ttft=(0.1,) * 3))[
        "bf16"
    ].latency(Metric.TPOT)
    assert found is not None
    assert (found.n, found.never) == (2, 1)
    assert found.limit_seconds == 0.05


def test_the_rise_of_misses_has_the_gates_counts_and_level() -> None:
    gate = {
        "gate": "slo", "tier": "w8a8", "reason": "told so",
        "numbers": {"margin": 0.01, "alpha": 0.05, "requests": 1000, "missed by the candidate alone": 12,
                    "missed by the baseline alone": 4, "design effect": 1.5},
    }  # fmt: skip
    found = read(block("bf16", ttft=(0.1,)), block("w8a8", ttft=(0.1,)), gates=(gate,))
    rise = found["w8a8"].rise
    assert rise is not None
    assert (rise.value, rise.level, rise.n) == (0.008, pytest.approx(0.9), 1000)
    assert rise.lower is not None
    assert rise.lower < 0.008
    assert (found["w8a8"].margin, found["w8a8"].shown) == (0.01, "told so")
    assert found["bf16"].rise is None


def test_a_gate_without_counts_says_its_reason_and_no_number() -> None:
    gate = {"gate": "slo", "tier": "w8a8", "reason": "slo_power", "numbers": {}}
    found = read(block("bf16", ttft=(0.1,)), block("w8a8", ttft=(0.1,)), gates=(gate,))["w8a8"]
    assert (found.shown, found.rise, found.margin) == ("slo_power", None, None)


def test_blocks_whose_requests_were_forgotten_keep_their_counts() -> None:
    documents = [replace(block(tier, ttft=(0.1, 0.2))).document() | {"columns": {}} for tier in TIERS]
    found = loads(documents, TIERS, (), SLO)["bf16"]
    assert (found.offered, found.passed, found.latencies) == (2, 2, ())


def test_a_tier_without_a_block_has_no_load() -> None:
    assert set(read(block("bf16", ttft=(0.1,)))) == {"bf16"}
    assert read() == {}


def test_of_a_whole_job_pass_rates_have_limits() -> None:
    _, blocks = run(tiers(bf16=ModelTier(misses=0.01), w8a8=ModelTier(misses=0.01)))
    found = read(*[each for each in blocks if each.plan.part is Part.SLO])
    rate = found["w8a8"].pass_rate
    assert rate is not None
    assert rate.lower is not None
    assert rate.upper is not None
    assert rate.lower < 0.99 < rate.upper
    assert found["w8a8"].blocks == 8


def test_a_faster_tiers_p95_differs_from_the_baselines_by_what_it_is_faster() -> None:
    blocks = []
    for shift in range(8):
        slow = tuple(0.2 + (place + shift) / 1000 for place in range(100))
        fast = tuple(number - 0.05 for number in slow)
        blocks += [block("bf16", ttft=slow), block("w8a8", ttft=fast)]
    found = read(*blocks)
    assert found["bf16"].latencies[0].p95_difference is None
    difference = found["w8a8"].latencies[0].p95_difference
    assert difference is not None
    assert difference.value == pytest.approx(-0.05)
    assert (difference.level, difference.n) == (0.95, 8)
    assert difference.lower is not None
    assert difference.upper is not None
    assert -0.0501 < difference.lower <= difference.upper < -0.0499


def test_where_too_many_never_came_there_is_no_difference() -> None:
    dead = block("w8a8", ttft=(None,) * 20)
    found = read(*(each for _ in range(3) for each in (block("bf16", ttft=(0.1,) * 20), dead)))
    assert found["w8a8"].latencies[0].p95_difference is None
