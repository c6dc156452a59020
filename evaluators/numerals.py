"""Chinese numerals in digits, where they can be read in one way: 一百二十三, 三万零五百, 二〇二四."""

from __future__ import annotations

import re

_DIGITS = "〇零一二三四五六七八九"
_VALUES = {"〇": 0, **{digit: value for value, digit in enumerate(_DIGITS[1:])}, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_ONE = "[一二两三四五六七八九]"
# 二百五 is 250 to some and 205 to nobody: a place that is skipped has to be said, as 零.
_BELOW_100 = f"(?:{_ONE}?十{_ONE}?)"
_BELOW_1000 = f"(?:{_ONE}百(?:{_ONE}十{_ONE}?|零{_ONE})?)"
_THOUSANDS = f"(?:{_ONE}千(?:{_ONE}百(?:{_ONE}十{_ONE}?|零{_ONE})?|零{_BELOW_100}|零{_ONE})?)"
_SECTION = f"(?:{_THOUSANDS}|{_BELOW_1000}|{_BELOW_100}|{_ONE})"
_REST = f"(?:{_THOUSANDS}|零{_SECTION})"
_NUMBER = re.compile(
    rf"(?:({_SECTION})亿)?((?:(?<=亿)零?|(?<!亿)){_SECTION}万)?((?<![万亿]){_SECTION}|(?<=[万亿]){_REST})?"
)

HAN_NUMERAL = re.compile(f"[{_DIGITS}两十][{_DIGITS}两十百千万亿]+")
"""Two characters or more of a numeral, right or not."""
HAN_DATE = re.compile(
    rf"([{_DIGITS}]{{4}})年([一二三四五六七八九十]{{1,2}})月([一二三四五六七八九十]{{1,3}})[日号]"
)


def in_digits(written: str) -> str:
    """A numeral of a hundred or more, or of four digits said one by one; anything else as it is."""
    if len(written) >= 4 and all(each in _DIGITS for each in written):
        return "".join(str(_VALUES[each]) for each in written)
    if not any(each in "百千万亿" for each in written):
        return written
    found = _NUMBER.fullmatch(written)
    if found is None:
        return written
    parts = (found[1] or "", (found[2] or "").removesuffix("万"), found[3] or "")
    return str(sum(below_10_000(part) * size for part, size in zip(parts, (10**8, 10**4, 1), strict=True)))


def below_10_000(written: str) -> int:
    """What a numeral without 万 says; 十 alone is ten."""
    total = digit = 0
    for each in written:
        if each in _UNITS:
            total += (digit or 1) * _UNITS[each]
            digit = 0
        else:
            digit = _VALUES[each]
    return total + digit


def date_in_digits(date: re.Match[str]) -> tuple[str, int, int]:
    """Year, month and day of a match of `HAN_DATE`."""
    year = "".join(str(_VALUES[each]) for each in date[1])
    return year, below_10_000(date[2]), below_10_000(date[3])
