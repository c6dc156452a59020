"""The `format`s of JSON Schema, each by the grammar of its RFC; linear in the length of the text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna

from evaluators.patterns import Inexpressible, NotAPattern, matcher

# RFC 3339, 5.6 and appendix A
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)
_CLOCK = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DURATION = re.compile(
    rf"P(?:(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:{_CLOCK})?|{_CLOCK}|\d+W)", re.ASCII
)


def is_date(text: str) -> bool:
    """RFC 3339's full-date, of a day that there is."""
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 29 if month == 2 and leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    return 1 <= day <= days


def is_time(text: str) -> bool:
    """A second 60 is right only where it is 23:59:60 in UTC."""
    found = _TIME.fullmatch(text)
    if found is None:
        return False
    hour, minute, second = (int(found[i]) for i in (1, 2, 3))
    offset_hour, offset_minute = int(found[5] or 0), int(found[6] or 0)
    if hour > 23 or minute > 59 or second > 60 or offset_hour > 23 or offset_minute > 59:
        return False
    if second < 60:
        return True
    offset = (offset_hour * 60 + offset_minute) * (-1 if found[4] == "-" else 1)
    return (hour * 60 + minute - offset) % (24 * 60) == 24 * 60 - 1


def is_date_time(text: str) -> bool:
    """RFC 3339's date-time."""
    return text[10:11] in ("T", "t") and is_date(text[:10]) and is_time(text[11:])


def is_duration(text: str) -> bool:
    """RFC 3339's duration (appendix A)."""
    return _DURATION.fullmatch(text) is not None


# RFC 5321, 4.1.2; RFC 6531 adds what is not ASCII
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_LOCAL = re.compile(rf"{_ATOM}+(?:\.{_ATOM}+)*|\"(?:[ !#-\[\]-~]|\\[ -~])*\"")
_IDN_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]"
_IDN_LOCAL = re.compile(rf"{_IDN_ATOM}+(?:\.{_IDN_ATOM}+)*|\"(?:[ !#-\[\]-~\u0080-\U0010ffff]|\\[ -~])*\"")


def is_email(text: str) -> bool:
    """RFC 5321's Mailbox."""
    local, _, domain = text.rpartition("@")
    return _LOCAL.fullmatch(local) is not None and (_is_address_literal(domain) or is_hostname(domain))


def is_idn_email(text: str) -> bool:
    """RFC 6531's Mailbox."""
    local, _, domain = text.rpartition("@")
    return _IDN_LOCAL.fullmatch(local) is not None and (
        _is_address_literal(domain) or is_idn_hostname(unicodedata.normalize("NFC", domain))
    )


def _is_address_literal(domain: str) -> bool:
    if not (domain.startswith("[") and domain.endswith("]")):
        return False
    literal = domain[1:-1]
    return is_ipv6(literal[5:]) if literal[:5].lower() == "ipv6:" else is_ipv4(literal)


# RFC 1123, 2.1; RFC 5890 for labels that begin with xn--
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_DOTS = re.compile("[.。．｡]")


def is_hostname(text: str) -> bool:
    """RFC 1123, with labels of RFC 5890."""
    return 0 < len(text) <= 253 and all(map(_is_label, text.split(".")))


def _is_label(label: str) -> bool:
    if _LABEL.fullmatch(label) is None:
        return False
    if label[2:4] != "--":
        return True
    if label[:2].lower() != "xn":
        return False
    try:
        idna.ulabel(label)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def is_idn_hostname(text: str) -> bool:
    """RFC 5890's internationalised name, with the rule for right-to-left labels."""
    labels = _DOTS.split(text)
    if not all(labels):
        return False
    try:
        encoded = idna.encode(text)
        unicode_labels = [idna.ulabel(label) for label in labels]
        if any(_is_right_to_left(label) for label in unicode_labels):
            # one right-to-left label makes the bidi rule hold for all (RFC 5893, 1.4)
            for label in unicode_labels:
                idna.check_bidi(label, check_ltr=True)
    except (idna.IDNAError, UnicodeError):
        return False
    return len(encoded) <= 253


def _is_right_to_left(label: str) -> bool:
    return any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in label)


def is_ipv4(text: str) -> bool:
    """RFC 2673, 3.2: four decimal numbers."""
    try:
        return text.isascii() and bool(IPv4Address(text) is not None)
    except AddressValueError:
        return False


def is_ipv6(text: str) -> bool:
    """RFC 4291, 2.2, without a zone."""
    try:
        return text.isascii() and "%" not in text and bool(IPv6Address(text) is not None)
    except AddressValueError:
        return False


