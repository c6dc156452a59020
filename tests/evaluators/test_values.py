"""Values in whatever form they are written."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.values import normal, occurrences, tokens
from tests.patience import here


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,234.50", "1234.5"),
        ("1,234,567", "1234567"),
        ("45,000", "45000"),
        ("100.00", "100"),
        ("4,281,300", "4.281.300"),
        ("4,281,300", "4\u202f281\u00a0300"),
        ("１２３４", "1234"),
        ("INV-20391", "inv-20391"),
        ("KX-20391-B", "KX\u201120391\u2010B"),
        ("48213 250 g", "48213\u00a0250 g"),
        ("2024-03-05", "March 5, 2024"),
        ("2024-03-05", "Mar. 5th, 2024"),
        ("2024-03-05", "5 March 2024"),
        ("2024-03-05", "the 5th of March 2024".removeprefix("the ")),
        ("2024-03-05", "2024/3/5"),
        ("2024-03-05", "2024年3月5日"),
        ("2024-03-05", "２０２４年３月５号"),
        ("2024-03-25", "03/25/2024"),
        ("2024-03-25", "25/03/2024"),
        ("2024-03-25", "25-3-2024"),
        ("2024-03-05", "05.03.2024"),
        ("2024-03-05", "5. March 2024"),
        ("2024-03-03", "03/03/2024"),
        ("2024-03-25", "3.25.2024"),
        ("2024-03-05", "二〇二四年三月五日"),
        ("2024-12-31", "二零二四年十二月三十一号"),
        ("1.234,50", "1,234.50"),
        ("1.234.567,8", "1234567.80"),
        ("一百二十三", "123"),
        ("三万零五百", "30500"),
        ("两千三百万", "23000000"),
        ("一亿两千万零七", "120000007"),
        ("四八二一", "4821"),
        ("截止日期是2024-03-05。", "截止日期是March 5, 2024。"),
        ("截止日期是2024-03-05号", "截止日期是5 March 2024号"),
    ],
)
def test_two_ways_to_write_one_value_are_one(one: str, other: str) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,234", "1.234"),
        ("12,34", "1234"),
        ("03/04/2024", "04/03/2024"),
        ("1.5", "15"),
        ("4,281,300", "4 281 300"),
        ("4.281", "4281"),
        ("31/31/2024", "2024-31-31"),
        ("1.2.3.2024", "1.2024-03-02"),
        ("二百五", "205"),
        ("三万五", "30005"),
        ("万一", "1"),
        ("三三两两", "3322"),
        ("百", "100"),
        ("一二", "12"),
        ("10.0.0.1", "10.0.1"),
        ("1.20.3", "1.2.3"),
        ("2024-03-05", "2024-03-06"),
        ("1,2345", "12345"),
    ],
)
def test_what_is_not_the_same_value_stays_apart(one: str, other: str) -> None:
    assert normal(one) != normal(other)


@pytest.mark.parametrize(
    ("value", "text", "count"),
    [
        ("42", "it is 42.", 1),
        ("42", "1423", 0),
        ("42", "142 421 42", 1),
        ("4.2", "4.25 14.2 4.2", 1),
        ("42", "42.5", 0),
        ("42", "-42", 0),
        ("42", "it is -42 (\u221242, $-42)", 0),
        ("42", '**-42** "-42" `-42` \u201c-42\u201d |-42| [-42]', 0),
        ("42", "-$42", 0),
        ("42", "it is -$42 (\u2212\u20ac42) **-$42**", 0),
        ("42", "these:\n-42\n-43", 1),
        ("42", "these:\n-$42\n- $43", 1),
        ("inv-42", "is -inv-42", 1),
        ("42", "3-42", 0),
        ("42", "a42 42a 42_", 0),
        ("42", '42, 42; (42) "42" $42', 5),
        ("4821", "the code is 4821.\nnext", 1),
        ("4821", "密码是4821号", 1),
        ("inv-1", "inv-1-b inv-12 xinv-1 inv-1", 1),
        ("a@b.co", "a@b.co.uk a@b.com x.a@b.co <a@b.co>", 1),
        ("2024-03-05", "2024-03-05t10:00 and 2024-03-05", 1),
        ("", "anything", 0),
        ("x", "", 0),
    ],
)
def test_a_value_counts_only_as_a_token_of_its_own(value: str, text: str, count: int) -> None:
    assert occurrences(value, text) == count


@given(st.text("08az-.,:/@+$\u2212 (", max_size=30))
def test_tokens_are_what_occurs_and_a_number_with_its_minus_is_another(text: str) -> None:
    compared = normal(text)
    told = Counter(tokens(compared))
    for found in told:
        if not found.startswith("-"):
            assert told[found] == occurrences(found, compared)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_number_is_found_beside_another_only_if_they_are_equal(one: int, other: int) -> None:
    assert occurrences(normal(f"{one:,}"), normal(f"it is {other}.")) == (one == other)


@pytest.mark.parametrize(
    "run",
    [
        "1." + "0" * 500_000 + "1.5",
        "1" + ",111" * 200_000 + ",1",
        "0" * 500_000,
        "1.0" * 200_000,
        "1" + ".111" * 200_000 + "x",
        "1" + "\u00a0111" * 200_000 + "1",
    ],
)
def test_runs_of_digits_take_time_in_their_length_and_not_its_square(run: str) -> None:
    began = time.process_time()
    normal(run)
    took = time.process_time() - began
    assert took < here(2)


@given(st.text(max_size=60))
def test_no_text_keeps_full_width_digits_or_a_second_kind_of_hyphen(text: str) -> None:
    assert not set(normal(text)) & set("\uff10\uff11\uff15\uff19\u2010\u2011")
