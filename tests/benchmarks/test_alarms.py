"""The e-detector of many streams at once is the detector of each."""

from __future__ import annotations

import math

import numpy as np

from service.decision.detector import Stretch, first_alarm
from tests.benchmarks.alarms import BLOCK, alarm_units, outcomes
from tests.benchmarks.procedure import Rates
from tests.benchmarks.rows import MARGIN


def test_alarms_are_those_of_the_detector() -> None:
    rates = Rates(harm=0.05, benefit=0.002)
    found = alarm_units(np.random.default_rng(4), rates, streams=6, units=BLOCK)
    drawn = np.array([1.0, -1.0, 0.0])[outcomes(np.random.default_rng(4), rates, 6)].T
    expected = [first_alarm(Stretch(margin=MARGIN), units.tolist()) for units in drawn]
    assert found.tolist() == [math.inf if each is None else each for each in expected]
    assert np.isfinite(found).sum() >= 4


def test_streams_without_an_alarm_have_none() -> None:
    none = alarm_units(np.random.default_rng(4), Rates(harm=0.0, benefit=0.0), streams=3, units=2 * BLOCK)
    assert none.tolist() == [math.inf] * 3


def test_looking_less_often_finds_no_alarm_earlier() -> None:
    rates = Rates(harm=0.05, benefit=0.002)
    always, seldom = (
        alarm_units(np.random.default_rng(4), rates, streams=6, units=BLOCK, every=every) for every in (1, 50)
    )
    assert np.all(seldom >= always)
    assert all(unit % 50 == 0 for unit in seldom[np.isfinite(seldom)])
