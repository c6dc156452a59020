"""Reasons in the reader's language.

Every room says why in one English sentence with its numbers, and those sentences are kept: in the decision
log, in approvals, holds and jobs. The catalogue of another language, `catalogue/reasons/LANGUAGE/*.toml`, has
each of these forms, and beside it what that language says instead. A sentence is recognised by its form; what
stands at its `{names}` is put into the other one, and is told in that language itself where it is a reason.
What no form fits, such as a person's own words, stays as it is, and whoever shows it says so.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from service.report.words import CATALOGUE, Language, words

FORMS = CATALOGUE / "reasons"
LONGEST = 1000
"""Characters of a sentence that is looked at: ours are shorter, and others cost time."""
DEEPEST = 6
"""Reasons within reasons."""
CRITERION = "criterion."
"""Before the sentences of a report that are words for criteria."""
SEVERAL = "; "
"""Between reasons that stand in one line."""
MOST_PIECES = 4
"""That one reason may have of it."""
WIDE = frozenset(
    {
        "why",
        "how",
        "told",
        "short",
        "ended",
        "sides",
        "bound",
        "limit",
        "complaint",
        "warnings",
        "names",
        "parts",
        "faults",
        "what",
        "lack",
        "when",
        "span",
        "who",
        "growth",
        "waits",
        "before",
        "now",
        "choices",
        "labels",
        "purpose",
        "but",
        "said",
        "engine",
        "proxy",
        "stratum",
        "tenant",
        "rest",
        "price",
        "dearer",
    }
)
"""Names, in forms, of what may be several words: a reason, a list, a time."""
_NARROW = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+?)"""
_CODE = re.compile(r"[\w.@/-]+")
"""What may stand before a colon: a criterion, a gate, a tier, a code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One kind of sentence in both languages, with the same names."""

    english: str
    other: str
    pattern: re.Pattern[str]
    literal: int
    """How many characters of it never change."""
    mark: str
    """The longest piece that never changes: where it is missing, the rest need not be tried."""


@dataclass(frozen=True, slots=True, order=True)
class Told:
    """A reason in the other language, and how many characters of the English one were recognised."""

    known: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reasons:
    """The forms of one language, and its words for codes."""

    forms: tuple[Form, ...] = ()
    codes: Mapping[str, str]
    comma: str = ""
    """Between reasons that stand in one line."""
    colon: str = ""
    stop: str = ""

    def told(self, text: str) -> Told | None:
        """The reason, or several of them, in this language; None where it knows no form for any of it."""
        if text.endswith("."):
            found = _told(self, text[:-1], DEEPEST)
            return None if found is None else Told(found.known + 1, f"{found.text}{self.stop}")
        return _told(self, text, DEEPEST)

    def sentence(self, text: str, deep: int) -> Told | None:
        """As one reason."""
        if text in self.codes:
            return Told(len(text), self.codes[text])
        if len(text) > LONGEST:
            return None
        return max((*self._of_forms(text, deep), *self._after_code(text, deep)), default=None)

    def _of_forms(self, text: str, deep: int) -> Iterator[Told]:
        for form in self.forms:
            if form.mark in text and (found := form.pattern.fullmatch(text)):
                parts = {name: self._part(part, deep) for name, part in found.groupdict().items()}
                yield Told(
                    form.literal + sum(part.known for part in parts.values()),
                    form.other.format_map({name: part.text for name, part in parts.items()}),
                )

    def _after_code(self, text: str, deep: int) -> Iterator[Told]:
        """As `structured_output: REASON`."""
        code, colon, rest = text.partition(": ")
        if colon and rest and _CODE.fullmatch(code):
            told, why = self.codes.get(code), self._part(rest, deep)
            if told is not None or why.known:
                known = len(colon) + why.known + (len(code) if told is not None else 0)
                yield Told(known, f"{code if told is None else told}{self.colon}{why.text}")

    def several(self, text: str, deep: int) -> Told | None:
        """As several reasons, each told by itself; some have the separator within them."""
        pieces = text.split(SEVERAL)
        count = len(pieces)
        best = [Told(0, "")] * (count + 1)
        """Of all that follow from each place on."""
        for at in reversed(range(count)):
            readings = []
            for end in range(at + 1, min(count, at + MOST_PIECES) + 1):
                if end - at == count:
                    continue  # that is one sentence
                piece = SEVERAL.join(pieces[at:end])
                found = self.sentence(piece, deep - 1)
                if found is None and end > at + 1:
                    continue
                found, rest = found or Told(0, piece), best[end]
                told = f"{found.text}{self.comma}{rest.text}" if end < count else found.text
                readings.append(Told(found.known + rest.known, told))
            if readings:
                best[at] = max(readings)
        return best[0] if best[0].known else None

    def _part(self, text: str, deep: int) -> Told:
        """What stands within a reason."""
        return _told(self, text, deep - 1) or Told(0, text)


