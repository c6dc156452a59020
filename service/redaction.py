"""What is masked before a request or an answer is kept: e-mails, phone numbers, cards, keys. PURE.

A mask keeps the form of what it hides: an address stays an address, digits stay as many digits. So JSON
within text stays JSON, a schema that asked for such a value still finds one, and what is masked is not masked
again. Every pattern reads a text once: possessive repetitions and bounded look-behinds, no backtracking over
runs. Over-masking is harmless, since both arms of a pair are masked alike; what is missed is not, so patterns
are wide. Names, postal addresses and free prose are not found: whoever has to hide those brings a mask of
their own (`service.settings.redacting`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Json = Any
"""A parsed JSON value."""
Mask = Callable[[str], str]
"""Takes a text and gives it back without what must not be kept."""

E_MAIL = "masked@example.com"
SECRET = "masked"

STRUCTURAL = frozenset(
    {
        "model",
        "role",
        "type",
        "format",
        "pattern",
        "$ref",
        "$id",
        "$schema",
        "tool_choice",
        "finish_reason",
    }
)
"""Keys whose text is the structure of a request and no content."""
NUMERIC = frozenset(
    {
        "seed",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "created",
        "created_at",
        "max_tokens",
    }
)
"""Keys whose numbers are never anybody's."""
SECRETIVE = frozenset(
    {
        "password",
        "passwd",
        "passphrase",
        "secret",
        "client_secret",
        "api_key",
        "apikey",
        "x-api-key",
        "access_token",
        "refresh_token",
        "id_token",
        "authorization",
        "private_key",
        "secret_access_key",
    }
)
"""Keys whose text is a secret whatever it looks like; a schema's properties of these names are no text."""


