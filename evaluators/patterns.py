"""Regular expressions of JSON Schema (ECMA-262) on a linear-time engine (RE2).

Each construct is rewritten to what RE2 means the same by; look-around, back-references and whatever else
RE2 cannot express raise `Inexpressible`, so that no pattern is matched by backtracking or in another dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import re2

_SPACE = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
"""White space and line ends of ECMA-262 12.2 and 12.3, as the inside of a class."""
_NO_SPACE = (
    r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
_NO_LINE_END = r"[^\n\r\x{2028}\x{2029}]"
_SETS = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": _SPACE, "S": _NO_SPACE}
_CONTROLS = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B}
_CATEGORIES = {
    "Letter": "L",
    "Cased_Letter": "LC",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Mark": "M",
    "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Dash_Punctuation": "Pd",
    "Connector_Punctuation": "Pc",
    "Symbol": "S",
    "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Control": "Cc",
    "cntrl": "Cc",
}
MOST_STEPS = 50_000_000
"""Instructions of a pattern times characters of a text: RE2 at its worst, which no signal stops."""
_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")
_PROPERTY = re.compile(r"\{(?:([A-Za-z_]+)=)?([A-Za-z0-9_]+)\}")
_ASSERTION = re.compile(r"\?(?:=|!|<=|<!|[ims]*-?[ims]*:)")
_UNICODE = re.compile(r"u\{([0-9A-Fa-f]{1,6})\}|u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_HEX = re.compile(r"u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})")


_MALFORMED = (
    "missing",
    "unexpected",
    "no argument",
    "bad repetition operator",
    "invalid character class range",
)
"""How RE2 begins to complain of what no dialect allows; the rest (sizes, properties) is its own limit."""


class Inexpressible(ValueError):
    """RE2 cannot match this pattern."""


class TooLong(ValueError):
    """The text is too long for this pattern."""


class NotAPattern(Inexpressible):
    """The text is not an ECMA-262 pattern at all."""


@lru_cache(maxsize=2048)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A function telling whether a text has a match anywhere, raising `TooLong`. Raises `Inexpressible`."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        compiled = re2.compile(to_re2(pattern).encode(), options)
    except re2.error as error:
        told = _told(error)
        known = told.startswith(_MALFORMED) and r"\p" not in told.casefold()
        kind = NotAPattern if known else Inexpressible
        raise kind(f"pattern {pattern[:80]!r}: {told}") from None
    longest = MOST_STEPS // compiled.programsize

    def matches(text: str) -> bool:
        if len(text) > longest:
            raise TooLong(f"{len(text)} characters > {longest}, for pattern {pattern[:80]!r}")
        # A lone surrogate has no UTF-8; it counts as one character that no pattern can name.
        return compiled.search(text.encode("utf-8", "replace")) is not None

    return matches


def whole_matcher(pattern: str) -> Callable[[str], bool]:
    """A function telling whether a whole text is a match. Raises `Inexpressible`."""
    matcher(pattern)  # by itself first: what is in balance only with the brackets below is no pattern
    return matcher(f"^(?:{pattern})$")


def to_re2(pattern: str) -> str:
    """The same pattern in RE2's words. Raises `Inexpressible`."""
    return _Translation(pattern).text()


def _told(error: Exception) -> str:
    told = error.args[0] if error.args else ""
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)