# RFC 3986, appendix A; RFC 3987, 2.2
_UCS = (
    "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd"
    "\U00040000-\U0004fffd\U00050000-\U0005fffd\U00060000-\U0006fffd\U00070000-\U0007fffd\U00080000-\U0008fffd"
    "\U00090000-\U0009fffd\U000a0000-\U000afffd\U000b0000-\U000bfffd\U000c0000-\U000cfffd\U000d0000-\U000dfffd"
    "\U000e1000-\U000efffd"
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_SPLIT = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_AUTHORITY = re.compile(r"(?:(.*)@)?(\[[^\[\]]*\]|[^:@\[\]]*)(?::([0-9]*))?", re.DOTALL)
_IPV_FUTURE = re.compile(r"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+")


class _Characters:
    """Which characters each part may hold; the rest must be percent-encoded."""

    def __init__(self, more: str, more_in_query: str) -> None:
        plain = rf"A-Za-z0-9._~!$&'()*+,;=\-{more}"
        self.name = re.compile(rf"(?:[{plain}]|%[0-9A-Fa-f]{{2}})*")
        self.user = re.compile(rf"(?:[{plain}:]|%[0-9A-Fa-f]{{2}})*")
        self.path = re.compile(rf"(?:[{plain}:@/]|%[0-9A-Fa-f]{{2}})*")
        self.query = re.compile(rf"(?:[{plain}:@/?{more_in_query}]|%[0-9A-Fa-f]{{2}})*")
        self.fragment = re.compile(rf"(?:[{plain}:@/?]|%[0-9A-Fa-f]{{2}})*")


_OF_URI = _Characters("", "")
_OF_IRI = _Characters(_UCS, _PRIVATE)


def _is_reference(text: str, allowed: _Characters, *, absolute: bool) -> bool:
    found = _SPLIT.fullmatch(text)
    assert found is not None  # every text has these parts, if empty ones
    scheme, authority, path, query, fragment = found.groups()
    if scheme is None and (absolute or ":" in path.partition("/")[0]):
        return False
    if scheme is not None and _SCHEME.fullmatch(scheme) is None:
        return False
    if authority is not None and not _is_authority(authority, allowed):
        return False
    return (
        allowed.path.fullmatch(path) is not None
        and allowed.query.fullmatch(query or "") is not None
        and allowed.fragment.fullmatch(fragment or "") is not None
    )


def _is_authority(authority: str, allowed: _Characters) -> bool:
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        return False
    user, host, _ = found.groups()
    if allowed.user.fullmatch(user or "") is None:
        return False
    if host.startswith("["):
        return is_ipv6(host[1:-1]) or _IPV_FUTURE.fullmatch(host[1:-1]) is not None
    return allowed.name.fullmatch(host) is not None


# RFC 6570, 2
_VARIABLE = (
    r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
)
_TEMPLATE = re.compile(
    rf"(?:[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{_UCS}{_PRIVATE}]|%[0-9A-Fa-f]{{2}}|"
    rf"\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)

# RFC 6901, 3, and its relative form (draft-handrews-relative-json-pointer-01)
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*", re.DOTALL)
_RELATIVE = re.compile(r"(?:0|[1-9][0-9]*)(?:#|((?:/(?:[^~/]|~[01])*)*))", re.DOTALL)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def is_regex(text: str) -> bool:
    """Whether a text is an ECMA-262 pattern, one with look-around included."""
    try:
        return matcher(text) is not None
    except NotAPattern:
        return False
    except Inexpressible:
        return True


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": is_date,
    "time": is_time,
    "date-time": is_date_time,
    "duration": is_duration,
    "email": is_email,
    "idn-email": is_idn_email,
    "hostname": is_hostname,
    "idn-hostname": is_idn_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "uri": lambda text: _is_reference(text, _OF_URI, absolute=True),
    "uri-reference": lambda text: _is_reference(text, _OF_URI, absolute=False),
    "iri": lambda text: _is_reference(text, _OF_IRI, absolute=True),
    "iri-reference": lambda text: _is_reference(text, _OF_IRI, absolute=False),
    "uri-template": lambda text: _TEMPLATE.fullmatch(text) is not None,
    "json-pointer": lambda text: _POINTER.fullmatch(text) is not None,
    "relative-json-pointer": lambda text: _RELATIVE.fullmatch(text) is not None,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "regex": is_regex,
}
"""By name; formats that are not here are annotations and refuse nothing."""