def redacted(value: Json, mask: Mask) -> Json:
    """The value with every text masked; structure, keys and the kinds of values stay as they are.

    A whole number is masked where its digits alone would be, as a phone number may be written as one. A mask
    that makes something other than text of a text raises TypeError.
    """
    if mask is unmasked:
        return value
    if isinstance(value, str):
        return _masked(value, mask)
    if isinstance(value, list):
        return [redacted(each, mask) for each in value]
    if isinstance(value, dict):
        return {key: _member(key, each, mask) for key, each in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return _number(value, mask)
    return value


def _member(key: str, value: Json, mask: Mask) -> Json:
    if key in STRUCTURAL and isinstance(value, str):
        return value
    if key in NUMERIC and isinstance(value, int | float):
        return value
    if isinstance(value, str) and value and key.lower().replace("-", "_") in _SECRETIVE:
        return SECRET
    return redacted(value, mask)


_SECRETIVE = frozenset(key.replace("-", "_") for key in SECRETIVE)


def _masked(text: str, mask: Mask) -> str:
    if text.startswith("data:"):  # media in the body: megabytes of base64, and nothing to read in them
        return text
    masked = mask(text)
    if not isinstance(masked, str):
        raise TypeError(f"a mask must give text for text, got {type(masked).__name__}")
    return masked


_LEAST_DIGITS = 11


def _number(value: int, mask: Mask) -> int:
    written = str(abs(value)) if abs(value) < 10**19 else ""
    if len(written) < _LEAST_DIGITS:
        return value
    masked = mask(written)
    if len(masked) != len(written) or not (masked.isascii() and masked.isdigit()) or masked[0] == "0":
        return value
    return int(masked) if value >= 0 else -int(masked)


def mask_personal(text: str) -> str:
    """The default mask. Linear in the length of the text."""
    if "-----BEGIN" in text:
        text = _without_private_keys(text)
    lowered = text.lower()
    for hints, pattern in _SECRETS:
        if any(hint in lowered for hint in hints):  # to look for a word is much faster than for a pattern
            text = pattern.sub(_mixed, text)
    if "@" in text:
        text = _EMAIL.sub(_email, text)
    if _MANY_DIGITS.search(text):
        text = _DIGITS.sub(_cards, text)
        for pattern in _PHONES:
            text = pattern.sub(_zeroed, text)
    return text


# JSON within text has escapes: `\nann@example.com` must not lose the n of its `\n`, `\u4e2d138...` no digit.
_FRESH = r"(?:(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<![\\%s]))"

_EMAIL = re.compile(
    _FRESH % "A-Za-z0-9._%+-" + r"[A-Za-z0-9._%+-]++@(?P<domain>[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++)"
)
_TOP_LEVEL = re.compile(r"\.[A-Za-z](?:[A-Za-z]++|[Nn]--[A-Za-z0-9-]++)\Z")


def _email(found: re.Match[str]) -> str:
    """`react@18.2.0` is no address: the last label of one has no digits."""
    return E_MAIL if _TOP_LEVEL.search(found["domain"]) else found[0]


_MANY_DIGITS = re.compile(r"[0-9](?:[^0-9]{0,2}[0-9]){6}")
"""As few as a phone number has."""
_DIGITS = re.compile(r"(?<![0-9])[0-9](?:[ -]?[0-9])*+")
_GROUP = re.compile(r"[0-9]++")
_CARD_LENGTHS = range(13, 20)
_MOST_GROUPS = 8
"""Groups that a card number is written in; 4 of 4, or 4-6-5."""


def _cards(found: re.Match[str]) -> str:
    """A run of digits, in which groups that make up a card number are masked."""
    run = found[0]
    if len(run) < _CARD_LENGTHS.start:
        return run
    groups = [(group.start(), group.end()) for group in _GROUP.finditer(run)]
    parts: list[str] = []
    done = first = 0
    while first < len(groups):
        last = _card_from(run, groups, first)
        if last is None:
            first += 1
            continue
        start, end = groups[first][0], groups[last][1]
        parts += [run[done:start], _keeping(run[start:end], 1)]
        done, first = end, last + 1
    return "".join([*parts, run[done:]])


def _card_from(run: str, groups: list[tuple[int, int]], first: int) -> int | None:
    """The last group of a card number that begins with a group; None when none does."""
    digits = ""
    for last in range(first, min(first + _MOST_GROUPS, len(groups))):
        start, end = groups[last]
        if end - start > _CARD_LENGTHS.stop:
            return None
        digits += run[start:end]
        if len(digits) in _CARD_LENGTHS and _is_card(digits):
            return last
    return None


def _is_card(digits: str) -> bool:
    """ISO/IEC 7812: a first digit that banks issue, and Luhn's sum."""
    if digits[0] not in "23456" or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


_NOT_WITHIN = r"(?<![0-9])(?<![0-9]\.)(?<!\\u)"
_PHONES = (
    # Mainland China, with or without its code, in threes and fours or without.
    re.compile(_NOT_WITHIN + r"(?:(?:\+|00)?86[ -]?)?1[3-9][0-9](?:[ -]?[0-9]{4}){2}(?![0-9])"),
    # Any country, with its code.
    re.compile(r"(?<![0-9+])\+[1-9](?:[ .()-]{0,2}[0-9]){6,14}(?![0-9])"),
    # North America, in threes and four.
    re.compile(_NOT_WITHIN + r"\(?[2-9][0-9]{2}\)?[ .-][2-9][0-9]{2}[ .-][0-9]{4}(?![0-9])"),
    # Landlines of China.
    re.compile(
        _NOT_WITHIN + r"(?:\(0[1-9][0-9]{1,2}\)[ -]?|0[1-9][0-9]{1,2}[ -])[0-9]{3,4}[ -]?[0-9]{4}(?![0-9])"
    ),
)


def _zeroed(found: re.Match[str]) -> str:
    """All but the first three digits, which are a network's or an area's, are 0."""
    return _keeping(found[0], 3)


def _keeping(text: str, digits: int) -> str:
    kept = 0
    letters = []
    for letter in text:
        if letter.isdigit():
            kept += 1
            letters.append(letter if kept <= digits else "0")
        else:
            letters.append(letter)
    return "".join(letters)


def _mixed(found: re.Match[str]) -> str:
    """Prose follows such words as well: what holds no digit and is short is taken for a word."""
    value = found["value"]
    if not any(letter.isdigit() for letter in value) and len(value) < _SHORTEST_WITHOUT_DIGITS:
        return found[0]
    return f"{found['kept']}{SECRET}"


_SHORTEST_WITHOUT_DIGITS = 24
_TOKEN = r"(?P<value>[A-Za-z0-9._~+/-]{8,}+=*+)"
_QUOTES = r"""(?:\\*+["'])?+"""


def _after(prefix: str, value: str) -> re.Pattern[str]:
    return re.compile(_FRESH % "A-Za-z0-9" + f"(?P<kept>{prefix})(?P<value>{value})")


_SECRETS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("sk-",), _after(r"sk-(?:ant-|proj-|or-|svcacct-)?", r"[A-Za-z0-9_-]{16,}+")),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_", "hf_", "tg_", "dop_v1_"),
        _after(r"(?:gh[pousr]|npm|hf|tg|dop_v1)_", r"[A-Za-z0-9_-]{16,}+"),
    ),
    (("glpat-", "pypi-", "xox"), _after(r"(?:glpat|pypi|xox[abeprs])-", r"[A-Za-z0-9_-]{16,}+")),
    (("github_pat_",), _after(r"github_pat_", r"[A-Za-z0-9_]{20,}+")),
    (("akia", "asia", "ltai", "akid"), _after(r"(?:AKIA|ASIA|LTAI|AKID)", r"[A-Za-z0-9]{12,}+")),
    (("aiza",), _after(r"AIza", r"[A-Za-z0-9_-]{30,}+")),
    (("_live_", "_test_"), _after(r"(?:sk|pk|rk)_(?:live|test)_", r"[A-Za-z0-9]{10,}+")),
    (("eyj",), _after(r"eyJ", r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+")),
    (
        ("bearer", "basic"),
        re.compile("(?i)" + _FRESH % "A-Za-z0-9" + rf"(?P<kept>(?:bearer|basic)[ \t]{{1,8}}){_TOKEN}"),
    ),
    (
        ("key", "secret", "token", "passw", "authorization", "密码", "密钥"),
        re.compile(
            r"(?i)(?P<kept>(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|authorization|密码|密钥)"
            rf"{_QUOTES}[ \t]{{0,8}}[:=：][ \t]{{0,8}}{_QUOTES}){_TOKEN}"
        ),
    ),
)
"""What a key begins with or follows, in lower case, and the pattern of both."""

_BEGIN = re.compile(r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40})PRIVATE KEY(?P<block> BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s:,.()-]|\\++[nrt/])*+")
"""What stands between the two lines, escapes of line ends among it."""
_LINES = re.compile(r"(?:(?:\s|\\++[nrt])*+(?:[A-Za-z0-9+/=]|\\++/){16,}+)*+")
"""The same without an end: whole lines of base64 alone, since prose may follow."""


