"""When a schedule is due next, by the clock on the wall of its time zone.

A time that a change of clocks leaves out is due as much later (02:30 in the spring is 03:30); of a time that
comes twice, the first counts.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from service.settings.cron import Cron

_MOST_DAYS = 9 * 366
"""29 February is eight years off where a century in between is no leap year."""


def next_due(cron: Cron, timezone: str, after: float) -> float | None:
    """The first time later than `after`, both unix seconds; None when none comes within nine years."""
    zone = ZoneInfo(timezone)
    # The day before as well: what a change of clocks puts off may come after midnight.
    first = datetime.fromtimestamp(after, UTC).astimezone(zone).date() - timedelta(days=1)
    for ahead in range(_MOST_DAYS):
        day = first + timedelta(days=ahead)
        if not _admits(cron, day):
            continue
        later = [moment for moment in _moments(cron, day, zone) if moment > after]
        if later:
            return min(later)
    return None


def _admits(cron: Cron, day: date) -> bool:
    return (
        day.month in cron.month_of_year
        and day.day in cron.day_of_month
        and day.isoweekday() % 7 in cron.day_of_week
    )


def _moments(cron: Cron, day: date, zone: ZoneInfo) -> list[float]:
    return [
        datetime.combine(day, time(hour, minute), tzinfo=zone).timestamp()
        for hour in cron.hour
        for minute in cron.minute
    ]
