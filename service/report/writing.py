"""Numbers as a report writes them: with their unit, and with their limits wherever there are some.

The same in every language, so that two reports of one run can be laid beside each other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

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


def time(seconds: float) -> str:
    """Milliseconds, or seconds from ten on."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    milliseconds = 1000 * seconds
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.1f} ms"


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
        digits = f"{abs(amount):,.2f}" if abs(amount) >= 1000 else f"{abs(amount):.4g}"
        if "e" in digits:
            digits = f"{abs(amount):.12f}".rstrip("0").rstrip(".") or "0"
        sign = "−" if amount < 0 and float(digits.replace(",", "")) else ""
        return f"{sign}{currency} {digits}" + (f" {unit}" if unit else "")

    return write


def digest(text: str) -> str:
    """The first twelve characters of a digest, as people compare them."""
    return text.removeprefix("sha256:")[:12]


def figure(told: Figure | None, write: Write, *, of: str = "") -> str:
    """A number with its limits, their level and what it was computed from; a dash where there is none."""
    if told is None:
        return NONE
    text = write(told.value)
    if told.lower is not None or told.upper is not None:
        limits = [NONE if limit is None else write(limit) for limit in (told.lower, told.upper)]
        text += f" [{limits[0]}, {limits[1]}]"
        notes = [] if told.level is None else [level(told.level)]
    else:
        notes = []
    if told.n is not None and of:
        notes.append(f"{of} {count(told.n)}")
    return f"{text} ({'; '.join(notes)})" if notes else text


def limits(told: Figure | None, write: Write) -> str:
    """A number with its limits alone, for where there is little room."""
    if told is None:
        return NONE
    if told.lower is None and told.upper is None:
        return write(told.value)
    ends = [NONE if limit is None else write(limit) for limit in (told.lower, told.upper)]
    return f"{write(told.value)} [{ends[0]}, {ends[1]}]"


def interval(value: float | None, lower: float, upper: float, write: Write, at: float) -> str:
    """An estimate that may be missing, with limits that never are."""
    told = NONE if value is None else write(value)
    return f"{told} [{write(lower)}, {write(upper)}] ({level(at)})"


def or_none(told: float | None, write: Write) -> str:
    """A number, or a dash."""
    return NONE if told is None else write(told)
