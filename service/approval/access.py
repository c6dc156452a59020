"""Who may do what, decided on the head of a request alone, without I/O.

A write needs a token with scope `approve` (of labels: `label`), an allowed Host, and no foreign Origin. A
read needs scope `read`, or comes from this machine under a name of loopback. A web page could borrow that
exemption by DNS rebinding, and a reverse proxy could lend it to everybody, so it does not hold for a request
that says it was forwarded, nor for one that asks for us by the name that others know us by.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from service.approval.errors import Problem, echo

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
GATES = "/gates/"
"""What is asked below, by whatever method a tool has, changes no tier; a route that does asks for more."""
OWN_PROOF = ("/gates/flagger/", "/gates/github", "/gates/gitlab/")
"""Tools that can send no token in a header: the routes below look for it in the body, or for a signature."""
LABELLING = "/api/v1/adjudication/"
"""What is written below changes no tier: labels."""
MAX_CREDENTIALS = 1024
"""Characters of what may be a token of ours; none is near."""
MAX_ID_TOKEN = 8192
"""Characters of a JSON Web Token: GitHub's and GitLab's have two thousand, those with many groups more."""
MAX_AUTHORIZATION = 12 * 1024
"""Characters of an Authorization header: the longest token in base64, as a password."""
FORWARDING = frozenset(
    {"forwarded", "x-real-ip", "x-client-ip", "via", "cf-connecting-ip", "true-client-ip", "cdn-loop"}
)
FORWARDED = "x-forwarded-"
"""Headers, and what others begin with, by which a reverse proxy says that somebody else is the caller."""


class Scope(StrEnum):
    """What a token may do; each includes the ones before it."""

    READ = "read"
    LABEL = "label"
    """Sees the captured texts that are queued for people, and labels them."""
    APPROVE = "approve"
    ADMIN = "admin"


READING = Scope.READ
"""What every page asks for; a page may ask for more."""
FORM = "application/x-www-form-urlencoded"

_ORDER = tuple(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: a token's name, or nobody in particular on this machine."""

    name: str
    """Of a JSON Web Token: its issuer and its subject."""
    scope: Scope | None
    models: frozenset[str] | None = None
    """The only ones it may ask about; None = all."""
    by_session: bool = False
    """Whether a page's session let it in: it may send forms."""

    def may(self, needed: Scope) -> bool:
        return self.scope is not None and _ORDER.index(self.scope) >= _ORDER.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What access is decided on: method, peer address, and the headers (lower-case names, in order)."""

    method: str
    peer: str | None
    headers: Sequence[tuple[str, str]]

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(text for key, text in self.headers if key == name)

    @property
    def is_read(self) -> bool:
        return self.method in SAFE_METHODS

    @property
    def is_page(self) -> bool:
        """Whether a browser asks for a page to show."""
        return self.is_read and any("text/html" in kinds for kinds in self.all("accept"))

    @property
    def is_form(self) -> bool:
        """Whether a browser sends a form."""
        return not self.is_read and any(kind.startswith(FORM) for kind in self.all("content-type"))


def needed_scope(head: Head, path: str = "") -> Scope:
    """What method and path alone ask for; a router may ask for more."""
    if head.is_read or path.startswith(GATES):
        return Scope.READ
    return Scope.LABEL if path.startswith(LABELLING) else Scope.APPROVE


def widest(scopes: Collection[str]) -> Scope | None:
    """The most that a token's scopes amount to; None for none that is known."""
    known = [scope for scope in _ORDER if scope.value in scopes]
    return known[-1] if known else None


def check_host(head: Head, allowed: Collection[str]) -> None:
    """Raise unless exactly one Host header names an allowed host; the port is free."""
    hosts = head.all("host")
    if len(hosts) != 1:
        raise Problem(400, "bad_host", f"the request has {len(hosts)} Host headers instead of one")
    if _host_name(hosts[0]) not in {name.lower() for name in allowed}:
        raise Problem(
            403,
            "host_not_allowed",
            f"this API does not answer to the name {echo(hosts[0])}",
            hint="add the name to api.allowed_hosts in tiergate.yaml if it is yours",
        )


