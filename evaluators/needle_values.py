"""Which values are worth asking for: unmistakable in any form, and not to be guessed from their name."""

from __future__ import annotations

import re

from evaluators.values import normal

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = (
    r"\d{4}-\d{2}-\d{2}|\d{4}/\d{1,2}/\d{1,2}|\d{4} ?年 ?\d{1,2} ?月 ?\d{1,2} ?[日号]|"
    r"\d{1,2}[/.]\d{1,2}[/.]\d{4}|"
    rf"(?:{_MONTH}) \d{{1,2}}, \d{{4}}|\d{{1,2}}\.? (?:{_MONTH}) \d{{4}}"
)
_EMAIL = r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,3}\.[A-Za-z]{2,24}"
_NUMBER = r"\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d{3,}(?:\.\d+)?|\d+\.\d{2,}"
_CODE = r"(?=[A-Za-z0-9_/.-]*\d)[A-Za-z0-9]+(?:[-_/.]?[A-Za-z0-9]+)*"
VALUE = (
    r"[\"'`“*]{0,3}(?:[$€£¥#]|US\$|USD |EUR |CNY |RMB )?"
    rf"(?P<value>{_DATE}|{_EMAIL}|{_CODE}(?![\d,])|{_NUMBER})"
)
"""Pattern of a value, its quotes and its currency."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_DAY_AND_MONTH = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})")
_DIGITS = re.compile(r"\d+")
_NAMES = re.compile(r"[a-z0-9]{3,}")
_RUNS = ("01234567890123456789", "98765432109876543210")
_OF_MANY_MAILS = _words(
    """admin billing careers contact desk hello help helpdesk info jobs mail office orders press sales service
    support team com net org edu gov example www"""
)
_DEFAULTS = _words("404 443 500 3000 3306 5000 5432 6379 8000 8080 8443 9090 27017 127.0.0.1 0.0.0.0")


def is_value(value: str) -> bool:
    """Whether a value is long enough not to be guessed, and means one thing only."""
    if len(value) > 80:
        return False
    compared = normal(value)
    if _DAY_AND_MONTH.fullmatch(compared):  # still not ISO: nobody knows which is the month
        return False
    digits = "".join(_DIGITS.findall(compared))
    if len(digits) < 3 and "@" not in value and not (len(digits) == 2 and len(value) >= 5):
        return False
    return "@" in value or not _comes_to_mind(compared, digits)


def _comes_to_mind(compared: str, digits: str) -> bool:
    """Whether people choose it so often that a guess may hit: years, round numbers, defaults, 1234, 7777."""
    if compared in _DEFAULTS or len(set(digits)) == 1:
        return True
    if "." not in compared and any(digits in run for run in _RUNS):
        return True
    if not compared.isdigit():
        return False
    number = int(compared)
    is_round = len(compared.rstrip("0")) <= 1
    return is_round or 1900 <= number <= 2035 or (number & (number - 1) == 0)


def gives_away(key: str, value: str) -> bool:
    """Whether who knows the key could make the value up; both in `normal` form.

    A number of the value that stands in its key does, as does an address whose words are all in it.
    """
    if value in key:
        return True
    named = {digits.lstrip("0") for digits in _DIGITS.findall(key)}
    if named & {digits.lstrip("0") for digits in _DIGITS.findall(value)}:
        return True
    return "@" in value and not set(_NAMES.findall(value)) - set(_NAMES.findall(key)) - _OF_MANY_MAILS
