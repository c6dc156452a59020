"""Strata: the kinds of requests that evidence is kept apart by. One place for their names, for all who count.

A request has one crossed stratum, which a proxy tells from the bytes (`8k-32k/structured/stream`), and one
in each dimension by itself (`language=zh`), which a worker tells from what was asked, never from the answer:
an arm whose answers change could otherwise leave its stratum. Each recall question of a request is besides in
one by the depth of its answer (`depth=last-quarter`). There are `UNIVERSE` of them, fixed before any
evidence, so that looking for the worst has a price that is known (statistics A3 and ADR 17).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import chain

LENGTHS = ("under-2k", "2k-8k", "8k-32k", "32k-128k", "over-128k")
"""Of a request body."""
_LENGTH_LIMITS = (2 * 1024, 8 * 1024, 32 * 1024, 128 * 1024)
"""Bytes at which the next begins."""
STRUCTURES = ("free", "structured")
"""Whether the request asks for structured output or offers tools."""
STREAMINGS = ("whole", "stream")
CONSTRAINTS = ("unconstrained", "constrained")
"""Whether the engine was asked to constrain decoding: then answers parse and the damage moves into values."""
LANGUAGES = ("en", "zh", "other")
TURNS = ("1", "2-5", "6-20", "over-20")
"""User turns of the request."""
_TURN_LIMITS = (2, 6, 21)
DEPTHS = ("first-quarter", "second-quarter", "third-quarter", "last-quarter")
"""Where in the context the answer to a recall question stands: of each pair of a request by itself."""

DIMENSIONS = {
    "length": LENGTHS,
    "structured": STRUCTURES,
    "streaming": STREAMINGS,
    "constrained": CONSTRAINTS,
    "language": LANGUAGES,
    "turns": TURNS,
    "depth": DEPTHS,
}
"""Buckets by dimension."""
_CROSSED = {
    (rung, structured, streams): "/".join((length, STRUCTURES[structured], STREAMINGS[streams]))
    for rung, length in enumerate(LENGTHS)
    for structured in (False, True)
    for streams in (False, True)
}
UNIVERSE = frozenset(
    chain(
        _CROSSED.values(),
        (f"{dimension}={bucket}" for dimension, buckets in DIMENSIONS.items() for bucket in buckets),
    )
)
"""Every stratum there can be."""
TENANT = "tenant"
"""A dimension without fixed buckets: covered like the others, but its harm warns and never rejects."""

_MOST_READ = 20_000
"""Characters that are enough to tell a language."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ebef]")
_KANA_OR_HANGUL = re.compile("[\u3040-\u30ff\u1100-\u11ff\uac00-\ud7af]")
_LETTER = re.compile(r"[^\W\d_]")
_ASCII_LETTER = re.compile("[A-Za-z]")
_WORD = re.compile(r"[a-z]+")
_ENGLISH = frozenset(
    _WORD.findall(
        "a and are be can do for have how i if in is it not of or please that the this to what with you"
    )
)
_FOREIGN = (
    frozenset(
        _WORD.findall(
            # Frequent in German, French, Spanish, Italian, Portuguese, Dutch, and no English words.
            "das dem den der die ein eine ich ist mit nicht sie und von wie zu "
            "au aux ce dans des du elle est et il je la le les ne pas pour que qui sur un une vous "
            "como con cual de del el en esta lo los para por se si una y "
            "che di e gli il mi nel non per sono "
            "da do em isso mais na nao o os seu um uma "
            "dat een het ik naar niet op te van wat zijn"
        )
    )
    - _ENGLISH
)
_LEAST_ASCII = 0.95
"""Share of letters in an English text that need no accent, with a few foreign names in it."""
_LEAST_HAN = 0.1
"""Share of Han characters among the letters of a Chinese text that quotes English or code."""


def crossed(size: int, *, structured: bool, streams: bool) -> str:
    """The stratum as a proxy tells it, by bytes of the body and two facts: `8k-32k/structured/stream`."""
    return _CROSSED[bisect_right(_LENGTH_LIMITS, size), structured, streams]


def split_crossed(stratum: str) -> tuple[str, ...]:
    """Its length, structure and streaming by themselves; nothing for a name that is not of `UNIVERSE`."""
    if "=" in stratum or stratum not in UNIVERSE:
        return ()
    names = ("length", "structured", "streaming")
    return tuple(f"{name}={part}" for name, part in zip(names, stratum.split("/"), strict=True))


def marginals(stratum: str, *, constrained: bool, language: str, turns: int) -> tuple[str, ...]:
    """One stratum in each dimension. ValueError for a language that is none of `LANGUAGES`."""
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, got {language!r}")
    return (
        *split_crossed(stratum),
        f"constrained={CONSTRAINTS[constrained]}",
        f"language={language}",
        f"turns={TURNS[bisect_right(_TURN_LIMITS, turns)]}",
    )


def of_depth(depth: float) -> str:
    """The stratum of a recall question by the depth of its answer, 0 (start) to 1 (end)."""
    if not 0.0 <= depth <= 1.0:
        raise ValueError(f"a depth is within 0 and 1, got {depth}")
    return f"depth={DEPTHS[min(int(depth * len(DEPTHS)), len(DEPTHS) - 1)]}"


def language_of(texts: Iterable[str]) -> str:
    """The language somebody writes in, one of `LANGUAGES`; the end of what was written counts.

    By script, and among languages in Latin letters by their most frequent words. A text without any, such as
    code, is taken for English.
    """
    text = "\n".join(texts)[-_MOST_READ:]
    letters = len(_LETTER.findall(text))
    han, other = len(_HAN.findall(text)), len(_KANA_OR_HANGUL.findall(text))
    if han > other and han >= _LEAST_HAN * letters:
        return "zh"
    if len(_ASCII_LETTER.findall(text)) < _LEAST_ASCII * letters:
        return "other"
    words = _WORD.findall(text.lower())
    english = sum(word in _ENGLISH for word in words)
    foreign = sum(word in _FOREIGN for word in words)
    return "en" if english >= foreign else "other"