def _literal(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise Inexpressible("half of a surrogate pair")
    if code > 0x10FFFF:
        raise Inexpressible("beyond the last character")
    char = chr(code)
    return char if char.isascii() and char.isalnum() else rf"\x{{{code:x}}}"


class _Translation:
    """One pass over one pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def text(self) -> str:
        written: list[str] = []
        while self._at < len(self._pattern):
            char = self._take()
            if char == "\\":
                written.append(self._escape())
            elif char == "[":
                written.append(self._class())
            elif char == "(":
                written.append(self._group())
            elif char == ".":
                written.append(_NO_LINE_END)
            elif char == "^":
                written.append(r"\A")
            elif char == "$":
                written.append(r"\z")
            elif char == "{" and (found := _QUANTIFIER.match(self._pattern, self._at - 1)):
                written.append(found.group())
                self._at = found.end()
            elif char in "*+?|)":
                written.append(char)
            else:
                written.append(_literal(ord(char)))
        return "".join(written)

    def _take(self) -> str:
        if self._at >= len(self._pattern):
            raise NotAPattern(f"pattern {self._pattern[:80]!r} ends early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _group(self) -> str:
        if not self._pattern.startswith("?", self._at):
            return "(?:"  # nothing is captured: back-references are refused
        if self._pattern.startswith("?:", self._at):
            self._at += 2
            return "(?:"
        named = re.compile(r"\?<[A-Za-z_$][\w$]*>").match(self._pattern, self._at)
        if named is None:
            known = _ASSERTION.match(self._pattern, self._at)
            kind = NotAPattern if known is None else Inexpressible
            raise kind(f"pattern {self._pattern[:80]!r}: look-around and flags are not supported")
        self._at = named.end()
        return "(?:"

    def _escape(self) -> str:
        if self._pattern.startswith(("b", "B"), self._at):
            return "\\" + self._take()
        code, members = self._escaped()
        return f"[{members}]" if code is None else _literal(code)

    def _escaped(self) -> tuple[int | None, str]:
        """(code point, "") of a character escape, or (None, members) of one that stands for a set."""
        if found := _UNICODE.match(self._pattern, self._at):
            self._at = found.end()
            whole, high, low = found.groups()
            if whole:
                return int(whole, 16), ""
            return 0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00), ""
        if found := _HEX.match(self._pattern, self._at):
            self._at = found.end()
            return int(found.group(1) or found.group(2), 16), ""
        char = self._take()
        if char in _SETS:
            members = _SETS[char]
            return None, members
        if char in "pP":
            found = _PROPERTY.match(self._pattern, self._at)
            if found is None:
                raise NotAPattern(f"pattern {self._pattern[:80]!r}: \\{char} without a property")
            self._at = found.end()
            property, name = found.groups()
            if property not in (None, "General_Category", "gc", "Script", "sc"):
                raise Inexpressible(f"pattern {self._pattern[:80]!r}: property {property} is not supported")
            return None, rf"\{char}{{{_CATEGORIES.get(name, name)}}}"
        if char in _CONTROLS:
            return _CONTROLS[char], ""
        if char == "c" and self._at < len(self._pattern) and self._pattern[self._at].isalpha():
            return ord(self._take()) % 32, ""
        if char == "0" and not self._pattern[self._at : self._at + 1].isdigit():
            return 0, ""
        if char == "k" or char.isdigit():
            raise Inexpressible(f"pattern {self._pattern[:80]!r}: back-references are not supported")
        if char.isalnum():
            raise NotAPattern(f"pattern {self._pattern[:80]!r}: \\{char} means nothing")
        return ord(char), ""

    def _class(self) -> str:
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        written: list[str] = []
        # what the last member was: a character may begin a range, a set or the end of a range may not
        may_begin_range = False
        while (char := self._take()) != "]":
            following = self._pattern[self._at : self._at + 1]
            if char == "-" and may_begin_range and following not in ("]", "") and not self._set_follows():
                written.append("-")
                may_begin_range = False
                continue
            ends_range = bool(written) and written[-1] == "-"
            if char == "\\":
                if self._pattern.startswith("b", self._at):
                    self._at += 1
                    code, members = 8, ""
                else:
                    escaped, members = self._escaped()
                    code = -1 if escaped is None else escaped
            else:
                code, members = ord(char), ""
            written.append(members or _literal(code))
            may_begin_range = not members and not ends_range
        if not written:
            return r"(?s:.)" if negated else r"[^\x{0}-\x{10ffff}]"
        return f"[{'^' if negated else ''}{''.join(written)}]"

    def _set_follows(self) -> bool:
        return self._pattern[self._at : self._at + 2] in {"\\" + name for name in (*_SETS, "p", "P")}
