"""What one issuer answers: JSON from where the configuration says, or from where its discovery document does.

No answer is longer than `LARGEST` or later than the issuer's terms allow, no redirect is followed, and an
address that discovery gives is taken on the issuer's own host alone: another one would be one more to trust.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from service.fleet import Backend, BackendTls
from service.reach import client_of
from service.store.access.issuer_terms import IssuerTerms

DISCOVERY = "/.well-known/openid-configuration"
LARGEST = 256 * 1024
"""Bytes of a document; those of big issuers have ten thousand."""


class Unusable(Exception):
    """What came is not what was asked for, or nothing came."""


class Refused(Unusable):
    """The issuer says no: its own words, as far as it has any."""


async def document(terms: IssuerTerms, uri: str) -> object:
    """The JSON at a place. Unusable, httpx.HTTPError."""
    status, text = await _asked(terms, uri, "GET", {}, None)
    if status != 200:
        raise Unusable(f"{uri} answers {status}")
    return _read(uri, text)


async def granted(
    terms: IssuerTerms, uri: str, form: Mapping[str, str], *, headers: Mapping[str, str]
) -> Mapping[str, object]:
    """The JSON object that answers a form. Refused for an error of RFC 6749; Unusable, httpx.HTTPError."""
    sent = {"content-type": "application/x-www-form-urlencoded", **headers}
    status, text = await _asked(terms, uri, "POST", sent, urlencode(form).encode())
    if status not in (200, 400, 401):
        raise Unusable(f"{uri} answers {status}")
    found = _read(uri, text)
    if not isinstance(found, dict):
        raise Unusable(f"what {uri} answers is no JSON object")
    if status != 200:
        said = [found[name] for name in ("error", "error_description") if isinstance(found.get(name), str)]
        raise Refused(": ".join(said) or f"{uri} answers {status}")
    return found


async def discovered(terms: IssuerTerms) -> Mapping[str, object]:
    """Its discovery document (OpenID Connect Discovery 4)."""
    found = await document(terms, terms.issuer.rstrip("/") + DISCOVERY)
    if not isinstance(found, dict) or found.get("issuer") != terms.issuer:
        raise Unusable("its discovery document is not of that issuer, letter for letter")
    return found


def place_of(terms: IssuerTerms, found: Mapping[str, object], name: str, what: str) -> str:
    """The address of that name in a discovery document."""
    uri = found.get(name)
    if not isinstance(uri, str) or _origin(uri) != _origin(terms.issuer):
        raise Unusable(
            f"its discovery document leads to {what} on another host; "
            f"if that host is right, write it as `{name}` beside the issuer in api.oidc"
        )
    return uri


async def _asked(
    terms: IssuerTerms, uri: str, method: str, headers: Mapping[str, str], body: bytes | None
) -> tuple[int, str]:
    parts = urlsplit(uri)
    backend = Backend(
        url=f"{parts.scheme}://{parts.netloc}",
        headers=(("accept", "application/json"), ("accept-encoding", "identity")),
        tls=BackendTls(ca=terms.ca),
    )
    path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    async with (
        client_of(backend, timeout=terms.fetch_seconds) as http,
        http.stream(method, path, headers=dict(headers), content=body) as answer,
    ):
        found = bytearray()
        async for chunk in answer.aiter_bytes():
            found += chunk
            if len(found) > LARGEST:
                raise Unusable(f"{uri} answers more than {LARGEST // 1024} KiB")
        return answer.status_code, found.decode("utf-8", "replace")


def _read(uri: str, text: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        raise Unusable(f"what {uri} answers is no JSON") from None
    return found


def _origin(url: str) -> tuple[str, str] | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.scheme.lower(), parts.netloc.lower()