def check_origin(head: Head, allowed: Collection[str], public_url: str | None = None) -> None:
    """Raise where a page of another origin made a browser send this; programs send no Origin at all.

    Our own is under the Host that was asked for. Under that of a `public_url` by https it is by https too:
    whoever can answer in our name without TLS must not send forms to us.
    """
    by_tls = _authority(public_url or "") if (public_url or "").startswith("https:") else None
    for origin in head.all("origin"):
        place = _authority(origin)
        own = place in {host.lower() for host in head.all("host")}
        if place == by_tls and not origin.startswith("https:"):
            own = False
        if not own and origin not in allowed:
            raise Problem(
                403,
                "origin_not_allowed",
                f"pages of {echo(origin)} may not write to this API",
                hint="add the origin to api.allowed_origins in tiergate.yaml if it is yours",
            )


def credentials(head: Head, path: str = "") -> str | None:
    """The secret the caller shows, None when it shows none. 401 for anything that cannot be a token.

    `Basic` with the token as password works for reads only: it lets a browser open pages, and
    a browser would also send it along with a write that another page thought of. At the gates it is how a
    tool that can set no header sends what stands in its URL (`https://any:TOKEN@host/gates/...`).
    """
    shown = head.all("authorization")
    if not shown:
        return None
    if len(shown) > 1:
        raise unauthorized("the request has more than one Authorization header")
    if len(shown[0]) > MAX_AUTHORIZATION or not shown[0].isascii():
        raise unauthorized("the Authorization header cannot be a token")
    kind, _, secret = shown[0].partition(" ")
    if kind.lower() == "basic" and (head.is_read or path.startswith(GATES)):
        secret = _password(secret)
    elif kind.lower() != "bearer":
        raise unauthorized("the Authorization header is not of the form `Bearer TOKEN`")
    secret = secret.strip()
    if not secret or not secret.isprintable() or " " in secret:
        raise unauthorized("the Authorization header has no token")
    if len(secret) > (MAX_ID_TOKEN if is_id_token(secret) else MAX_CREDENTIALS):
        raise unauthorized("the Authorization header is longer than any token")
    return secret


def is_id_token(secret: str) -> bool:
    """Whether it has the form of a JSON Web Token, signed or not; tokens of ours have no dots."""
    return _ID_TOKEN.fullmatch(secret) is not None


def asks_loopback(head: Head) -> bool:
    """Whether every Host names loopback: that is what callers on this machine ask for, and nobody else."""
    names = [_host_name(host) for host in head.all("host")]
    return bool(names) and all(name == "localhost" or _is_loopback(name or "") for name in names)


def is_local(head: Head) -> bool:
    """Whether the caller is on this machine and speaks for itself."""
    if head.peer is None or any(name in FORWARDING or name.startswith(FORWARDED) for name, _ in head.headers):
        return False
    return _is_loopback(head.peer)


def unauthorized(message: str) -> Problem:
    """401, and how to do better."""
    return Problem(
        401,
        "unauthorized",
        message,
        hint="send `Authorization: Bearer TOKEN`; `tiergate token new` makes one",
        headers={"WWW-Authenticate": 'Bearer realm="tiergate"'},
    )


def require(caller: Caller, needed: Scope, purpose: str) -> None:
    """403 unless the caller's token reaches that far; 401 for a caller without one."""
    if caller.may(needed):
        return
    if caller.scope is None:
        raise unauthorized(f"{purpose} needs a token with scope `{needed}`")
    raise Problem(
        403,
        "insufficient_scope",
        f"{purpose} needs scope `{needed}`; the token {echo(caller.name)} has `{caller.scope}`",
        hint=f"`tiergate token new NAME --scope {needed}` makes one that may",
        headers={
            "WWW-Authenticate": f'Bearer realm="tiergate", error="insufficient_scope", scope="{needed}"'
        },
    )


_ID_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^:\[\]@\s]+?)\.?)(?::\d*)?")


def _host_name(host: str) -> str | None:
    """A Host header without port, brackets, case and trailing dot; None for what is no host."""
    found = _HOST.fullmatch(host.strip().lower())
    return None if found is None else found["address"] or found["name"]


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def _authority(origin: str) -> str | None:
    """`host:port` of an origin; None for `null` and for what is no origin."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _password(encoded: str) -> str:
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise unauthorized("the Basic credentials are not base64 of `name:token`") from error
    return decoded.partition(":")[2]
