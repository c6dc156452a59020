"""How long work stays with a dead worker, and messages with the broker, as the environment says."""

from __future__ import annotations

import pytest

from workers.periods import LEASE_SECONDS, VISIBILITY_SECONDS, lease_seconds, visibility_seconds


@pytest.mark.parametrize(("given", "seconds"), [("2", 2.0), ("0.5", 0.5), ("86400", 86_400.0)])
def test_a_number_of_seconds_up_to_a_day_is_taken(given: str, seconds: float) -> None:
    assert lease_seconds({LEASE_SECONDS: given}) == seconds
    assert visibility_seconds({VISIBILITY_SECONDS: given}) == seconds


def test_each_has_a_default_and_a_name_of_its_own() -> None:
    assert lease_seconds({VISIBILITY_SECONDS: "9"}) == 120.0
    assert visibility_seconds({LEASE_SECONDS: "9"}) == 3600.0


@pytest.mark.parametrize("given", ["", "0", "-1", "86401", "nan", "inf", "two minutes"])
def test_anything_else_ends_the_worker_and_names_the_variable(given: str) -> None:
    with pytest.raises(
        SystemExit, match=f"{LEASE_SECONDS}={given}: expected a number of seconds, at most a day"
    ):
        lease_seconds({LEASE_SECONDS: given})
