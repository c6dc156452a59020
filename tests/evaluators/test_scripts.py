"""Answers in a script that their request does not know, and those that only quote it."""

from __future__ import annotations

import pytest

from evaluators.scripts import switched_to

ENGLISH = "The sea is wide and blue, and nobody who lives beside it ever gets tired of looking at it."
CHINESE = "大海非常宽广，风很大，天空很蓝，我们在海边散步。"
RUSSIAN = "Море широкое и синее, и никто не устаёт смотреть на него."


@pytest.mark.parametrize(
    ("asked", "answer", "found"),
    [
        ("What is the sea like?", CHINESE, "Chinese"),
        ("What is the sea like?", f"{ENGLISH} {ENGLISH} {CHINESE}", "Chinese"),
        ("What is the sea like?", RUSSIAN, "Cyrillic"),
        ("请用简单的话解释什么是 API。", ENGLISH, "Latin"),
        ("Как выглядит море?", CHINESE, "Chinese"),
        ("What is the sea like?", ENGLISH, None),
        ("大海是什么样子？", CHINESE, None),
        ("大海是什么样子？", f"{CHINESE} It is called the Pacific.", None),
        ("海はどんなところですか", "太平洋東海岸国立公園周辺地域", None),
    ],
)
def test_the_request_says_which_scripts_may_be_written(asked: str, answer: str, found: str | None) -> None:
    assert switched_to([asked], answer) == found


@pytest.mark.parametrize(
    "asked",
    [
        "Translate: the sea is wide.",
        "Say it in Chinese.",
        "Which language is this?",
        "How would a Russian put it?",
    ],
)
def test_a_request_that_speaks_of_languages_may_be_answered_in_any(asked: str) -> None:
    assert switched_to([asked], CHINESE) is None


@pytest.mark.parametrize("asked", ["请把下面的话译成别的语言：你好", "用英文回答：大海是什么样子"])
def test_so_may_one_in_chinese(asked: str) -> None:
    assert switched_to([asked], ENGLISH) is None


def test_code_addresses_and_short_answers_say_nothing_of_a_language() -> None:
    asked = ["What is the sea like?"]
    assert switched_to(asked, f"```\n# {CHINESE}\n```") is None
    assert switched_to(asked, f"{ENGLISH} `{CHINESE}`") is None
    assert switched_to(asked, "大海") is None
    assert switched_to(["请解释"], f"https://example.com/{'a' * 300}") is None


def test_a_script_that_any_turn_knows_may_be_written() -> None:
    assert switched_to(["You are helpful.", CHINESE, "And now?"], CHINESE) is None
    assert switched_to(["1 + 1 = ?"], CHINESE) is None