@lru_cache(maxsize=8192)
def _told(known: Reasons, text: str, deep: int) -> Told | None:
    """By the reading that recognises most of it; pages ask for the same every few seconds."""
    if deep == 0:
        return None
    found = [known.sentence(text, deep), known.several(text, deep)]
    return max((each for each in found if each is not None), default=None)


def reasons(language: Language) -> Reasons | None:
    """Those of one language; None where reasons are in it already."""
    return None if language is Language.EN else _read(language)


def in_words(language: Language, text: str) -> tuple[str, Language]:
    """The reason as told to a reader of that language, and the language that it is in after all."""
    known = reasons(language)
    found = None if known is None else known.told(text)
    return (text, Language.EN) if found is None else (found.text, language)


@cache
def _read(language: Language) -> Reasons:
    criteria = {
        name.removeprefix(CRITERION): text
        for name, text in words(language).sentences.items()
        if name.startswith(CRITERION)
    }
    return read_reasons(sorted((FORMS / language.value).glob("*.toml")), criteria)


def read_reasons(files: Iterable[Path], words_of_codes: Mapping[str, str] | None = None) -> Reasons:
    """The forms of several files; ValueError for one that is there twice, or has other names beside it.

    A table `codes` has words for what stands alone or before a colon, beside those that are given;
    `punctuation` what stands between.
    """
    forms: dict[str, str] = {}
    codes = dict(words_of_codes or {})
    punctuation: dict[str, str] = {}
    for path in files:
        for table, told in tomllib.loads(path.read_text(encoding="utf-8")).items():
            kept = {"codes": codes, "punctuation": punctuation}.get(table, forms)
            for english, other in told.items():
                if english in kept:
                    raise ValueError(f"{path.name}: {english!r} is there already")
                if names_of(english) != names_of(other):
                    raise ValueError(f"{path.name}: {english!r} has other names in the other language")
                kept[english] = other
    made = tuple(_form(english, other) for english, other in forms.items())
    return Reasons(forms=made, codes=codes, **punctuation)


def names_of(form: str) -> list[str]:
    """What changes in a form."""
    return sorted(name for _, name, _, _ in string.Formatter().parse(form) if name)


def _form(english: str, other: str) -> Form:
    fixed = [text for text, _, _, _ in string.Formatter().parse(english)]
    return Form(
        english=english,
        other=other,
        pattern=_pattern(english),
        literal=sum(map(len, fixed)),
        mark=max(fixed, key=len),
    )


def _pattern(form: str) -> re.Pattern[str]:
    """A name of `WIDE` stands for any text, others for one word or something in quotes."""
    parts = [
        re.escape(text) + (f"(?P<{name}>{'.+?' if name in WIDE else _NARROW})" if name else "")
        for text, name, _, _ in string.Formatter().parse(form)
    ]
    return re.compile("".join(parts), re.DOTALL)
