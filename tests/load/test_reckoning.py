"""Figures from times that are written down, so that each is known beforehand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.fleet import Slo
from service.load.figures import BlockFigures
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.reckoning import Bounds, reckon
from service.load.timed import GIVEN_UP, OUT_OF_FILES, Timed

SLO = Slo(ttft_seconds=0.5, tpot_seconds=0.1)
PLAN = BlockPlan(
    tier="a", part=Part.SLO, arrivals=Arrivals.CONSTANT, rate=10, warm_up_seconds=10, window_seconds=100
)


def timed(
    ordinal: int,
    at: float,
    *,
    ttft: float = 0.2,
    tpot: float = 0.05,
    tokens: int = 11,
    lag: float = 0.001,
    **more: Any,
) -> Timed:
    first = at + ttft
    last = first + tpot * (tokens - 1)
    given: dict[str, Any] = {
        "ordinal": ordinal,
        "request": ordinal,
        "scheduled": at,
        "begun": at + lag,
        "sent": at + lag,
        "first_byte": first,
        "first_token": first,
        "last_token": last,
        "ended": last,
        "tokens": tokens,
        "counted": tokens,
        "prompt_tokens": 100,
        "status": 200,
        **more,
    }
    return Timed(**given)


def steady(**more: Any) -> list[Timed]:
    """Ten requests a second over warm-up, window and a little longer."""
    return [timed(number, number / 10, **more) for number in range(1150)]


def failed(ordinal: int, at: float, fault: str) -> Timed:
    return replace(timed(ordinal, at), fault=fault, first_token=None, last_token=None, tokens=None, counted=0)


def test_definitions_hold_for_one_request() -> None:
    each = timed(0, 12.0, ttft=0.3, tpot=0.02, tokens=21)
    assert each.ttft == pytest.approx(0.3)
    assert each.tpot == pytest.approx(0.02)
    assert each.e2e == pytest.approx(0.3 + 0.02 * 20)
    assert each.lag == pytest.approx(0.001)


def test_a_request_with_fewer_than_two_tokens_has_no_tpot_and_is_counted_apart() -> None:
    each = timed(0, 1.0, tokens=1)
    assert each.tpot is None
    assert each.meets(SLO)
    block = reckon(PLAN, [timed(0, 20.0, tokens=1), timed(1, 30.0)], slo=SLO)
    assert (block.without_tpot, block.tpot.n, block.ttft.n, block.passed) == (1, 1, 2, 2)


def test_tokens_are_those_of_usage_and_where_that_is_missing_those_counted() -> None:
    assert timed(0, 1.0, counted=9).output_tokens == 11
    assert timed(0, 1.0, tokens=11, counted=11).output_tokens == 11
    without = replace(timed(0, 20.0), tokens=None, counted=9)
    assert without.output_tokens == 9
    figures = reckon(PLAN, [without, timed(1, 20.0, counted=5), timed(2, 20.0, counted=12)], slo=SLO)
    assert (figures.without_usage, figures.contradicted) == (1, 1)
    assert figures.count_ratio == pytest.approx(17 / 22)


def test_only_requests_due_in_the_window_count() -> None:
    figures = reckon(PLAN, steady(), slo=SLO)
    assert figures.offered == figures.passed == 1000
    assert figures.goodput == figures.throughput == pytest.approx(110.0)
    assert figures.asked_rate == figures.achieved_rate == pytest.approx(10.0)
    assert figures.mean_concurrency == pytest.approx(10 * 0.7, rel=0.01)
    assert figures.ttft.p95 == figures.ttft.p50 == pytest.approx(0.2)
    assert figures.tpot.p95 == pytest.approx(0.05)
    assert figures.e2e.p95 == pytest.approx(0.7)
    assert figures.lag_p99 == pytest.approx(0.001)
    assert figures.spent_prompt_tokens == 115_000
    assert figures.identity_error < 1e-9
    assert figures.valid, figures.invalid
    assert figures.columns.scheduled[0] == 10.0
    assert len(figures.columns.met) == 1000


def test_failures_and_late_ones_are_misses_over_what_was_offered() -> None:
    requests = steady()
    for number in range(100, 150):
        requests[number] = failed(number, number / 10, "timeout")
    for number in range(150, 170):
        requests[number] = timed(number, number / 10, ttft=0.6)
    for number in range(170, 180):
        requests[number] = timed(number, number / 10, tpot=0.2)
    figures = reckon(PLAN, requests, slo=SLO)
    assert (figures.offered, figures.passed, figures.missed) == (1000, 920, 80)
    assert figures.failed == {"timeout": 50}
    assert figures.pass_rate == 0.92
    assert figures.goodput == pytest.approx(11 * 920 / 100)
    assert figures.throughput == pytest.approx(11 * 950 / 100)
    # A fault is later than any answer: 5 % of them leave P95 just at an answer that was late.
    assert figures.ttft.p99 is None
    assert figures.columns.tokens[:50] == (0,) * 50
    assert figures.columns.met[:80] == (False,) * 80


def test_a_lagging_generator_makes_the_block_invalid() -> None:
    figures = reckon(PLAN, steady(lag=0.03), slo=SLO)
    assert figures.lagged
    assert not figures.over_saturated
    assert reckon(PLAN, steady(lag=0.03), slo=SLO, bounds=Bounds(lag_seconds=0.05)).valid


def test_a_lag_that_is_little_beside_the_slo_spoils_nothing() -> None:
    slow = Slo(ttft_seconds=2.0, tpot_seconds=0.1)
    assert reckon(PLAN, steady(lag=0.03), slo=slow).valid
    assert reckon(PLAN, steady(lag=0.05), slo=slow).lagged


def test_requests_that_were_not_taken_up_in_time_make_the_block_invalid() -> None:
    requests = steady()
    stalled = [replace(each, begun=120.0) if 60 <= each.scheduled < 70 else each for each in requests]
    figures = reckon(PLAN, stalled, slo=SLO, bounds=Bounds(lag_seconds=1000.0))
    assert figures.achieved_rate == pytest.approx(9.0)
    assert figures.lagged


def test_a_request_at_the_edge_of_a_short_window_is_no_lag() -> None:
    short = replace(PLAN, rate=8, warm_up_seconds=0.1, window_seconds=0.4)
    edges = [timed(number, at) for number, at in enumerate((0.0, 0.11, 0.24, 0.37, 0.4995, 0.62))]
    figures = reckon(short, edges, slo=SLO)
    assert (figures.offered, round(figures.achieved_rate * 0.4)) == (4, 3)
    assert not figures.lagged
    late = [replace(each, begun=0.6) if each.ordinal in (2, 3) else each for each in edges]
    assert reckon(short, late, slo=SLO, bounds=Bounds(lag_seconds=1000.0)).lagged


def test_a_growing_queue_is_over_saturation() -> None:
    generator = np.random.default_rng(2)
    # Twelve a second come, ten are served: each waits for a fifth of the time that has passed.
    requests = [
        timed(number, at, ttft=0.2 + at / 5 + float(generator.exponential(0.05)))
        for number, at in enumerate(np.arange(0, 115, 1 / 12).tolist())
    ]
    figures = reckon(replace(PLAN, rate=12), requests, slo=SLO)
    assert figures.over_saturated
    assert not figures.lagged
    assert figures.concurrency_slope is not None
    assert figures.ttft_slope is not None
    assert figures.concurrency_slope.lower > 0
    assert figures.ttft_slope.value == pytest.approx(0.2, rel=0.02)


def test_an_engine_that_takes_everything_in_and_slows_down_is_over_saturated_too() -> None:
    generator = np.random.default_rng(3)
    requests = [
        timed(number, number / 10, ttft=float(generator.uniform(0.1, 0.3)), tpot=0.05 + number / 2000)
        for number in range(1150)
    ]
    figures = reckon(PLAN, requests, slo=SLO)
    assert figures.over_saturated
    assert figures.ttft_slope is not None
    assert figures.ttft_slope.lower <= 0


def test_a_steady_queue_is_seldom_taken_for_a_growing_one() -> None:
    """One server at a load of .7: waits that hang together, and a queue that does not grow."""
    flagged = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        at = free = 0.0
        requests = []
        for number in range(1100):
            at += float(generator.exponential(0.1))
            begins = max(at, free)
            free = begins + float(generator.exponential(0.07))
            requests.append(timed(number, at, ttft=free - at, tpot=0.0))
        flagged += reckon(replace(PLAN, arrivals=Arrivals.POISSON), requests, slo=SLO).over_saturated
    assert flagged <= 3


def test_chance_in_a_short_window_with_few_in_flight_is_no_saturation() -> None:
    """One in flight on average, by independent arrivals that all meet their SLO, in two seconds."""
    plan = replace(PLAN, rate=5, arrivals=Arrivals.POISSON, warm_up_seconds=1, window_seconds=2)
    flagged = by_slope = 0
    for seed in range(300):
        generator = np.random.default_rng(seed)
        at, requests = 0.0, []
        while (at := at + float(generator.exponential(0.2))) < 3.5:
            requests.append(timed(len(requests), at, ttft=float(generator.uniform(0.05, 0.15)), tpot=0.01))
        figures = reckon(plan, requests, slo=SLO)
        assert figures.missed == 0
        flagged += figures.over_saturated
        by_slope += figures.concurrency_slope is not None and figures.concurrency_slope.lower > 0
    assert flagged == 0
    assert by_slope > 10, "Student's t alone would have told of growth in these"


def given_up(at: float, until: float) -> Timed:
    return replace(failed(0, at, GIVEN_UP), ended=until)


def test_requests_given_up_at_one_moment_do_not_look_as_if_waits_became_shorter() -> None:
    """A queue: TTFT grows by a second in every four, until nobody waits for it any more."""

    def queue(until: float) -> BlockFigures:
        requests = []
        for number in range(1100):
            at = number / 10
            first = at + 0.2 + at / 4
            requests.append(timed(number, at, ttft=first - at) if first < until else given_up(at, until))
        return reckon(PLAN, requests, slo=SLO)

    whole, cut = queue(1000.0), queue(PLAN.seconds + 0.5)
    assert cut.failed[GIVEN_UP] > 100
    for figures in (whole, cut):
        assert figures.ttft_slope is not None
        assert figures.ttft_slope.lower > 0
        assert figures.over_saturated
    refused = [replace(each, fault="overloaded") if each.fault else each for each in steady()]
    assert not reckon(PLAN, refused, slo=SLO).over_saturated


def test_answers_beside_the_window_are_answers_too() -> None:
    early, late = timed(0, 1.0), timed(2, 112.0)
    broken = replace(timed(3, 112.5), fault="stream_error")
    figures = reckon(PLAN, [early, failed(1, 50.0, GIVEN_UP), late, broken], slo=SLO)
    assert (figures.offered, figures.failed, figures.answered) == (1, {GIVEN_UP: 1}, 2)
    dropped = replace(timed(4, 112.8), ended=None)
    assert reckon(PLAN, [dropped], slo=SLO).answered == 0


def test_a_queue_that_grows_far_beyond_chance_is_over_saturation_though_every_slo_is_met() -> None:
    generator = np.random.default_rng(2)
    requests = [
        timed(number, at, ttft=0.2 + at / 5 + float(generator.exponential(0.05)))
        for number, at in enumerate(np.arange(0, 115, 1 / 12).tolist())
    ]
    patient = Slo(ttft_seconds=100.0, tpot_seconds=0.1)
    figures = reckon(replace(PLAN, rate=12), requests, slo=patient)
    assert figures.missed == 0
    assert figures.over_saturated


def test_a_window_that_is_long_beside_an_answer_leaves_less_to_chance() -> None:
    """Ten more at its end than at its beginning, around a mean of ten: chance, were they two moments."""
    requests = [timed(number, at := number / 20, ttft=0.2 + at / 200, tpot=0.0) for number in range(2300)]
    patient = Slo(ttft_seconds=100.0, tpot_seconds=0.1)
    figures = reckon(replace(PLAN, rate=20), requests, slo=patient)
    assert (figures.missed, figures.mean_concurrency) == (0, pytest.approx(10, rel=0.02))
    assert figures.concurrency_slope is not None
    assert figures.concurrency_slope.value * PLAN.window_seconds == pytest.approx(10, rel=0.05)
    assert figures.over_saturated
    bound = Bounds().chance * (2 * figures.mean_concurrency) ** 0.5
    assert bound > 10, "taken for two moments, it would be chance"


def test_bytes_of_output_are_told_for_each_token_of_complete_answers() -> None:
    requests = [
        timed(0, 20.0, written=44),
        timed(1, 30.0, written=22),
        replace(failed(2, 40.0, "x"), written=9),
    ]
    assert reckon(PLAN, requests, slo=SLO).bytes_per_token == pytest.approx(66 / 22)
    assert reckon(PLAN, [timed(0, 20.0)], slo=SLO).bytes_per_token is None


def test_a_closed_loop_is_never_over_saturated_and_its_lag_is_that_of_its_clock() -> None:
    closed = BlockPlan(
        tier="a",
        part=Part.CONCURRENCY,
        arrivals=Arrivals.CLOSED,
        concurrency=4,
        warm_up_seconds=10,
        window_seconds=100,
    )
    requests = [timed(number, number / 10, ttft=0.2 + number / 50) for number in range(1150)]
    figures = reckon(closed, requests, slo=SLO, ticks=[0.001, 0.002, 0.003])
    assert not figures.over_saturated
    assert figures.asked_rate is None
    assert figures.lag_p50 == pytest.approx(0.002)


def test_a_block_in_which_nothing_is_offered_or_answered_is_invalid() -> None:
    assert reckon(PLAN, [], slo=SLO).invalid[0].startswith("nothing_offered")
    figures = reckon(PLAN, [failed(number, number / 10, "unreachable") for number in range(1150)], slo=SLO)
    assert figures.invalid == ("nothing_answered: unreachable 1000",)
    assert figures.goodput == 0


def test_connections_that_we_could_not_make_are_no_fault_of_the_tier() -> None:
    requests = steady()
    requests[500] = failed(500, 50.0, OUT_OF_FILES)
    assert reckon(PLAN, requests, slo=SLO).invalid[0].startswith(OUT_OF_FILES)


def test_times_that_contradict_one_another_make_the_block_invalid() -> None:
    """So far from zero that a double has no microseconds any more: its sums are no sums."""
    absurd = replace(timed(0, 20.1, tokens=4), first_token=1e12 / 3 + 0.1, last_token=1e12 + 0.77)
    figures = reckon(PLAN, [absurd, *steady()], slo=SLO)
    assert figures.identity_error > 1e-6
    assert any(reason.startswith("times_contradict") for reason in figures.invalid)
    assert not any(
        reason.startswith("times_contradict") for reason in reckon(PLAN, steady(), slo=SLO).invalid
    )


def test_requests_sent_before_are_repeated() -> None:
    requests = [replace(each, request=each.ordinal % 600) for each in steady()]
    assert reckon(PLAN, requests, slo=SLO).repeated == 500


def test_p95_has_limits_from_72_requests_on() -> None:
    few = reckon(PLAN, steady()[100:171], slo=SLO)
    enough = reckon(PLAN, steady()[100:172], slo=SLO)
    assert (few.ttft.n, few.ttft.p95_upper) == (71, None)
    assert enough.ttft.p95_upper == pytest.approx(0.2)


def test_figures_survive_json_with_everything_in_them() -> None:
    requests = steady()
    requests[200] = failed(200, 20.0, "timeout")
    figures = reckon(PLAN, requests, slo=SLO)
    told = json.dumps(figures.document(), allow_nan=False)
    assert BlockFigures.of(json.loads(told)) == figures


@pytest.mark.parametrize("told", [{}, {"plan": 3}, {"plan": {}, "engine": {}}])
def test_another_document_is_no_figures(told: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no "):
        BlockFigures.of(told)
