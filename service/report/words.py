"""Every sentence of a report, by name, in each language; a sentence is written with its numbers.

`{count:pair|pairs}` stands for the word before the bar where the number is 1, else for the one after it.

The catalogue is `catalogue/LANGUAGE.toml`, one table a section. All languages have the same names and the
same numbers in each sentence: tests hold them to it.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

CATALOGUE = Path(__file__).parent / "catalogue"


class Language(StrEnum):
    """A language that reports are written in."""

    EN = "en"
    ZH = "zh"

    @property
    def tag(self) -> str:
        """As HTML's `lang` has it."""
        return {"en": "en", "zh": "zh-Hans"}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One language's sentences."""

    language: Language
    sentences: Mapping[str, str]

    def __call__(self, name: str, /, **numbers: object) -> str:
        """The sentence with its numbers; KeyError for a name, or a number, that is missing."""
        return _FORMS.vformat(self.sentences[name], (), numbers)

    def known(self, name: str, otherwise: str) -> str:
        """The word for a name that is not ours, such as a reason for skipping; else that name itself."""
        return self.sentences.get(name, otherwise)


class _Forms(string.Formatter):
    """Writes numbers, and words in the form that a number asks for."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, several = format_spec.partition("|")
        if bar:
            return one if str(value) == "1" else several
        return str(format(value, format_spec))


_FORMS = _Forms()


@cache
def words(language: Language) -> Words:
    """The catalogue of one language."""
    return read_words(language, [CATALOGUE / f"{language}.toml"])


def read_words(language: Language, files: Iterable[Path]) -> Words:
    """The sentences of several files, a table a part; ValueError for one that is there twice."""
    found: dict[str, str] = {}
    for path in files:
        for table, sentences in tomllib.loads(path.read_text(encoding="utf-8")).items():
            for name, text in sentences.items():
                if f"{table}.{name}" in found:
                    raise ValueError(f"{path.name}: {table}.{name} is there already")
                found[f"{table}.{name}"] = text
    return Words(language=language, sentences=found)
