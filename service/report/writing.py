"""Numbers as a report writes them: with their unit, and with their limits wherever there are some.

The same in every language, so that two reports of one run can be laid beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

from service.report.measured import Figure

NONE = "–"
Write = Callable[[float], str]


def moment(seconds: float) -> str:
    """UTC, to the minute; a dash for a moment that no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return NONE


def duration(seconds: float) -> str:
    """Hours and minutes, or minutes and seconds, or seconds."""
    whole = round(max(0.0, seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def count(number: int) -> str:
    """With thousands apart."""
    return f"{number:,}"


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * share:+.2f} pp".replace("-", "−")


def margin(share: float) -> str:
    """A margin in percentage points."""
    return f"{100 * share:.3g} pp"


def per_cent(share: float) -> str:
    """A share in per cent."""
    return f"{100 * share:.2f} %"


def level(share: float) -> str:
    """How sure limits are."""
    return f"{100 * share:.3g} %"


def probability(share: float) -> str:
    """A p-value: two digits, and no zero for one that is merely small."""
    return "< 0.0001" if share < 1e-4 else f"{share:.2g}"


def factor(times: float) -> str:
    """How many times."""
    return f"{times:.2f}"


def time(seconds: float) -> str:
    """Milliseconds; seconds from ten on, microseconds below a tenth of one."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    milliseconds = 1000 * seconds
    if 0 < milliseconds < 0.1:
        return f"{1000 * milliseconds:.3g} µs"
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.1f} ms"


def time_difference(seconds: float) -> str:
    """Milliseconds with their sign, whatever their size: differences are compared with one another."""
    return f"{1000 * seconds:+,.1f} ms".replace("-", "−")


def rate(per_second: float) -> str:
    """Requests a second."""
    return f"{per_second:.3g} req/s"


def speed(tokens_per_second: float) -> str:
    """Tokens a second."""
    digits = 0 if abs(tokens_per_second) >= 100 else 1
    return f"{tokens_per_second:,.{digits}f} tok/s"


def money(currency: str, unit: str = "") -> Write:
    """Four significant digits of an amount in a currency, such as `CNY 1.234 / 1M tok`."""

    def write(amount: float) -> str:
        size = abs(amount) if abs(amount) >= 1e-12 else 0.0
        digits = f"{size:,.2f}" if size >= 1000 else f"{Decimal(f'{size:.4g}'):f}"
        sign = "−" if amount < 0 and size else ""
        return f"{sign}{currency} {digits}" + (f" {unit}" if unit else "")

    return write


def digest(text: str) -> str:
    """The first twelve characters of a digest, as people compare them."""
    return text.removeprefix("sha256:")[:12]


def figure(told: Figure | None, write: Write, *, of: str = "") -> str:
    """A number with its limits, their level and what it was computed from; a dash where there is none."""
    if told is None:
        return NONE
    bounded = told.lower is not None or told.upper is not None
    notes = [level(told.level)] if bounded and told.level is not None else []
    if told.n is not None and of:
        notes.append(f"{of} {count(told.n)}")
    text = limits(told, write)
    return f"{text} ({'; '.join(notes)})" if notes else text


def limits(told: Figure | None, write: Write) -> str:
    """A number with its limits, the unit once: `1,450 [1,421, 1,479] tok/s`."""
    if told is None:
        return NONE
    if told.lower is None and told.upper is None:
        return write(told.value)
    return _together(write(told.value), *(or_none(limit, write) for limit in (told.lower, told.upper)))


def interval(value: float | None, lower: float, upper: float, write: Write, at: float) -> str:
    """An estimate that may be missing, with limits that never are."""
    return f"{_together(or_none(value, write), write(lower), write(upper))} ({level(at)})"


_PARTS = re.compile(r"([+−]?)(\D*)([\d,.]+)(.*)")


def _together(value: str, lower: str, upper: str) -> str:
    """The unit once where all have the same one; each with its own where they differ."""
    found = [_PARTS.fullmatch(text) for text in (value, lower, upper)]
    units = {(each[2], each[4]) for each in found if each is not None}
    if len(units) != 1 or any(
        each is None and text != NONE for each, text in zip(found, (value, lower, upper), strict=True)
    ):
        return f"{value} [{lower}, {upper}]"
    ((before, after),) = units
    first, *ends = [NONE if each is None else f"{each[1]}{each[3]}" for each in found]
    sign = found[0][1] if found[0] is not None and before else ""
    return f"{sign}{before}{first.removeprefix(sign) if before else first} [{ends[0]}, {ends[1]}]{after}"


def or_none(told: float | None, write: Write) -> str:
    """A number, or a dash."""
    return NONE if told is None else write(told)


_GLUED = re.compile(
    r"(?<=[\d\]]) (?=(?:pp|ms|µs|s|h|min|tok|tok/s|req/s)\b|%|/ )"
    r"|(?<=\b[A-Z]{3}) (?=\d)"
    r"|(?<=\[)[^\[\]]{1,60}(?=\])"
)
"""Where a line must not break: between a number and its unit, and within limits."""


def glued(text: str) -> str:
    """The text, in which no line breaks within a number with its unit and limits."""
    return _GLUED.sub(lambda found: found[0].replace(" ", "\u00a0"), text)
