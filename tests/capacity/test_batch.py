"""Batch size from a curve: where it ends, what it costs, what a pool without a TPOT gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.capacity.batch import Chunk, Gain, Step, chunk, costs, merged, offline, start

ROWS = [
    (1, 0.02, 40.0, 40.0),
    (8, 0.03, 300.0, 300.0),
    (16, 0.050, 540.0, 520.0),
    (32, 0.064, 900.0, 720.0),
]
PAST = [(48, 0.085, 1100.0, 500.0), (64, 0.110, 1200.0, 0.0), (96, 0.150, 1190.0, 0.0)]


def curve(rows: Sequence[tuple[int, float | None, float, float]]) -> list[Step]:
    return [
        Step(concurrency=count, tpot_p95=tpot, throughput=all_, goodput=good)
        for count, tpot, all_, good in rows
    ]


FULL = curve([*ROWS, *PAST])


def test_the_start_is_the_most_that_keeps_80_percent_of_the_slo() -> None:
    found = start(FULL, tpot_seconds=0.08)
    assert found.concurrency == 32  # 64 ms is kept to the ms
    assert found.reason == "32 at once keeps P95 of TPOT at most 64 ms, 80% of its SLO; 48 does not"


def test_a_step_that_keeps_it_past_one_that_does_not_counts_for_nothing() -> None:
    assert start(curve([*ROWS[:2], (12, 0.07, 1, 1), (14, 0.03, 1, 1)]), tpot_seconds=0.08).concurrency == 8


def test_a_step_that_only_waited_in_the_engines_queue_tells_nothing_of_so_many_at_work() -> None:
    late = (40, 0.05, 900.0, 0.0)
    assert start(curve([*ROWS, late, *PAST]), tpot_seconds=0.08).concurrency == 32
    bare = Step(concurrency=40, tpot_p95=0.05, throughput=900.0)  # as a report has it, beside the job's block
    assert start([bare, *curve([*ROWS, late, *PAST])], tpot_seconds=0.08).concurrency == 32


def test_what_no_step_shows_is_not_reached() -> None:
    assert "32 at once still keeps" in start(curve(ROWS), tpot_seconds=0.08).reason
    assert start(curve(ROWS), tpot_seconds=0.08).concurrency is None
    assert start(FULL, tpot_seconds=0.02).reason.startswith("not reached: 1 at once does not keep")
    assert start([], tpot_seconds=0.08).reason == "not reached: no step tells anything"


def test_all_blocks_of_a_step_must_keep_it_and_one_that_failed_does_not() -> None:
    twice = [*FULL, Step(concurrency=32, tpot_p95=0.07)]
    assert start(twice, tpot_seconds=0.08).concurrency == 16
    failed = [*FULL, Step(concurrency=32, tpot_p95=None)]
    assert start(failed, tpot_seconds=0.08).concurrency == 16
    (at,) = [each for each in merged(twice) if each.concurrency == 32]
    assert (at.tpot_p95, at.throughput, at.goodput) == (0.07, 900.0, 720.0)


def test_a_million_tokens_cost_the_price_by_those_that_count() -> None:
    found = costs(FULL, price_per_hour=36.0)
    assert [each.million for each in found.curve][:2] == pytest.approx([250.0, 100 / 3])
    assert found.curve[-1].million is None
    assert found.cheapest.concurrency == 32  # 36e6 / (3600 x 720)
    assert found.cheapest.reason == "13.89 a million at 32; 20 a million at 48"


def test_cost_turns_up_while_nominal_throughput_still_rises() -> None:
    found = costs(FULL, price_per_hour=36.0)
    assert found.turn.concurrency == 48
    assert "rise from 900 to 1100, and cost from 13.89 a million to 20 a million" in found.turn.reason


def test_throughput_that_falls_with_cost_is_no_turn() -> None:
    found = costs(curve([*ROWS, (48, 0.085, 880.0, 500.0)]), price_per_hour=36.0)
    assert (found.cheapest.concurrency, found.turn.concurrency) == (32, None)


def test_a_minimum_at_an_edge_is_not_reached() -> None:
    assert "no more was tried" in costs(curve(ROWS), price_per_hour=36.0).cheapest.reason
    assert costs(curve(ROWS), price_per_hour=36.0).cheapest.concurrency is None
    falling = costs(curve([ROWS[3], *PAST]), price_per_hour=36.0)
    assert falling.cheapest.concurrency is None
    assert "no fewer was tried" in falling.cheapest.reason


def test_costs_without_tokens_that_count_are_not_reached() -> None:
    bare = [Step(concurrency=1, tpot_p95=0.01, throughput=10.0)]
    assert costs(bare, price_per_hour=1.0).cheapest.reason == (
        "not reached: tokens that met the SLO are not told"
    )
    none = [Step(concurrency=1, tpot_p95=0.01, throughput=10.0, goodput=0.0)]
    assert costs(none, price_per_hour=1.0).turn.reason == "not reached: no token met the SLO"


@pytest.mark.parametrize(
    ("at_64", "at_96", "verdict"),
    [
        (1100.0, 1000.0, Gain.BELOW),
        (1200.0, 1100.0, Gain.AS_SAID),
        (1400.0, 1300.0, Gain.ABOVE),
        (1000.0, 1200.0, Gain.NOT_REACHED),
        (1000.0, 1400.0, Gain.ABOVE),
    ],
)
def test_what_an_offline_pool_gains_is_checked(at_64: float, at_96: float, verdict: Gain) -> None:
    found = offline(curve([*ROWS, (64, 0.1, at_64, 0), (96, 0.2, at_96, 0)]), online=32)
    assert found.verdict is verdict
    assert found.gain == pytest.approx(max(at_64, at_96) / 900 - 1)
    assert ("at least" in found.reason) == (at_96 > at_64)


def test_an_offline_pool_is_compared_with_nothing_without_a_start() -> None:
    assert offline(FULL, online=None).verdict is Gain.NOT_REACHED
    assert offline(FULL, online=33).gain is None


def test_chunks_are_capped_where_ttft_is_smooth_and_tpot_jitters() -> None:
    told: dict[str, Any] = {"ttft_p50": 0.4, "ttft_p95": 0.6, "tpot_p50": 0.03, "tpot_p95": 0.06}
    assert chunk(**told).advice is Chunk.CAP
    assert "max-num-batched-tokens 2048" in chunk(**told, batch_tokens=8192).reason
    assert chunk(**told, batch_tokens=2048).advice is Chunk.KEEP
    assert chunk(**{**told, "ttft_p95": 0.9}).advice is Chunk.KEEP
    assert chunk(**{**told, "tpot_p95": 0.04}).advice is Chunk.KEEP
    assert chunk(**{**told, "tpot_p95": None}).advice is Chunk.NOT_TOLD
    for name in told:
        assert chunk(**{**told, name: math.inf}).advice is Chunk.NOT_TOLD
    for name in ("ttft_p50", "tpot_p50"):
        assert chunk(**{**told, name: 0.0}).advice is Chunk.NOT_TOLD
    edge: dict[str, Any] = {"ttft_p50": 0.5, "ttft_p95": 1.0, "tpot_p50": 0.5, "tpot_p95": 0.75}
    assert chunk(**edge).advice is Chunk.CAP, "smooth up to twice, jitter from half as much again"
    assert chunk(**{**edge, "ttft_p95": 1.001}).advice is Chunk.KEEP
    assert chunk(**{**edge, "tpot_p95": 0.749}).advice is Chunk.KEEP


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"tpot_p95": -1.0}, {"throughput": math.nan}, {"goodput": math.inf}]
)
def test_impossible_steps_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least one|finite"):
        Step(**{"concurrency": 1, "tpot_p95": 0.1, **wrong})


def test_an_slo_or_a_price_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0 s"):
        start(FULL, tpot_seconds=0.0)
    with pytest.raises(ValueError, match="above 0 an hour"):
        costs(FULL, price_per_hour=math.nan)


RATE = st.none() | st.floats(min_value=0, max_value=1e6)
STEPS = st.lists(
    st.builds(
        Step,
        concurrency=st.integers(min_value=1, max_value=40),
        tpot_p95=st.none() | st.floats(min_value=0, max_value=1),
        throughput=RATE,
        goodput=RATE,
    ),
    max_size=12,
)


@given(STEPS)
def test_nothing_is_said_of_what_was_not_tried(steps: list[Step]) -> None:
    tried = {each.concurrency for each in steps}
    found = start(steps, tpot_seconds=0.5)
    paid = costs(steps, price_per_hour=10.0)
    for each in (found, paid.cheapest, paid.turn):
        assert (each.concurrency is None) == each.reason.startswith("not reached")
        assert each.concurrency is None or each.concurrency in tried
    assert found.concurrency is None or found.concurrency < max(tried)
    assert offline(steps, online=found.concurrency).concurrency in {None, *tried}
