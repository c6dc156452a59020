"""Values as they are compared: numbers, dates and identifiers in whatever form they are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from evaluators.numerals import HAN_DATE, HAN_NUMERAL, date_in_digits, in_digits

_HYPHENS = str.maketrans("\u2010\u2011", "--")
"""Models write identifiers with hyphens at which no line breaks; NFKC makes U+2010 of those. Dashes stay."""
_SPACED = re.compile(r"(?<![\d.,])(?<!\d[\u00a0\u2009\u202f])\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})++(?!\d)")
"""A space that keeps a number together separates thousands; an ordinary one may stand between two numbers."""
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
_DAY_FIRST = re.compile(rf"(?<![a-z0-9_]){_DAY}\.? (?:of )?({_MONTH})\.?,? (\d{{4}})(?![a-z0-9_])")
_YEAR_LAST = re.compile(r"(?<![\d/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?![\d/-])(?!\.\d)")
_EUROPEAN = re.compile(r"(?<![\d,.])(\d{1,3}(?:\.\d{3})++),(\d{1,2})(?![\d])(?![,.]\d)")
# One group alone could be a decimal; an address of four groups is written this way on either side.
_POINTED = re.compile(r"(?<![\d,.])(\d{1,3}(?:\.\d{3}){2,}+)(?!\.*\d)")
# Possessive: no shorter run of groups or digits could match either, and trying them all takes their square.
_THOUSANDS = re.compile(r"(?<![\d,.])(\d{1,3}(?:,\d{3})++)(?!,*\d)")
_DECIMAL = re.compile(r"(?<![\d.])(\d++)\.(\d++)(?!\.+\d)")


def normal(text: str) -> str:
    """Text in the one form that values are compared in.

    Full-width characters, case and hyphens are folded, thousands separators and trailing zeros of decimals
    dropped (1,234.50 = 1.234,50 = 1234.5; 4.281.300 = 4281300), Chinese numerals written in digits (from a
    hundred on, or digit by digit), dates written as in ISO 8601: with a named month, of China, year
    first, with points (day first), and with slashes or hyphens where one number can be no month. 03/04/2024
    stays as it is: nobody knows which month.
    """
    text = _SPACED.sub(lambda m: "".join(m[0].split()), text)
    text = unicodedata.normalize("NFKC", text).casefold().translate(_HYPHENS)
    text = HAN_DATE.sub(_han_date, text)
    text = HAN_NUMERAL.sub(lambda m: in_digits(m[0]), text)
    text = _CHINESE_DATE.sub(lambda m: _iso(m[1], m[2], m[3]), text)
    text = _MONTH_FIRST.sub(lambda m: _iso(m[3], str(_MONTHS[m[1]]), m[2]), text)
    text = _DAY_FIRST.sub(lambda m: _iso(m[3], str(_MONTHS[m[2]]), m[1]), text)
    text = _ISO_DATE.sub(lambda m: _iso(m[1], m[2], m[3]), text)
    text = _YEAR_LAST.sub(_year_last, text)
    text = _EUROPEAN.sub(lambda m: f"{m[1].replace('.', '')}.{m[2]}", text)
    text = _POINTED.sub(lambda m: m[1].replace(".", ""), text)
    text = _THOUSANDS.sub(lambda m: m[1].replace(",", ""), text)
    return _DECIMAL.sub(_without_trailing_zeros, text)


def _without_trailing_zeros(decimal: re.Match[str]) -> str:
    fraction = decimal[2].rstrip("0")
    return f"{decimal[1]}.{fraction}" if fraction else decimal[1]


def _han_date(date: re.Match[str]) -> str:
    year, month, day = date_in_digits(date)
    return _iso(year, str(month), str(day)) if 1 <= month <= 12 and 1 <= day <= 31 else date[0]


def _year_last(date: re.Match[str]) -> str:
    """In ISO form where it can only mean one day."""
    first, mark, second, year = int(date[1]), date[2], int(date[3]), date[4]
    readings = {(second, first), (first, second)} if mark != "." or second > 12 else {(second, first)}
    days = [(month, day) for month, day in readings if 1 <= month <= 12 and 1 <= day <= 31]
    return _iso(year, str(days[0][0]), str(days[0][1])) if len(days) == 1 else date[0]


def _iso(year: str, month: str, day: str) -> str:
    return f"{year}-{int(month):02d}-{int(day):02d}"


def occurrences(value: str, text: str) -> int:
    """How often a value stands in a text as a token of its own; both in `normal` form.

    `42` is not in `1423`, `4.2` not in `4.25` or `14.2`, `inv-1` not in `inv-1-b`, `a@b.co` not in
    `a@b.co.uk`, `380` not in `-380`. A sentence may end right behind it, and Chinese text may touch it.
    """
    if not value:
        return 0
    count = 0
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        signed = value[0].isdigit() and _is_signed(text, at)
        if not signed and _free(text[max(0, at - 3) : at][::-1]) and _free(text[end : end + 2]):
            count += 1
        at = text.find(value, at + 1)
    return count


def tokens(text: str) -> Iterator[str]:
    """Every token of its own, as long as it gets, a number with its minus; the text in `normal` form."""
    for found in TOKEN.finditer(text):
        signed = found[0][0].isdigit() and _is_signed(text, found.start())
        yield f"-{found[0]}" if signed else found[0]


TOKEN = re.compile(r"[0-9a-z_\u00df-\u024f]+(?:[-.,:/@+][0-9a-z_][0-9a-z_\u00df-\u024f]*)*")
"""What `occurrences` takes for a token of its own, as long as it gets, whatever its sign."""
_INNER = re.compile(r"[0-9a-z_\u00df-\u024f]")
_SIGN = re.compile(
    r"[$\u20ac\u00a3\u00a5]?[-\u2212](?:[ \t(\[{=:$\u20ac\u00a3\u00a5\"'`*~|\u201c\u2018\u00ab\u300c]|\Z)"
)
"""A minus before a number or its currency, nearest first, and what opens before it; behind a word it is a
hyphen, on a further line a bullet."""
_JOINT = re.compile(r"[-.,:/@+][0-9a-z_]")


def _is_signed(text: str, at: int) -> bool:
    return _SIGN.match(text[max(0, at - 3) : at][::-1]) is not None


def _free(beside: str) -> bool:
    """Whether the characters next to a value (nearest first) leave it a token of its own; two count."""
    return _INNER.match(beside) is None and _JOINT.match(beside) is None
