"""Text of clients and models as a page shows it: nothing in it acts, and nothing in it is unseen. Pure.

A text becomes pieces. What a reader would not see, or what would change what stands beside it (controls and
the escapes of terminals, marks of direction, widths of zero, halves of surrogate pairs, blanks that are no
space) is a piece of its own that spells the character out. Line ends stay as they are. What is long is folded
to its beginning and its end; the whole of it is for who asks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

MOST_FOLDED = 6_000
"""Characters of one text before it is folded."""
HEAD, TAIL = 4_000, 1_500
"""Characters of a folded text that are shown of its beginning and of its end."""
MOST_PIECES = 20_000
"""Of one text. Those beyond are run together: what is unseen is spelled out there too, without marks."""

_CONTROLS = {
    0x00: "NULL",
    0x07: "BELL",
    0x08: "BACKSPACE",
    0x09: "TAB",
    0x0B: "LINE TABULATION",
    0x0C: "FORM FEED",
    0x0D: "CARRIAGE RETURN",
    0x1B: "ESCAPE",
    0x7F: "DELETE",
}
_CATEGORIES = {"Cs": "HALF A SURROGATE PAIR", "Co": "PRIVATE USE", "Cn": "UNASSIGNED", "Cc": "CONTROL"}
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Printable by their category, and yet nothing is seen of them."""
_SEEN = frozenset("\n\u3000")
"""Not printable by category; a line end, and the wide space of Chinese and Japanese, show themselves."""
_SELECTORS = range(0xFE00, 0xFE10)
_MORE_SELECTORS = range(0xE0100, 0xE01F0)
_EMOJI_SELECTORS = frozenset("\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text that is shown in one way."""

    text: str
    unseen: str = ""
    """Name of the character, or `several`, that `text` spells out; empty where `text` stands as it is."""
    folded: int = 0
    """So many characters were left out here; then there is no text."""
    differs: bool = False
    """Whether the other side has something else here."""

    @property
    def markup(self) -> Markup:
        """Escaped, and nothing else done to it: line ends and every blank stay."""
        return escape(self.text)


def shown(text: str, *, whole: bool = False, differs: bool = False) -> list[Piece]:
    """The text in pieces: the whole of it, or folded where it is long."""
    left_out = 0 if whole else len(text) - HEAD - TAIL
    if whole or len(text) <= MOST_FOLDED:
        return bounded(pieces(text, differs=differs))
    return bounded(
        (
            *pieces(text[:HEAD], differs=differs),
            Piece(text="", folded=left_out, differs=differs),
            *pieces(text[-TAIL:], differs=differs),
        )
    )


def pieces(text: str, *, differs: bool = False) -> Iterator[Piece]:
    """What is seen, and what is not, in turn; neighbours that are unseen are one piece."""
    plain: list[str] = []
    unseen: list[str] = []
    before = ""
    if not text:
        return
    for part in text.splitlines(keepends=True) if "\n" in text else (text,):
        if _is_all_seen(part):
            if unseen:
                yield from _flushed(plain, unseen, differs)
            plain.append(part)
            before = part[-1:]
            continue
        for each in part:
            if is_seen(each, before):
                if unseen:
                    yield from _flushed(plain, unseen, differs)
                plain.append(each)
            else:
                if plain and not unseen:
                    yield Piece(text="".join(plain), differs=differs)
                    plain.clear()
                unseen.append(each)
            before = each
    yield from _flushed(plain, unseen, differs)


def bounded(told: Iterable[Piece]) -> list[Piece]:
    """The pieces; those beyond `MOST_PIECES` are run together: the page of a hostile text stays finite."""
    found: list[Piece] = []
    rest: list[str] = []
    for each in told:
        if len(found) < MOST_PIECES or each.folded:
            if rest:
                found.append(Piece(text="".join(rest)))
                rest = []
            found.append(each)
        else:
            rest.append(each.text)
    if rest:
        found.append(Piece(text="".join(rest)))
    return found


def marked(told: Iterable[Piece]) -> list[Piece]:
    """The same pieces as ones that differ."""
    return [replace(each, differs=True) for each in told]


def is_seen(each: str, before: str = "") -> bool:
    """Whether a character shows itself, after the one before it."""
    if each in _SEEN:
        return True
    if not each.isprintable() or each in _BLANK:
        return False
    if ord(each) in _SELECTORS or ord(each) in _MORE_SELECTORS:
        # Beside a picture they choose between colour and black; elsewhere they hide.
        return each in _EMOJI_SELECTORS and bool(before) and unicodedata.category(before) == "So"
    return True


def name_of(each: str) -> str:
    """The character's name; of a control, what it does."""
    return (
        _CONTROLS.get(ord(each))
        or unicodedata.name(each, "")
        or _CATEGORIES.get(unicodedata.category(each), "NO NAME")
    )


def _is_all_seen(text: str) -> bool:
    line = text.removesuffix("\n")
    return line.isprintable() and (line.isascii() or all(map(is_seen, line)))


def _flushed(plain: list[str], unseen: list[str], differs: bool) -> Iterator[Piece]:
    """What was gathered, and nothing gathered after it."""
    if unseen:
        yield _spelled("".join(unseen), differs)
        unseen.clear()
    elif plain:
        yield Piece(text="".join(plain), differs=differs)
        plain.clear()


def _spelled(unseen: str, differs: bool) -> Piece:
    first, amount = unseen[0], len(unseen)
    if unseen.count(first) == amount:
        code = "⇥" if first == "\t" else f"U+{ord(first):04X}"
        if first == "\t":
            return Piece(text="\t".join([code] * amount) + "\t", unseen=name_of(first), differs=differs)
        times = f" × {amount:,}" if amount > 1 else ""
        return Piece(text=code + times, unseen=name_of(first), differs=differs)
    told = " ".join(f"U+{ord(each):04X}" for each in unseen)
    return Piece(text=told, unseen="several", differs=differs)
