"""When a schedule is due: five fields of cron, read strictly, as numbers.

Lists, ranges, steps and English names of months and weekdays; 0 and 7 are Sunday. A day of the month together
with a weekday is refused: cron means either, Celery both, and people mean one of the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_STEP = re.compile(r"(?P<of>\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(?P<step>[0-9]{1,2}))?")
CRON_PATTERN = r"^\S+ \S+ \S+ \S+ \S+$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """The numbers that each field admits, in order."""

    minute: tuple[int, ...]
    hour: tuple[int, ...]
    day_of_month: tuple[int, ...]
    month_of_year: tuple[int, ...]
    day_of_week: tuple[int, ...]
    """0 is Sunday."""
    text: str
    """As it was written."""


def cron(written: object) -> Cron:
    """`0 3 * * 1`; ValueError says what is wrong with which field."""
    if not isinstance(written, str) or len(fields := written.lower().split()) != 5:
        raise ValueError(
            "expected minute, hour, day, month and weekday, such as '0 3 * * 1' for Mondays at 3, "
            f"got {written!r}"
        )
    minute, hour, day, month, weekday = fields
    if day != "*" and weekday != "*":
        raise ValueError(f"give a day of the month or a weekday, and * for the other, got {written!r}")
    days = _numbers(day, "day of the month", 1, 31)
    months = _numbers(month, "month", 1, 12, {name: n for n, name in enumerate(MONTHS, start=1)})
    if days[0] > max(_LONGEST[number - 1] for number in months):
        raise ValueError(f"no month that {written!r} names has a day {days[0]}: it would never be due")
    return Cron(
        minute=_numbers(minute, "minute", 0, 59),
        hour=_numbers(hour, "hour", 0, 23),
        day_of_month=days,
        month_of_year=months,
        day_of_week=_weekdays(weekday),
        text=" ".join(written.split()),
    )


def _weekdays(written: str) -> tuple[int, ...]:
    found = _numbers(written, "weekday", 0, 7, {name: n for n, name in enumerate(WEEKDAYS)})
    return tuple(sorted({number % 7 for number in found}))


def _numbers(
    written: str, field: str, least: int, most: int, names: dict[str, int] | None = None
) -> tuple[int, ...]:
    found: set[int] = set()
    for part in written.split(","):
        match = _STEP.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no {field}: write a number, a range such as 1-5, a list, * or */2")
        step = int(match["step"] or 1)
        if match["of"] == "*":
            first, last = least, most
        else:
            ends = [_number(end, field, least, most, names or {}) for end in match["of"].split("-")]
            first, last = ends[0], ends[-1]
            if match["step"] and len(ends) == 1:
                last = most  # 5/15: from 5 on
        if step < 1 or first > last:
            raise ValueError(f"{part!r} admits no {field}")
        found |= set(range(first, last + 1, step))
    return tuple(sorted(found))


def _number(written: str, field: str, least: int, most: int, names: dict[str, int]) -> int:
    number = names[written] if written in names else int(written) if written.isdecimal() else -1
    if not least <= number <= most:
        raise ValueError(f"{written!r} is no {field}: it lies between {least} and {most}")
    return number
