"""Numbers, times and shares as people read them, with their units; a page writes them as reports do."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

from service import moments
from service.report import writing
from service.report.words import Words

NONE = writing.NONE
"""Where there is no number."""


def points(share: float | None) -> str:
    """A share in percentage points with its sign."""
    return writing.or_none(share, writing.points)


def percent(share: float | None, digits: int = 1) -> str:
    """A share in per cent; what is not nothing, or not all, is not rounded to it."""
    if share is None:
        return NONE
    least = 10.0**-digits
    if 0 < 100 * share < least / 2:
        return f"< {least:.{digits}f} %"
    if 100 - least / 2 < 100 * share < 100:
        return f"> {100 - least:.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def count(number: int | None) -> str:
    """A whole number, with thousands apart."""
    return NONE if number is None else writing.count(number)


def milliseconds(seconds: float | None) -> str:
    """A latency."""
    return writing.or_none(seconds, writing.time)


def rate(per_second: float | None) -> str:
    """Requests a second."""
    return writing.or_none(per_second, writing.rate)


def speed(per_second: float | None) -> str:
    """Tokens a second."""
    return writing.or_none(per_second, writing.speed)


def moment(seconds: float | None) -> str:
    """UTC, to the second."""
    return NONE if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def day(seconds: float | None) -> str:
    """UTC, to the day."""
    return NONE if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def stamp(seconds: float) -> str:
    """As `datetime` of HTML's `time` has it."""
    return moments.moment(seconds)


def timed(seconds: float | None, text: str | None = None) -> Markup:
    """HTML's `time` of unix seconds, in our own words or as the moment itself."""
    if seconds is None:
        return Markup(NONE)
    return Markup('<time datetime="{}">{}</time>').format(
        stamp(seconds), moment(seconds) if text is None else text
    )


def span(say: Words, seconds: float | None) -> str:
    """A length of time, by its two greatest units; none is less than nothing, whatever another clock says."""
    if seconds is None:
        return NONE
    seconds = max(0.0, seconds)
    minutes = int(seconds // 60)
    if minutes < 1:
        return say("span.seconds", seconds=int(seconds))
    if minutes < 60:
        return say("span.minutes", minutes=minutes)
    if minutes < 24 * 60:
        return say("span.hours", hours=minutes // 60, minutes=minutes % 60)
    return say("span.days", days=minutes // 1440, hours=minutes % 1440 // 60)
