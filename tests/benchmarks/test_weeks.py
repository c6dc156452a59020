"""A week's largest e-value is the largest of the plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from service.decision.eprocess import Differences, log_e_noninferiority
from tests.benchmarks import weeks
from tests.benchmarks.rows import MARGIN


def test_a_week_ends_with_its_largest_e_value() -> None:
    peaks, p_values = weeks.week_ends(np.random.default_rng(4), 3)
    harm, benefit = 0.015, 0.005
    drawn = np.random.default_rng(4).multinomial(
        weeks.STEP, [harm, benefit, 1 - harm - benefit], size=(3, weeks.PAIRS_A_WEEK // weeks.STEP)
    )
    signs = np.array([1.0, -1.0, 0.0])
    looks = drawn[1].cumsum(axis=0).astype(float)
    largest = max(log_e_noninferiority(Differences(values=signs, counts=look), MARGIN) for look in looks)
    assert peaks[1] == pytest.approx(largest, rel=1e-9)
    assert np.all((p_values > 0) & (p_values < 1))
