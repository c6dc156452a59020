"""Numbers with their units and limits, the same in every language."""

from __future__ import annotations

import pytest

from service.report import writing
from service.report.measured import Figure

CNY = writing.money("CNY")


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (writing.moment(1_796_007_600.0), "2026-11-30 03:00 UTC"),
        (writing.moment(1e30), "–"),
        (writing.duration(11_520), "3 h 12 min"),
        (writing.duration(95), "1 min 35 s"),
        (writing.duration(-3), "0 s"),
        (writing.count(1_204_310), "1,204,310"),
        (writing.points(0.041), "+4.10 pp"),
        (writing.points(-0.0025), "−0.25 pp"),
        (writing.margin(0.01), "1 pp"),
        (writing.per_cent(0.9938), "99.38 %"),
        (writing.level(0.95), "95 %"),
        (writing.probability(0.01324), "0.013"),
        (writing.probability(1), "1"),
        (writing.probability(3e-9), "< 0.0001"),
        (writing.factor(1.754), "1.75"),
        (writing.time(0.0413), "41.3 ms"),
        (writing.time(0.42), "420 ms"),
        (writing.time(12.34), "12.3 s"),
        (writing.rate(7), "7 req/s"),
        (writing.speed(1450.2), "1,450 tok/s"),
        (writing.speed(12.34), "12.3 tok/s"),
        (CNY(0.0024137), "CNY 0.002414"),
        (CNY(-0.0000012345), "−CNY 0.000001234"),
        (CNY(12_345.678), "CNY 12,345.68"),
        (CNY(0), "CNY 0"),
        (CNY(1e-15), "CNY 0"),
        (writing.money("EUR", "/ h")(60), "EUR 60 / h"),
        (writing.digest("sha256:0123456789abcdef"), "0123456789ab"),
    ],
)
def test_a_number_has_its_unit(told: str, text: str) -> None:
    assert told == text


def test_a_figure_has_its_limits_their_level_and_what_it_rests_on() -> None:
    figure = Figure(value=0.002, lower=0.001, upper=0.004, level=0.9, n=8)
    assert writing.figure(figure, CNY, of="blocks") == "CNY 0.002 [0.001, 0.004] (90 %; blocks 8)"
    assert writing.figure(Figure(value=0.002), CNY) == "CNY 0.002"
    assert writing.figure(Figure(value=0.5, n=12), writing.per_cent, of="n") == "50.00 % (n 12)"
    assert writing.figure(None, CNY) == "–"


def test_a_limit_that_is_not_known_is_a_dash() -> None:
    figure = Figure(value=1.2, lower=1.0, level=0.95, n=60)
    assert writing.limits(figure, writing.time) == "1,200 [1,000, –] ms"
    assert writing.limits(None, writing.time) == "–"


def test_an_estimate_without_pairs_is_a_dash_within_its_limits() -> None:
    assert writing.interval(None, -1, 1, writing.points, 0.9) == "– [−100.00, +100.00] pp (90 %)"


def test_two_figures_that_differ_in_sign_never_look_alike() -> None:
    assert CNY(-0.5) == "−CNY 0.5"
    assert CNY(0.5) == "CNY 0.5"


@pytest.mark.parametrize(
    ("figure", "write", "text"),
    [
        (Figure(value=-0.5, lower=-0.9, upper=0.1), CNY, "−CNY 0.5 [−0.9, 0.1]"),
        (Figure(value=0.5, lower=-0.1, upper=0.9), CNY, "CNY 0.5 [−0.1, 0.9]"),
        (Figure(value=11, lower=10, upper=12), writing.money("CNY", "/ 1M tok"), "CNY 11 [10, 12] / 1M tok"),
        (Figure(value=9.9, lower=9.5, upper=10.4), writing.time, "9,900 ms [9,500 ms, 10.4 s]"),
        (Figure(value=-0.01, lower=-0.02, upper=0.0), writing.points, "−1.00 [−2.00, +0.00] pp"),
        (Figure(value=0.00002, lower=0.00001, upper=0.00009), writing.time, "20 [10, 90] µs"),
    ],
)
def test_the_unit_stands_once_where_all_have_the_same(
    figure: Figure, write: writing.Write, text: str
) -> None:
    assert writing.limits(figure, write) == text
