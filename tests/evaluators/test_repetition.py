"""Loops and floods: what is one, what only looks like one, and what reading them may cost."""

from __future__ import annotations

import random

import pytest

from evaluators.repetition import FLOOD, LEAST, MOST_READ, TIMES, flooded, loop_in

WORDS = (
    "brown",
    "fox",
    "jumps",
    "over",
    "lazy",
    "dogs",
    "while",
    "seven",
    "wizards",
    "vex",
    "quartz",
    "of",
    "sphinx",
)


def prose(words: int, seed: int = 1) -> str:
    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(words))


def test_a_sentence_said_again_and_again_is_a_loop_wherever_it_stands() -> None:
    said = " I will now do it again, and then once more."
    at_end = loop_in(prose(80) + said * TIMES + " I will")
    assert at_end is not None
    assert at_end.at_end
    assert at_end.times >= TIMES
    assert at_end.unit in said * 2
    within = loop_in(prose(80) + said * TIMES + prose(80, seed=2))
    assert within is not None
    assert not within.at_end


def test_chinese_loops_without_spaces() -> None:
    loop = loop_in("答案如下。" + "我们再看一遍这个问题，" * 20)
    assert loop is not None
    assert (len(loop.unit), loop.times) == (11, 20)


@pytest.mark.parametrize("times", [TIMES - 1, TIMES])
def test_fewer_times_are_emphasis(times: int) -> None:
    said = "and it goes on and on until the very end of all days " * times
    assert (loop_in(said) is None) == (times < TIMES)


def test_a_short_loop_is_a_refrain() -> None:
    assert loop_in("la " * (LEAST // 3 - 1)) is None
    assert loop_in("la " * LEAST) is not None


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"- item number {number} is here" for number in range(200)),
        "| a | b |\n|---|---|\n" + "".join(f"| {n} | {n * n} |\n" for n in range(200)),
        "|" + "---|" * 200,
        "-" * 5_000,
        "```\n" + "0, 0, 0, 0,\n" * 200 + "```",
        prose(3_000),
        "",
    ],
    ids=["list", "table", "rule of a table", "rule", "code", "prose", "nothing"],
)
def test_what_only_looks_alike_is_none(text: str) -> None:
    assert loop_in(text) is None
    assert not flooded(text)


def test_the_end_of_a_long_text_is_read_and_its_middle_is_not() -> None:
    loop = "and so on, and so forth, " * 20
    start, filler = prose(MOST_READ // 4), prose(MOST_READ, seed=3)
    assert loop_in(start + filler + loop) is not None
    assert loop_in(loop + filler + start) is not None
    assert loop_in(filler + loop + filler) is None


@pytest.mark.parametrize("space", ["\n", " ", "\t", "\u3000", " \n"])
def test_white_space_in_a_row_is_a_flood(space: str) -> None:
    run = (space * FLOOD)[:FLOOD]
    assert flooded(f"a{run}b")
    assert not flooded(f"a{run[1:]}b{run[1:]}")
    assert not flooded(f"```\na{run}b\n```")
