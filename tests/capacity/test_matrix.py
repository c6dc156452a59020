"""A workload matrix: which cell is next, where a row ends, and what it must not claim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.capacity.matrix import LEAST_GAIN, Axes, Spot, next_spot, row_end, spoiled, told_of
from service.capacity.matrix_cells import Cell, PromptClass, Row, Times, usable

SHORT, LONG = PromptClass(name="512", tokens=512), PromptClass(name="8192", tokens=8192)
AXES = Axes(prompts=(SHORT, LONG), concurrencies=(1, 2, 4, 8, 16))


def cell(concurrency: int, goodput: float = 0.0, prompt: PromptClass = SHORT, **more: Any) -> Cell:
    told = {"offered": 20, "passed": 20 if goodput else 0, "throughput": goodput, **more}
    return Cell(prompt=prompt, concurrency=concurrency, goodput=goodput, **told)


def test_a_row_ends_after_its_knee_and_the_next_begins() -> None:
    found: list[Cell] = []
    gains = {1: 40.0, 2: 78.0, 4: 150.0, 8: 152.0, 16: 90.0}
    asked = []
    while (spot := next_spot(AXES, found)) is not None:
        asked.append((spot.row.prompt.name, spot.concurrency))
        goodput = gains[spot.concurrency] if spot.row.prompt is SHORT else 0.0
        found.append(cell(spot.concurrency, goodput, spot.row.prompt))
    # 8 at once gains 1 %: 16 is not worth a window. Of the long ones not even one keeps the SLO.
    assert asked[:4] == [("512", 1), ("512", 2), ("512", 4), ("512", 8)]
    assert asked[4:6] == [("512", 4), ("512", 8)], "the two that make the knee, once more"
    assert asked[6:] == [("8192", 1), ("8192", 1)]
    end = told_of(AXES, found, Row(prompt=SHORT))
    assert (end.knee, end.reason) == (4, "8 at once has 152 tokens/s that count, 4 has 150")
    none = told_of(AXES, found, Row(prompt=LONG))
    assert (none.knee, none.over) == (None, True)
    assert none.reason == "no knee: at 1 at once not one request keeps the SLO"


def test_one_bad_window_ends_no_row() -> None:
    """At 4 at once the machine was busy with something else: the second window tells."""
    truth = {1: 40.0, 2: 80.0, 4: 150.0, 8: 280.0, 16: 285.0}
    found: list[Cell] = []
    while (spot := next_spot(Axes(prompts=(SHORT,), concurrencies=AXES.concurrencies), found)) is not None:
        first = not any(each.concurrency == spot.concurrency for each in found)
        goodput = 60.0 if first and spot.concurrency == 4 else truth[spot.concurrency]
        found.append(cell(spot.concurrency, goodput))
    end = row_end(found)
    assert (end.over, end.knee) == (True, 8)
    assert end.reason == "16 at once has 285 tokens/s that count, 8 has 280"
    assert row_end(found[:-2]).again == (8, 16)
    assert [each.concurrency for each in found] == [1, 2, 4, 2, 4, 8, 16, 8, 16]


def test_a_knee_of_one_window_says_so_and_asks_for_another() -> None:
    once = row_end([cell(1, 40.0), cell(2, 41.0)])
    assert (once.over, once.knee, once.again) == (False, 1, (1, 2))
    assert once.reason.endswith("one window each is not enough to tell")
    half = row_end([cell(1, 40.0), cell(2, 41.0), cell(1, 40.0)])
    assert (half.over, half.again) == (False, (2,))
    gains = row_end([cell(1, 40.0), cell(2, 41.0), cell(1, 38.0)])
    assert (gains.over, gains.knee, gains.again) == (False, None, ()), "41 is 5 % above 39: the row goes on"
    assert row_end([cell(1, 40.0), cell(2, 41.0)] * 2).again == ()


def test_windows_that_overlap_are_told_as_such() -> None:
    noisy = row_end([cell(1, 40.0), cell(2, 39.0), cell(1, 20.0), cell(2, 21.0)])
    assert (noisy.over, noisy.knee) == (True, 1)
    assert noisy.reason == (
        "2 at once has 30 tokens/s that count (21 to 39), 1 has 30 (20 to 40); "
        "their windows overlap, so that it may be chance"
    )


def test_a_second_window_that_is_spoiled_again_and_again_is_not_waited_for() -> None:
    late = cell(2, 41.0, invalid=("generator_lag",))
    found = [cell(1, 40.0), cell(2, 41.0), cell(1, 40.0), late, late]
    assert (row_end(found).over, row_end(found).knee) == (True, 1)


def test_cells_that_this_sitting_does_not_ask_for_are_not_measured_again() -> None:
    found = [cell(1, 40.0), cell(2, 41.0)]
    assert next_spot(Axes(prompts=(SHORT,), concurrencies=(4, 8)), found) is None


def test_a_row_that_still_gains_has_no_knee() -> None:
    end = row_end([cell(count, 40.0 * count) for count in AXES.concurrencies])
    assert (end.over, end.knee) == (False, None)
    assert end.reason == "not reached: 16 at once still gains, and no more was tried"
    assert row_end([]).reason == "not reached: nothing was measured"


def test_more_at_once_goes_on_with_a_row_that_was_open() -> None:
    found = [cell(count, 40.0 * count) for count in AXES.concurrencies]
    more = Axes(prompts=(SHORT,), concurrencies=(1, 2, 4, 8, 16, 32))
    assert next_spot(Axes(prompts=(SHORT,), concurrencies=AXES.concurrencies), found) is None
    assert next_spot(more, found) == Spot(row=Row(prompt=SHORT), concurrency=32)


def test_faults_are_named_where_nothing_keeps_the_slo() -> None:
    end = row_end([cell(1, failed={"timeout": 3, "rejected": 17}), cell(1, failed={"timeout": 2})])
    assert end.reason.endswith("not one request keeps the SLO: rejected 17, timeout 5")


def test_another_budget_is_another_row() -> None:
    under = Axes(prompts=(SHORT,), concurrencies=(1, 2), batch_tokens=2048)
    found = [cell(1, 40.0), cell(2, 41.0)]
    assert next_spot(under, found) == Spot(row=Row(prompt=SHORT, batch_tokens=2048), concurrency=1)
    assert str(Row(prompt=SHORT, batch_tokens=2048)) == "512 tokens, budget 2,048"
    assert str(Row(prompt=PromptClass(name="p90", tokens=3100))) == "p90, 3,100 tokens"


def test_a_cell_that_the_generator_spoiled_is_tried_again_once_and_then_given_up() -> None:
    late = cell(2, 80.0, invalid=("generator_lag: p99 80 ms > 20 ms",))
    axes = Axes(prompts=(SHORT,), concurrencies=(1, 2, 4))
    assert next_spot(axes, [cell(1, 40.0), late]) == Spot(row=Row(prompt=SHORT), concurrency=2)
    twice = [cell(1, 40.0), late, late]
    assert next_spot(axes, twice) is None
    assert spoiled(twice, 2) == "generator_lag: p99 80 ms > 20 ms"
    assert told_of(axes, twice, Row(prompt=SHORT)).reason == "not reached: generator_lag: p99 80 ms > 20 ms"
    # The second try counts where it is good.
    assert next_spot(axes, [cell(1, 40.0), late, cell(2, 80.0)]) == Spot(row=Row(prompt=SHORT), concurrency=4)


def test_a_spoiled_cell_makes_no_knee() -> None:
    spoilt = cell(2, 1.0, invalid=("generator_lag",))
    assert row_end([cell(1, 40.0), spoilt, spoilt]).knee is None


def test_prompts_that_the_engine_does_not_take_are_not_sent() -> None:
    axes = Axes(prompts=(SHORT, LONG), concurrencies=(1,), longest=4096, output_tokens=128)
    assert next_spot(axes, [cell(1, 40.0)]) is None
    reason = told_of(axes, [], Row(prompt=LONG)).reason
    assert reason == ("not tried: prompt and answer of 8,320 tokens are more than the engine's 4,096")


def test_windows_of_one_place_are_one_cell() -> None:
    first = cell(
        2,
        100.0,
        kv_usage=0.5,
        waiting=1.0,
        preemptions=2.0,
        failed={"timeout": 1},
        ttft=Times(p50=0.1, p95=0.5, lower=0.4, upper=0.6),
        tpot=Times(p95=0.03),
    )
    second = cell(
        2,
        80.0,
        kv_usage=0.7,
        waiting=2.0,
        preemptions=3.0,
        failed={"timeout": 2, "cut": 1},
        ttft=Times(p50=0.1, p95=0.3, lower=0.2, upper=0.4),
        tpot=Times(),
    )
    (one,) = usable([first, cell(2, 7.0, invalid=("late",)), second])
    assert (one.goodput, one.throughput, one.offered, one.passed) == (90.0, 90.0, 40, 40)
    assert (one.kv_usage, one.waiting, one.preemptions, one.evictions) == (0.7, 1.5, 5.0, None)
    assert one.failed == {"timeout": 3, "cut": 1}
    assert (one.ttft, one.tpot) == (first.ttft, Times()), "the worse one, and none is worse than any"
    assert usable([first]) == (first,)


@given(st.lists(st.floats(0, 1e6), min_size=5, max_size=5))
def test_a_knee_has_the_most_tokens_that_count_up_to_the_step_that_ended_its_row(rates: list[float]) -> None:
    cells = [cell(count, rate) for count, rate in zip(AXES.concurrencies, rates, strict=True)]
    end = row_end(cells)
    if end.knee is None:
        return
    assert end.again == (end.knee, AXES.concurrencies[AXES.concurrencies.index(end.knee) + 1])
    assert row_end([*cells, *cells]).over
    place = AXES.concurrencies.index(end.knee)
    assert max(rates[: place + 1]) == rates[place]
    assert rates[place + 1] < (1 + LEAST_GAIN) * rates[place]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"prompts": ()}, "classes of prompts"),
        ({"prompts": (SHORT, SHORT)}, "each once"),
        ({"concurrencies": ()}, "rise from at least 1"),
        ({"concurrencies": (2, 1)}, "rise"),
        ({"concurrencies": (0, 1)}, "at least 1"),
        ({"output_tokens": 1}, "at least 2 tokens"),
        ({"batch_tokens": 0}, "at least 1 token"),
    ],
)
def test_axes_of_nonsense_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Axes(**{"prompts": (SHORT,), "concurrencies": (1,), **wrong})


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"passed": 21},
        {"throughput": float("inf")},
        {"kv_usage": 1.5},
        {"prefix_rate": -0.1},
        {"memory": float("nan")},
    ],
)
def test_cells_of_nonsense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least one|finite|share"):
        Cell(**{"prompt": SHORT, "concurrency": 1, "offered": 20, "passed": 20, **wrong})


def test_times_and_classes_of_nonsense_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        Times(p95=float("inf"))
    with pytest.raises(ValueError, match="at least 1 token"):
        PromptClass(name="x", tokens=0)


def test_a_pass_rate_of_nothing_is_none() -> None:
    assert Cell(prompt=SHORT, concurrency=1, offered=0, passed=0).pass_rate is None
    assert cell(1, 5.0).pass_rate == 1.0
