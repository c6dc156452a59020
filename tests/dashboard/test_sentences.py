"""Every sentence in every language, with the same numbers, and none that is missing where a page says it."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

import service.dashboard
from service.dashboard.sentences import WORDING, preferred, sentences
from service.report.words import Language, read_words, words
from tests.report.counted import told_as_several

ROOM = Path(service.dashboard.__file__).parent
ENGLISH = sentences(Language.EN).sentences
CHINESE = sentences(Language.ZH).sentences
OWN_NAMES = {"language.en", "language.zh"}
"""Each language is called what it calls itself."""


def numbers_of(sentence: str) -> set[str]:
    """The names of the numbers that a sentence is written with."""
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_both_languages_have_every_sentence() -> None:
    assert sorted(ENGLISH) == sorted(CHINESE)


def test_both_have_the_same_files() -> None:
    names = [{path.name for path in (WORDING / language).glob("*.toml")} for language in Language]
    assert names[0] == names[1]


def test_a_sentence_has_the_same_numbers_in_both() -> None:
    assert [name for name in ENGLISH if numbers_of(ENGLISH[name]) != numbers_of(CHINESE[name])] == []


SIGNS = "κ→…"


def test_the_english_is_english() -> None:
    foreign = {name for name, text in ENGLISH.items() if not re.sub(f"[{SIGNS}]", "", text).isascii()}
    assert foreign - OWN_NAMES == set()


def test_the_chinese_is_chinese() -> None:
    """What is an abbreviation, a command or a mark everywhere may be the same."""
    foreign = {
        name
        for name, text in CHINESE.items()
        if re.search(r"[a-z]{3}", re.sub(r"\{[^}]*\}|`[^`]*`", "", text))
        and not re.search(r"[\u4e00-\u9fff]", text)
        and name not in OWN_NAMES
    }
    assert [name for name in sorted(foreign) if CHINESE[name] == ENGLISH[name] and " " in ENGLISH[name]] == []


def test_one_of_something_is_not_told_as_several() -> None:
    assert list(told_as_several(ENGLISH)) == []


def test_every_sentence_that_is_said_by_name_is_there() -> None:
    """Names that are put together are tried by the tests of their pages."""
    sources = [*sorted(ROOM.rglob("*.py")), *sorted((ROOM / "pages").glob("*.html"))]
    said = {
        name
        for path in sources
        for name in re.findall(r"""\bsay\(\s*["']([\w.]+)["']""", path.read_text(encoding="utf-8"))
        if "." in name and not name.endswith((".", "_"))
    }
    assert len(said) > 60
    known = {*ENGLISH, *words(Language.EN).sentences}  # pages show a report's own words as well
    assert sorted(said - known) == []


def test_a_sentence_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text('[same]\nthing = "x"\n')
    with pytest.raises(ValueError, match=r"two.toml: same.thing is there already"):
        read_words(Language.EN, sorted(tmp_path.glob("*.toml")))


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", Language.EN),
        ("de, fr", Language.EN),
        ("zh", Language.ZH),
        ("zh-Hans-CN", Language.ZH),
        ("en, zh", Language.EN),
        ("en;q=0.1, zh;q=0.2", Language.ZH),
        ("zh;q=0", Language.EN),
        ("zh;q=much, en;q=0.1", Language.EN),
        (";;;,,,=", Language.EN),
    ],
)
def test_the_browsers_first_language_of_ours_is_taken(accepted: str, language: Language) -> None:
    assert preferred(accepted) is language
