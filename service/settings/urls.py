"""The URLs of `tiergate.yaml`: what all of them must be, and those that a secret of ours is sent to."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator


def web_url(given: str, *, expected: str, credentials: str) -> SplitResult:
    """The parts of an http or https URL with a host and without a password.

    ValueError says what was `expected`, or why `credentials` do not belong there.
    """
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        raise ValueError(expected) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(expected)
    if "@" in parts.netloc:
        raise ValueError(credentials)
    if not given.isprintable() or " " in given:
        raise ValueError(expected)
    return parts


def refuse_in_the_clear(parts: SplitResult, why: str) -> None:
    """ValueError for http that leaves this machine."""
    if parts.scheme == "http" and not is_here(parts.hostname or ""):
        raise ValueError(f"{why}: write https://")


def is_here(host: str) -> bool:
    """Whether it is this machine, by a name or an address that nobody else can have."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def called_url(given: str, *, secret: bool = False) -> str:
    """What may be called; a URL that is a secret may have a query, and no message repeats it."""
    expected = "expected https://HOST[:PORT][/PATH]" + ("" if secret else f", got {given!r}")
    own = "credentials do not belong in a URL; they are read from files"
    parts = web_url(given, expected=expected, credentials=own)
    if parts.fragment or (parts.query and not secret):
        raise ValueError(expected)
    refuse_in_the_clear(parts, "a token is sent there")
    if secret:
        if not re.fullmatch(r"[!-~]+", given):
            raise ValueError(expected)
        return given
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


CalledUrl = Annotated[str, AfterValidator(called_url)]
