"""Which scripts a text is written in, and whether an answer changes to one that its request does not know.

By script alone: from English to Chinese is seen, from English to German is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MOST_READ = 20_000
"""Characters read of an answer, from its end."""
MOST_ASKED = 100_000
"""The same of a request."""
LATIN = "Latin"
_SCRIPTS = {
    LATIN: "A-Za-z\u00c0-\u024f",
    "Chinese": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ebef",
    "Japanese": "\u3040-\u30ff",
    "Korean": "\u1100-\u11ff\uac00-\ud7af",
    "Cyrillic": "\u0400-\u04ff",
    "Greek": "\u0370-\u03ff",
    "Arabic": "\u0600-\u06ff",
    "Hebrew": "\u0590-\u05ff",
    "Devanagari": "\u0900-\u097f",
    "Thai": "\u0e00-\u0e7f",
}
_RUNS = {name: re.compile(f"[{span}]+") for name, span in _SCRIPTS.items()}
_CODE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^>\n]{1,200}>|\\\(.{0,200}?\\\)|\$[^$\n]*\$", re.DOTALL
)
_MAY_HOLD_CODE = re.compile(r"[`<$]|://|\\\(")
_OTHER_LANGUAGE = re.compile(
    r"\b(?:translat\w*|language|bilingual|multilingual|locale|transliterat\w*|pinyin|english|chinese|mandarin|"
    r"cantonese|japanese|korean|russian|ukrainian|greek|arabic|hebrew|hindi|thai|french|german|spanish|"
    r"kanji|hiragana|katakana)\b|[译譯翻]|[中英日韩韓俄法德]文|[汉漢英日韩韓俄法德阿]语|[漢英日韓俄法德阿]語|双语|雙語",
    re.IGNORECASE,
)
"""Words by which a request speaks of another language: then its answer may use it."""
LEAST_LETTERS = 40
"""Letters below which an answer says nothing of its language; an ideograph counts three, here and below."""
FOREIGN = 0.1
"""Share of an answer's letters in one foreign script that is a switch."""
FOREIGN_LATIN = 0.8
"""The same for Latin letters, in which names, units and code are written everywhere."""
KNOWN = 10
"""Letters by which a request knows a script."""
KNOWN_LATIN = 0.3
"""Share of a request's letters by which it knows the Latin one: every request has a name or two in it."""
_IDEOGRAPHS = frozenset({"Chinese", "Japanese", "Korean"})


def switched_to(asked: Sequence[str], answer: str) -> str | None:
    """The script of an answer that the texts it answers do not know; None where there is none.

    Code, addresses and formulas are in no language. Japanese is written in Chinese characters too. A request
    that speaks of a language, or of translation, may be answered in any.
    """
    read = answer[-MOST_READ:]
    written = _weights(_CODE.sub(" ", read) if _MAY_HOLD_CODE.search(read) else read)
    letters = sum(written.values())
    if letters < LEAST_LETTERS:
        return None
    foreign = [
        name
        for name, weight in written.items()
        if weight >= letters * (FOREIGN_LATIN if name == LATIN else FOREIGN)
    ]
    if foreign == [LATIN] and all(text.isascii() for text in asked):
        return None
    known = _weights("\n".join(asked)[-MOST_ASKED:])
    if not known:
        return None
    for name in foreign:
        if name == "Chinese" and known.get("Japanese"):
            continue
        enough = KNOWN_LATIN * sum(known.values()) if name == LATIN else KNOWN
        if known.get(name, 0) < enough and not any(_OTHER_LANGUAGE.search(text) for text in asked):
            return name
    return None


def _weights(text: str) -> dict[str, int]:
    names: Iterable[str] = (LATIN,) if text.isascii() else _RUNS
    found = {name: sum(map(len, _RUNS[name].findall(text))) for name in names}
    return {name: count * (3 if name in _IDEOGRAPHS else 1) for name, count in found.items() if count}
