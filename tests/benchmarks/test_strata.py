"""The worst stratum is held to the decision's threshold."""

from __future__ import annotations

import pytest

from service.decision.thresholds import thresholds
from service.strata import UNIVERSE
from tests.benchmarks.procedure import POLICY
from tests.benchmarks.strata import strata_threshold


def test_strata_are_held_to_the_policys_threshold() -> None:
    limits = thresholds(POLICY, tiers=4, attempt=1, strata=len(UNIVERSE))
    assert strata_threshold(3, 4) == pytest.approx(limits.strata)
