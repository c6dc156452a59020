"""Times as programs read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from service.moments import moment


@pytest.mark.parametrize("seconds", [0.0, 0.999, 1_700_000_000.5, 4_102_444_799.0])
def test_a_moment_is_rfc_3339_in_utc_to_the_second(seconds: float) -> None:
    assert datetime.fromisoformat(moment(seconds)) == datetime.fromtimestamp(int(seconds), UTC)
    assert moment(seconds).endswith("Z")
