"""Evidence refuses counts that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from service.decision.evidence import Coverage, Evidence


@pytest.mark.parametrize("wrong", [{"attempt": 0}, {"tiers_under_test": 0}])
def test_attempts_and_tiers_count_from_one(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="count from 1"):
        Evidence(model="m", tier="t", epoch="e", **wrong)


@pytest.mark.parametrize("wrong", [{"traffic": {"short": -1}}, {"evidence": {"short": -1}}])
def test_strata_are_counted(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="negative"):
        Coverage(**wrong)
