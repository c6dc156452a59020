"""Chinese numerals, where they can be read in one way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluators.numerals import in_digits

_DIGITS = "零一二三四五六七八九"


def section(number: int) -> str:
    """A number below ten thousand as it is said."""
    said, skipped = "", False
    for size, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // size % 10
        if not digit:
            skipped = skipped or bool(said)
            continue
        said += ("零" if skipped else "") + _DIGITS[digit] + unit
        skipped = False
    return said


def spoken(number: int) -> str:
    said, left = "", number
    for size, unit in ((10**8, "亿"), (10**4, "万"), (1, "")):
        part, left = divmod(left, size)
        if part:
            said += ("零" if said and part < 1000 else "") + section(part) + unit
    return said


@given(st.one_of(st.integers(100, 99_999), st.integers(100, 10**12 - 1)))
def test_a_number_as_it_is_said_is_read_back(number: int) -> None:
    written = spoken(number)
    expected = written if not set(written) & set("百千万亿") else str(number)
    assert in_digits(written) == expected


@given(st.text(alphabet="零一二三四五六七八九两十百千万亿", max_size=12))
def test_whatever_is_written_is_read_or_left(written: str) -> None:
    assert in_digits(written) == written or in_digits(written).isdigit()
