"""When the next shadow job begins, across months, leap years and changes of clocks."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from service.settings.cron import cron
from service.settings.due import next_due


def due(written: str, after: str, timezone: str = "UTC") -> str | None:
    """Both moments as RFC 3339 in UTC."""
    found = next_due(cron(written), timezone, datetime.fromisoformat(after).timestamp())
    return None if found is None else datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%dT%H:%MZ")


@pytest.mark.parametrize(
    ("written", "after", "expected"),
    [
        ("0 3 * * 1", "2026-11-30T02:59:59Z", "2026-11-30T03:00Z"),
        ("0 3 * * 1", "2026-11-30T03:00:00Z", "2026-12-07T03:00Z"),
        ("*/20 * * * *", "2026-11-30T23:41:00Z", "2026-12-01T00:00Z"),
        ("0 0 1 jan *", "2026-11-30T00:00:00Z", "2027-01-01T00:00Z"),
        ("15 4 31 * *", "2026-11-30T00:00:00Z", "2026-12-31T04:15Z"),
        ("0 12 29 2 *", "2026-11-30T00:00:00Z", "2028-02-29T12:00Z"),
        ("0 12 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T12:00Z"),
        ("30 1,13 * * sun", "2026-11-29T01:30:00Z", "2026-11-29T13:30Z"),
    ],
)
def test_it_is_the_first_time_later_than_the_moment(written: str, after: str, expected: str) -> None:
    assert due(written, after) == expected


def test_it_goes_by_the_clock_of_its_time_zone() -> None:
    assert due("0 3 * * 1", "2026-11-29T18:59:00Z", "Asia/Shanghai") == "2026-11-29T19:00Z"
    assert due("0 3 * * 1", "2026-11-29T19:00:00Z", "Asia/Shanghai") == "2026-12-06T19:00Z"
    assert due("0 3 * * *", "2026-07-01T00:00:00Z", "America/New_York") == "2026-07-01T07:00Z"
    assert due("0 3 * * *", "2026-12-01T00:00:00Z", "America/New_York") == "2026-12-01T08:00Z"


def test_a_time_that_spring_leaves_out_is_an_hour_later() -> None:
    found = due("30 2 * * *", "2026-03-28T12:00:00Z", "Europe/Berlin")
    assert found == "2026-03-29T01:30Z"
    assert datetime.fromisoformat(found).astimezone(ZoneInfo("Europe/Berlin")).hour == 3


def test_of_a_time_that_autumn_has_twice_the_first_counts() -> None:
    assert due("30 2 * * *", "2026-10-24T12:00:00Z", "Europe/Berlin") == "2026-10-25T00:30Z"
    assert due("30 2 * * *", "2026-10-25T00:30:00Z", "Europe/Berlin") == "2026-10-26T01:30Z"


def test_each_time_follows_the_one_before() -> None:
    moment = datetime(2026, 3, 27, tzinfo=UTC).timestamp()
    every = cron("*/30 * * * *")
    for _ in range(400):
        following = next_due(every, "Europe/Berlin", moment)
        assert following is not None
        assert moment < following <= moment + 3600 + 1800
        moment = following
