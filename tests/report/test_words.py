"""The catalogue: every sentence in every language, with the same numbers, and none that nobody says."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

import service.report
from service.capacity.batch import Chunk
from service.capacity.patterns import Pattern, State
from service.capacity.prefix_gate import Advice
from service.capacity.symptoms import Stage
from service.decision.policy import DECISIVE_BY_DEFAULT, Gate, Role
from service.decision.verdict import Decision, GateState
from service.report.changes import KEY_FIGURES, Change
from service.report.gathering.curves import METRICS
from service.report.measured import Metric
from service.report.words import Language, Words, words
from service.store.load.jobs import JobState
from service.store.redis.counters import Dropped, Skipped
from tests.report.counted import told_as_several

ROOM = Path(service.report.__file__).parent
SOURCE = "\n".join(path.read_text() for path in sorted(ROOM.rglob("*.py")))
ENGLISH = words(Language.EN).sentences
CHINESE = words(Language.ZH).sentences


def numbers_of(sentence: str) -> set[str]:
    """The names of the numbers that a sentence is written with."""
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_both_languages_have_every_sentence() -> None:
    assert sorted(ENGLISH) == sorted(CHINESE)


def test_a_sentence_has_the_same_numbers_in_both() -> None:
    other = [name for name in ENGLISH if numbers_of(ENGLISH[name]) != numbers_of(CHINESE[name])]
    assert other == []


def test_the_chinese_is_chinese() -> None:
    """What is an abbreviation everywhere, or punctuation, may be the same."""
    same = {"TTFT", "TPOT", "E2E", "SLO", "TTFT P95", "TPOT P95", ""}
    bare = {
        name: re.sub(r"\{[^}]*\}", "", text) for name, text in CHINESE.items() if ENGLISH[name] not in same
    }
    foreign = [name for name, text in bare.items() if not re.search(r"[\u4e00-\u9fff、，。：（）/]", text)]
    assert foreign == ["punctuation.between_sentences"]


def test_the_english_is_english() -> None:
    assert [name for name, text in ENGLISH.items() if not text.isascii()] == []


def test_one_of_something_is_not_told_as_several() -> None:
    assert list(told_as_several(ENGLISH)) == []
    assert list(told_as_several({"x.y": "{count} pairs, {pairs} {pairs:pair|pairs}"})) == ["x.y: count pairs"]


@pytest.mark.parametrize(
    ("number", "told"),
    [(1, "1 pair waits"), ("1", "1 pair waits"), (0, "0 pairs wait"), ("1,001", "1,001 pairs wait")],
)
def test_a_word_takes_the_form_that_its_number_asks_for(number: object, told: str) -> None:
    said = Words(language=Language.EN, sentences={"a.b": "{n} {n:pair waits|pairs wait}"})
    assert said("a.b", n=number) == told


def test_every_sentence_that_is_said_is_there() -> None:
    said = set(re.findall(r"""say\(\s*"([\w.]+)\"""", SOURCE))
    assert len(said) > 100
    assert said <= set(ENGLISH)


def test_every_sentence_is_said_somewhere() -> None:
    """By name, or by a table and a name that is put together."""
    whole = set(re.findall(r"[\"']([a-z_]+\.[a-z_0-9]+)[\"']", SOURCE))
    tables = set(re.findall(r"f[\"']([a-z_]+)\.\{", SOURCE))
    for name in ENGLISH:
        table, _, word = name.partition(".")
        assert name in whole or (table in tables and (f'"{word}"' in SOURCE or table in OPEN)), name


OPEN = {
    *("state", "decision", "role", "gate", "gate_state", "criterion", "metric", "arrivals", "arm", "figure"),
    *("change", "engine", "reason", "notes", "stage", "chunk", "prefix", "pattern", "pattern_state"),
}
"""Tables whose names come from elsewhere: the next test holds those to account."""


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("state", list(JobState)),
        ("decision", list(Decision)),
        ("role", list(Role)),
        ("gate", list(Gate)),
        ("gate_state", list(GateState)),
        ("criterion", list(DECISIVE_BY_DEFAULT)),
        ("metric", list(Metric)),
        ("figure", list(KEY_FIGURES)),
        ("change", list(Change)),
        ("engine", list(METRICS)),
        ("reason", [*Skipped, *Dropped]),
        ("stage", list(Stage)),
        ("chunk", list(Chunk)),
        ("prefix", list(Advice)),
        ("pattern", [each.replace(" ", "_") for each in Pattern]),
        ("pattern_state", list(State)),
    ],
)
def test_everything_that_has_a_name_has_a_word(table: str, names: list[str]) -> None:
    assert {f"{table}.{name}" for name in names} <= set(ENGLISH)


def test_a_sentence_without_its_number_is_an_error() -> None:
    with pytest.raises(KeyError):
        words(Language.EN)("page.title")


def test_a_name_that_is_not_ours_stays_what_it_is() -> None:
    assert words(Language.ZH).known("reason.of_a_plug_in", "of a plug-in") == "of a plug-in"
