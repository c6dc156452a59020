from __future__ import annotations

import pytest

from service.decision.detector import LOG_ALARM, Stretch
from service.decision.eprocess import log_mean
from service.decision.policy import Criterion, Hypothesis
from service.decision.watch import Watch

ONE_WAY = Criterion(evaluator="structured_output")
BOTH_WAYS = Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT)


def test_one_way_is_the_detector_itself() -> None:
    differences = [0.0, 1.0, -1.0, 0.5] * 5
    watch = Watch.of(ONE_WAY).after(differences)
    assert watch.better is None
    assert watch.log_statistic == Stretch(margin=0.01).after(differences).log_statistic
    assert watch.units == 20


def test_both_ways_are_the_mean_of_two() -> None:
    differences = [0.0, 1.0, -1.0, 0.5] * 5
    mirrored = [-difference for difference in differences]
    start = Stretch(margin=0.01)
    expected = log_mean(start.after(differences).log_statistic, start.after(mirrored).log_statistic)
    assert Watch.of(BOTH_WAYS).after(differences).log_statistic == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("criterion", "sign", "rings"),
    [
        (ONE_WAY, 1.0, True),
        (ONE_WAY, -1.0, False),
        (BOTH_WAYS, 1.0, True),
        (BOTH_WAYS, -1.0, True),
    ],
)
def test_it_rings_in_the_directions_of_its_hypothesis(criterion: Criterion, sign: float, rings: bool) -> None:
    assert Watch.of(criterion).after([sign] * 60).alarm is rings


def test_it_stops_at_the_alarm_whatever_follows() -> None:
    rung = Watch.of(ONE_WAY).after([1.0] * 60)
    assert rung.units < 60
    assert rung.log_statistic >= LOG_ALARM
    assert Watch.of(ONE_WAY).after([1.0] * (rung.units - 1)).log_statistic < LOG_ALARM
    assert rung.after([-1.0] * 100) == rung


def test_how_units_are_dealt_out_does_not_matter() -> None:
    differences = [0.0, 1.0, -0.5, 0.0, 1.0]
    whole = Watch.of(BOTH_WAYS).after(differences)
    assert Watch.of(BOTH_WAYS).after(differences[:2]).after([]).after(differences[2:]) == whole


def test_its_reason_has_both_numbers() -> None:
    assert Watch.of(ONE_WAY).reason == "structured_output: no unit since promotion"
    assert Watch.of(ONE_WAY).after([1.0]).reason.endswith("e-detector 1.36 < 100000 at unit 1 of service")
    assert ">= 1" in Watch.of(ONE_WAY).after([1.0] * 60).reason
