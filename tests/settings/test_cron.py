from __future__ import annotations

import pytest

from service.settings.cron import cron


def test_every_field_becomes_the_numbers_that_it_admits() -> None:
    found = cron("*/20 3,15 * jan-mar mon")
    assert found.minute == (0, 20, 40)
    assert found.hour == (3, 15)
    assert found.day_of_month == tuple(range(1, 32))
    assert found.month_of_year == (1, 2, 3)
    assert found.day_of_week == (1,)
    assert found.text == "*/20 3,15 * jan-mar mon"


@pytest.mark.parametrize(
    ("weekday", "numbers"),
    [
        ("0", (0,)),
        ("7", (0,)),
        ("sun", (0,)),
        ("5-7", (0, 5, 6)),
        ("mon-fri", (1, 2, 3, 4, 5)),
        ("*/2", (0, 2, 4, 6)),
    ],
)
def test_sunday_is_0_and_7(weekday: str, numbers: tuple[int, ...]) -> None:
    assert cron(f"0 3 * * {weekday}").day_of_week == numbers


def test_a_start_with_a_step_goes_on_to_the_end() -> None:
    assert cron("5/20 * * * *").minute == (5, 25, 45)
    assert cron("10-30/10 * * * *").minute == (10, 20, 30)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("0 3 * *", "such as '0 3 \\* \\* 1'"),
        ("@weekly", "minute, hour, day, month and weekday"),
        (3, "minute, hour, day"),
        ("60 3 * * *", "'60' is no minute: it lies between 0 and 59"),
        ("0 24 * * *", "no hour"),
        ("0 3 0 * *", "no day of the month"),
        ("0 3 * 13 *", "no month"),
        ("0 3 * * 8", "no weekday"),
        ("0 3 * * monday", "no weekday"),
        ("0 3 * * 1-", "is no weekday"),
        ("0 3 * * 5-1", "admits no weekday"),
        ("*/0 3 * * *", "admits no minute"),
        ("-5 3 * * *", "is no minute"),
        ("0 3 1 * 1", "a day of the month or a weekday"),
        ("0 3 31 feb,apr *", "has a day 31: it would never be due"),
        ("0 3 30-31 2 *", "has a day 30"),
    ],
)
def test_what_is_wrong_is_told_with_its_field(written: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        cron(written)


@pytest.mark.parametrize("written", ["0 3 29 2 *", "0 3 31 apr,may *", "0 3 1-31 2 *"])
def test_a_day_that_some_month_or_year_has_is_taken(written: str) -> None:
    assert cron(written).text == written
