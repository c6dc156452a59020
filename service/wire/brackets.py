"""Whether JSON that comes in fragments may have ended, told from its brackets as they come."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OUTSIDE = re.compile(r'["\[\]{}]|[^\s"\[\]{}]+')
"""Outside of strings: what opens, what closes, and anything else that is not white space."""
_WITHIN = re.compile(r'["\\]')
"""Within a string: its end, or an escape."""


@dataclass(slots=True)
class Brackets:
    """Reads fragments one after another, each character once. Says nothing of what is not JSON."""

    depth: int = 0
    closed: bool = False
    """One array or object has ended, and nothing but white space came behind it."""
    over: bool = False
    """Something came that no array or object alone would have: `closed` stays False."""
    looked_at: int = 0
    """Characters."""
    _quoted: bool = False
    _escaped: bool = False

    def read(self, fragment: str) -> None:
        """Go on with the next characters."""
        self.looked_at += len(fragment)
        at, end = 0, len(fragment)
        while at < end and not self.over:
            if self._escaped:
                self._escaped, at = False, at + 1
                continue
            found = (_WITHIN if self._quoted else _OUTSIDE).search(fragment, at)
            if found is None:
                return
            at = found.end()
            if self._quoted:
                self._quoted, self._escaped = found.group() == "\\", found.group() == "\\"
            else:
                self._sign(found.group())

    def _sign(self, sign: str) -> None:
        if self.closed or (self.depth == 0 and sign not in "[{"):
            self.over, self.closed = True, False
        elif sign == '"':
            self._quoted = True
        elif sign in "[{":
            self.depth += 1
        elif sign in "]}":
            self.depth -= 1
            self.closed = self.depth == 0
