"""Logging in at an issuer: its authorization code, by a browser, becomes an ID token, by us.

OpenID Connect Core 3.1 with PKCE (RFC 7636, S256), `state` and `nonce`. The browser takes an errand along
that nobody else can use: what comes back must be of this errand (`state`), the code is worth nothing without
its `verifier`, and the ID token names its `nonce`. The configuration says where browsers come back to.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from threading import BoundedSemaphore
from typing import TypeVar
from urllib.parse import quote_plus, urlencode

import httpx

from service.approval.access import Caller
from service.approval.errors import Problem, echo
from service.approval.id_tokens import IdTokens
from service.approval.issuer_documents import Refused, Unusable, discovered, granted, place_of
from service.approval.issuer_keys import FRESH_SECONDS, LOOK_SECONDS, MOST_WAITING
from service.store.access.issuer_terms import IssuerTerms, LoginTerms

ERRAND_SECONDS = 600.0
"""How long somebody may take to log in there."""
MOST_CODE = 4096
"""Characters of an authorization code."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What a browser takes along and brings back; kept where no page can read it."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    began: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    authorization: str
    token: str
    basic: bool
    """Whether our secret goes into the Authorization header; else into the form."""
    at: float
    """When they were found, in unix seconds."""


class CodeLogins:
    """Of one process; its callers are threads, which may wait here for an issuer."""

    def __init__(self, issuers: Sequence[IssuerTerms], now: Callable[[], float]) -> None:
        self._now = now
        self._terms = {terms.issuer: terms for terms in issuers if terms.login is not None}
        self._id_tokens = IdTokens(issuers, now)
        self._waiting = BoundedSemaphore(MOST_WAITING)
        self._known: dict[str, _Places] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        """By issuer: when it could not be asked last, in unix seconds, and why."""

    @property
    def offered(self) -> Sequence[tuple[str, str]]:
        """Issuer and what people call it."""
        return [(issuer, _login(terms).label) for issuer, terms in self._terms.items()]

    def basis(self, issuer: str) -> str:
        """What the issuer is taken for; another one as soon as the configuration says anything else of it."""
        return self._of(issuer).basis

    def begin(self, issuer: str, back: str) -> tuple[Errand, str]:
        """An errand, and where the browser goes with it; `back` is where it comes back to.

        404 for an issuer where nobody logs in, 503 for one that cannot be asked.
        """
        terms = self._of(issuer)
        places = self._places(terms)
        errand = Errand(
            issuer=issuer,
            state=secrets.token_urlsafe(24),
            nonce=secrets.token_urlsafe(24),
            verifier=secrets.token_urlsafe(48),
            began=self._now(),
        )
        login = _login(terms)
        asked = urlencode(
            {
                "response_type": "code",
                "client_id": login.client_id,
                "redirect_uri": back,
                "scope": " ".join(("openid", *login.scopes)),
                "state": errand.state,
                "nonce": errand.nonce,
                "code_challenge": _challenge(errand.verifier),
                "code_challenge_method": "S256",
            }
        )
        return errand, f"{places.authorization}?{asked}"

    def finish(self, errand: Errand, brought: Mapping[str, str], back: str) -> Caller:
        """Who logged in, by what the browser brought back from its errand.

        400 for what is not of this errand, 403 where the issuer or our rules say no, 503 in an outage.
        """
        terms = self._of(errand.issuer)
        _check_errand(errand, brought, self._now())
        code = brought.get("code", "")
        if not code or len(code) > MOST_CODE:
            raise _failed(f"{terms.issuer} sent no code")
        found = self._exchanged(terms, code, errand.verifier, back)
        token = found.get("id_token")
        if not isinstance(token, str):
            raise _failed(f"{terms.issuer} gave no ID token")
        return self._id_tokens.logged_in(token, terms.issuer, nonce=errand.nonce)

    def _of(self, issuer: str) -> IssuerTerms:
        try:
            return self._terms[issuer]
        except KeyError:
            raise Problem(
                404, "not_found", f"nobody logs in at {echo(issuer)} here", hint="take one that /login offers"
            ) from None

    def _places(self, terms: IssuerTerms) -> _Places:
        login, known, now = _login(terms), self._known.get(terms.issuer), self._now()
        if known is not None and 0 <= now - known.at < FRESH_SECONDS:
            return known
        failed_at, why = self._failed.get(terms.issuer, (-LOOK_SECONDS, ""))
        if why and 0 <= now - failed_at < LOOK_SECONDS:
            raise _down(terms, why)
        written = login.authorization_endpoint is not None and login.token_endpoint is not None
        found = {} if written else self._ask(terms, discovered(terms))
        try:
            kept = _Places(
                authorization=login.authorization_endpoint
                or place_of(terms, found, "authorization_endpoint", "its log-in"),
                token=login.token_endpoint or place_of(terms, found, "token_endpoint", "its tokens"),
                basic=_takes_basic(found),
                at=now,
            )
        except Unusable as error:
            raise self._noted(terms, str(error)) from None
        self._known[terms.issuer] = kept
        return kept

    def _exchanged(self, terms: IssuerTerms, code: str, verifier: str, back: str) -> Mapping[str, object]:
        login, places = _login(terms), self._places(terms)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": login.client_id,
            "code_verifier": verifier,
        }
        headers: dict[str, str] = {}
        if login.client_secret is not None and places.basic:
            pair = f"{quote_plus(login.client_id)}:{quote_plus(login.client_secret)}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        elif login.client_secret is not None:
            form["client_secret"] = login.client_secret
        return self._ask(terms, granted(terms, places.token, form, headers=headers))

    def _ask(self, terms: IssuerTerms, question: Coroutine[object, object, _T]) -> _T:
        """Within the time that the issuer has; few wait at once."""
        limit = terms.fetch_seconds

        async def within() -> _T:
            async with asyncio.timeout(limit):
                return await question

        try:
            with self._turn(terms):
                return asyncio.run(within())
        except Refused as error:
            raise _failed(f"{terms.issuer} says: {echo(str(error))}") from None
        except Unusable as error:
            raise self._noted(terms, str(error)) from None
        except (TimeoutError, httpx.TimeoutException):
            raise self._noted(terms, f"no answer within {limit:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._noted(terms, str(error) or type(error).__name__) from error
        finally:
            question.close()

    @contextmanager
    def _turn(self, terms: IssuerTerms) -> Iterator[None]:
        if not self._waiting.acquire(blocking=False):
            raise _down(terms, "enough log-ins wait for it")
        try:
            yield
        finally:
            self._waiting.release()

    def _noted(self, terms: IssuerTerms, why: str) -> Problem:
        self._failed[terms.issuer] = (self._now(), why)
        return _down(terms, why)


def _check_errand(errand: Errand, brought: Mapping[str, str], now: float) -> None:
    """Of this browser's own errand, from the issuer that it went to (RFC 9207), and in time."""
    if not hmac.compare_digest(brought.get("state", "").encode(), errand.state.encode()):
        raise Problem(
            400,
            "login_not_begun",
            "what came back is of another log-in than this browser began last",
            hint="log in again, in one tab",
        )
    if not 0 <= now - errand.began <= ERRAND_SECONDS:
        raise Problem(
            400,
            "login_not_begun",
            f"the log-in took longer than {ERRAND_SECONDS / 60:.0f} minutes",
            hint="log in again",
        )
    if brought.get("iss", errand.issuer) != errand.issuer:
        raise _failed("what came back is of another issuer than was asked")
    if (error := brought.get("error")) is not None:
        said = ": ".join(part for part in (error, brought.get("error_description", "")) if part)
        raise _failed(f"{errand.issuer} says: {echo(said)}")


def _login(terms: IssuerTerms) -> LoginTerms:
    assert terms.login is not None, "only these are kept"
    return terms.login


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _takes_basic(found: Mapping[str, object]) -> bool:
    """The default of OpenID Connect, unless the issuer lists others alone."""
    listed = found.get("token_endpoint_auth_methods_supported")
    return not isinstance(listed, list) or "client_secret_basic" in listed


def _failed(why: str) -> Problem:
    return Problem(
        403,
        "login_refused",
        f"the log-in failed: {why}",
        hint="log in again; if it stays so, whoever runs Tiergate compares client and rules in api.oidc",
    )


def _down(terms: IssuerTerms, why: str) -> Problem:
    return Problem(
        503,
        "issuer_down",
        f"nobody can log in at {terms.issuer}: {why}",
        hint="try again later, or log in with a token",
        headers={"Retry-After": f"{LOOK_SECONDS:.0f}"},
    )
