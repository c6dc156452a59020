"""Numbers with their units, times as UTC."""

from __future__ import annotations

import pytest

from service.dashboard import formats
from service.dashboard.sentences import sentences
from service.report import writing
from service.report.words import Language


def test_numbers_have_their_units_and_a_dash_where_there_is_none() -> None:
    assert formats.points(0.0123) == "+1.23 pp"
    assert formats.points(-0.0123) == "−1.23 pp"
    assert formats.percent(0.1234) == "12.3 %"
    assert formats.percent(0.5, 0) == "50 %"
    assert [formats.percent(share, 2) for share in (0.0, 1e-7, 0.0001, 0.9999, 1 - 1e-7, 1.0)] == [
        *("0.00 %", "< 0.01 %", "0.01 %"),
        *("99.99 %", "> 99.99 %", "100.00 %"),
    ]
    assert formats.count(1234567) == "1,234,567"
    assert formats.milliseconds(0.25) == "250 ms"
    assert formats.milliseconds(0.0123) == "12.3 ms"
    assert formats.milliseconds(12.34) == "12.3 s"
    for written in (
        formats.points,
        formats.percent,
        formats.count,
        formats.milliseconds,
        formats.rate,
        formats.speed,
        formats.moment,
        formats.day,
    ):
        assert written(None) == formats.NONE


def test_a_page_writes_numbers_as_reports_do() -> None:
    assert formats.count(12_345) == writing.count(12_345)
    assert formats.points(-0.05) == writing.points(-0.05)
    assert formats.milliseconds(0.0321) == writing.time(0.0321)
    assert formats.rate(2.5) == writing.rate(2.5)
    assert formats.speed(1450.2) == "1,450 tok/s"


def test_times_are_utc_and_machines_can_read_them() -> None:
    assert formats.moment(1_800_000_000.0) == "2027-01-15 08:00:00 UTC"
    assert formats.day(1_800_000_000.0) == "2027-01-15"
    assert formats.timed(1_800_000_000.0) == (
        '<time datetime="2027-01-15T08:00:00Z">2027-01-15 08:00:00 UTC</time>'
    )
    assert formats.timed(0.0, "<long> ago") == '<time datetime="1970-01-01T00:00:00Z">&lt;long&gt; ago</time>'
    assert formats.timed(None) == formats.NONE


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, "–"),
        (-78.0, "0 s"),
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3700, "1 h 1 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_a_length_of_time_has_its_two_greatest_units(seconds: float | None, told: str) -> None:
    assert formats.span(sentences(Language.EN), seconds) == told
