"""Every sentence of the pages, by name, in each language: `wording/LANGUAGE/PAGE.toml`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from service.report.words import Language, Words, read_words

WORDING = Path(__file__).parent / "wording"


@cache
def sentences(language: Language) -> Words:
    """All of one language."""
    return read_words(language, sorted((WORDING / language.value).glob("*.toml")))


def preferred(accepted: str) -> Language:
    """The language of ours that comes first among those a browser accepts; English where none does."""
    asked = sorted(_ranked(accepted), key=lambda each: -each[0])
    for weight, tag in asked:
        for language in Language:
            if weight > 0 and tag.partition("-")[0] == language.value:
                return language
    return Language.EN


def _ranked(accepted: str) -> Iterable[tuple[float, str]]:
    """Weight and tag of each; what is no weight counts as 0."""
    for part in accepted[:500].split(","):
        tag, _, weight = part.strip().lower().partition(";q=")
        try:
            yield float(weight or 1), tag.strip()
        except ValueError:
            yield 0.0, tag.strip()