def _without_private_keys(text: str) -> str:
    parts: list[str] = []
    done = searched = 0
    may_end = False
    while (begin := _BEGIN.search(text, done)) is not None:
        if begin.end() >= searched:  # a run of such letters is read once, however many keys begin in it
            searched, may_end = _body_end(text, begin.end()), True
        end = _END.search(text, begin.end(), searched) if may_end else None
        if end is None:
            may_end = False
            lines = _LINES.match(text, begin.end())
            after = begin.end() if lines is None else lines.end()
        else:
            after = end.end()
        closing = f"-----END {begin['kind']}PRIVATE KEY{begin['block'] or ''}-----"
        parts += [text[done : begin.end()], SECRET, closing]
        done = after
    return "".join([*parts, text[done:]])


def _body_end(text: str, start: int) -> int:
    found = _BODY.match(text, start)
    return start if found is None else found.end()


def touches(value: Json, mask: Mask) -> bool:
    """Whether masking changes anything of a value."""
    return bool(redacted(value, mask) != value)


def unmasked(text: str) -> str:
    """The mask that hides nothing, where a configuration says so."""
    return text


MASKS: Mapping[str, Mask] = {"personal": mask_personal, "off": unmasked}
"""Those that come with Tiergate, by the name that a configuration gives them."""
