"""Values as they are compared: numbers, dates and identifiers in whatever form they are written."""

from __future__ import annotations

import re
import unicodedata

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"

_CHINESE_DATE = re.compile(r"(\d{4}) ?年 ?(\d{1,2}) ?月 ?(\d{1,2}) ?[日号]")
_ISO_DATE = re.compile(r"(?<![\d/.-])(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?![\d/-])(?!\.\d)")
# Not `\b`: Chinese text touches what it speaks of, and its characters are letters too.
_MONTH_FIRST = re.compile(rf"(?<![a-z0-9_])({_MONTH})\.? {_DAY},? (\d{{4}})(?![a-z0-9_])")
_DAY_FIRST = re.compile(rf"(?<![a-z0-9_]){_DAY} (?:of )?({_MONTH})\.?,? (\d{{4}})(?![a-z0-9_])")
# Possessive: no shorter run of groups or digits could match either, and trying them all takes their square.
_THOUSANDS = re.compile(r"(?<![\d,.])(\d{1,3}(?:,\d{3})++)(?!,*\d)")
_DECIMAL = re.compile(r"(?<![\d.])(\d++)\.(\d++)(?!\.+\d)")


def normal(text: str) -> str:
    """Text in the one form that values are compared in.

    Full-width characters and case are folded, thousands separators and trailing zeros of decimals dropped
    (1,234.50 = 1234.5), dates with a named month, of China or year first written as in ISO 8601. Dates such
    as 03/04/2024 stay as they are: whether the month comes first cannot be known.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _CHINESE_DATE.sub(lambda m: _iso(m[1], m[2], m[3]), text)
    text = _MONTH_FIRST.sub(lambda m: _iso(m[3], str(_MONTHS[m[1]]), m[2]), text)
    text = _DAY_FIRST.sub(lambda m: _iso(m[3], str(_MONTHS[m[2]]), m[1]), text)
    text = _ISO_DATE.sub(lambda m: _iso(m[1], m[2], m[3]), text)
    text = _THOUSANDS.sub(lambda m: m[1].replace(",", ""), text)
    return _DECIMAL.sub(_without_trailing_zeros, text)


def _without_trailing_zeros(decimal: re.Match[str]) -> str:
    fraction = decimal[2].rstrip("0")
    return f"{decimal[1]}.{fraction}" if fraction else decimal[1]


def _iso(year: str, month: str, day: str) -> str:
    return f"{year}-{int(month):02d}-{int(day):02d}"


def occurrences(value: str, text: str) -> int:
    """How often a value stands in a text as a token of its own; both in `normal` form.

    `42` is not in `1423`, `4.2` not in `4.25` or `14.2`, `inv-1` not in `inv-1-b`, `a@b.co` not in
    `a@b.co.uk`. A sentence may end right behind it, and Chinese text may touch it.
    """
    if not value:
        return 0
    count = 0
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if _free(text[max(0, at - 2) : at][::-1]) and _free(text[end : end + 2]):
            count += 1
        at = text.find(value, at + 1)
    return count


_TOKEN = re.compile(r"[0-9a-z_\u00df-\u024f]")
_JOINT = re.compile(r"[-.,:/@+][0-9a-z_]")


def _free(beside: str) -> bool:
    """Whether the two characters next to a value (nearest first) leave it a token of its own."""
    return _TOKEN.match(beside) is None and _JOINT.match(beside) is None
