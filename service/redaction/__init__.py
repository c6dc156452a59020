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

from service.redaction.keys import FRESH, SECRET, without_keys

Json = Any
"""A parsed JSON value."""
Mask = Callable[[str], str]
"""Takes a text and gives it back without what must not be kept."""

E_MAIL = "masked@example.com"

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
        "account_key",
        "accountkey",
        "cookie",
        "set-cookie",
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
    """The default mask. Linear in the length of the text.

    Digits of other scripts (full-width ones, as Chinese input methods write them, Arabic, Persian, Indic,
    Thai) are read as ASCII's, and written so if masked.
    """
    if _WIDE.search(text):
        narrow = text.translate(_NARROW)
        masked = _mask_narrow(narrow)
        return text if masked == narrow else masked
    return _mask_narrow(text)


# Zeros of Arabic, Persian, Devanagari, Bengali, Thai and of full width; the other nine follow them.
_ZEROS = "\u0660\u06f0\u0966\u09e6\u0e50０"
_WIDE = re.compile("[" + "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in _ZEROS) + "＠]")
_NARROW: dict[int, int | str] = {
    **str.maketrans("＠＋－．", "@+-."),
    **{ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)},
}


def _mask_narrow(text: str) -> str:
    text = without_keys(text)
    if "@" in text or "u0040" in text:
        text = _EMAIL.sub(_email, text)
    if "%40" in text:
        text = _QUOTED_EMAIL.sub(_email, text)
    if "@" in text and not text.isascii():
        text = _WORLDS_EMAIL.sub(_worlds_email, text)
    if _MANY_DIGITS.search(text):
        text = _DIGITS.sub(_cards, text)
        text = _SPACED_CARD.sub(_spaced_card, text)
        for pattern in _PHONES:
            text = pattern.sub(_zeroed, text)
    return text


_DOMAIN = r"(?P<domain>[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++)"
_EMAIL = re.compile(FRESH % "A-Za-z0-9._%+-" + r"[A-Za-z0-9._%+-]++(?P<at>@|\\{1,8}u0040)" + _DOMAIN)
_QUOTED_EMAIL = re.compile(FRESH % "A-Za-z0-9._+-" + r"[A-Za-z0-9._+-]++(?P<at>%40)" + _DOMAIN)
"""As in the query of a URL."""
_HAN = "\u2e80-\u9fff\uf900-\ufaff"
# Chinese prose goes on right behind an address, so that its last label must be one that is registered.
_WORLDS_EMAIL = re.compile(
    FRESH % r"\w.%+-" + r"(?P<name>[\w.%+-]++)@(?P<domain>(?:[\w-]++\.)+"
    rf"(?:中国|中國|公司|网络|網絡|网址|在线|中文网|香港|台灣|台湾|[^\W\d_{_HAN}]{{2,}}))"
)
_TOP_LEVEL = re.compile(r"\.[A-Za-z](?:[A-Za-z]++|[Nn]--[A-Za-z0-9-]++)\Z")


def _email(found: re.Match[str]) -> str:
    """`react@18.2.0` is no address: the last label of one has no digits."""
    return E_MAIL.replace("@", found["at"]) if _TOP_LEVEL.search(found["domain"]) else found[0]


def _worlds_email(found: re.Match[str]) -> str:
    """What has a name and a domain of ASCII was read before, and masked if it is an address."""
    if found["domain"].isascii() and found["name"][-1].isascii():
        return found[0]
    return E_MAIL


_MANY_DIGITS = re.compile(r"[0-9](?:[^0-9]{0,2}[0-9]){6}")
"""As few as a phone number has."""
_ESCAPED = r"\\u[0-9a-fA-F]{4}"
"""A letter in JSON; its digits belong to no number, and the next one may be a number's first."""
_DIGITS = re.compile(rf"{_ESCAPED}|(?:(?<={_ESCAPED})|(?<![0-9]))[0-9](?:[ -]?[0-9])*+")
_GROUP = re.compile(r"[0-9]++")
_CARD_LENGTHS = range(13, 20)
_MOST_GROUPS = 8
"""Groups that a card number is written in; 4 of 4, or 4-6-5."""


def _cards(found: re.Match[str]) -> str:
    """A run of digits, in which groups that make up a card number are masked."""
    run = found[0]
    if len(run) < _CARD_LENGTHS.start:  # an escape among them
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


# Fours with the same one or two signs between; by one space or hyphen they are a run of `_DIGITS`.
_SPACED_CARD = re.compile(
    r"(?<![0-9])[0-9]{4}(?P<between>[ ._/\u00a0\u2009\u202f\u2010-\u2015-]{1,2})"
    r"[0-9]{4}(?P=between)[0-9]{4}(?P=between)[0-9]{1,7}(?![0-9])"
)


def _spaced_card(found: re.Match[str]) -> str:
    digits = "".join(filter(str.isdigit, found[0]))
    return _keeping(found[0], 1) if _is_card(digits) else found[0]


def _is_card(digits: str) -> bool:
    """ISO/IEC 7812: a first digit that banks issue, and Luhn's sum."""
    if digits[0] not in "23456" or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


_NOT_WITHIN = rf"(?:(?<={_ESCAPED})|(?<![0-9])(?<![0-9]\.)(?<!\\u))"
_PHONES = (
    # Mainland China, with or without its code, in threes and fours or without.
    re.compile(
        _NOT_WITHIN + r"(?:(?:\+|00)?86[ -]?)?1[3-9][0-9]"
        r"(?:(?:[ -]?[0-9]{4}){2}|(?:\.[0-9]{4}){2})(?![0-9])"
    ),
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


def touches(value: Json, mask: Mask) -> bool:
    """Whether masking changes anything of a value."""
    return bool(redacted(value, mask) != value)


def unmasked(text: str) -> str:
    """The mask that hides nothing, where a configuration says so."""
    return text


MASKS: Mapping[str, Mask] = {"personal": mask_personal, "off": unmasked}
"""Those that come with Tiergate, by the name that a configuration gives them."""
