"""Callers who show a JSON Web Token of an issuer that the configuration names: people and workloads.

What is checked, as OpenID Connect Core 3.1.3.7 and RFC 8725 want it: issuer, key, algorithm and signature;
then audience, times and subject; then what its claims are worth here. A doubt refuses.
"""

from __future__ import annotations

import binascii
import hmac
import json
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from jwt import PyJWS, PyJWTError

from service.approval.access import Caller, Scope, unauthorized
from service.approval.errors import Problem, echo
from service.approval.issuer_keys import LOOK_SECONDS, IssuerDown, IssuerKeys
from service.approval.key_sets import ALGORITHMS, MOST_ID
from service.store.access.issuer_terms import IssuerTerms

LEEWAY_SECONDS = 60.0
"""By which the issuer's clock may differ from ours."""
MOST_SUBJECT = 1000
"""Characters; it is written into the decision log."""
LATEST = 1e12
"""Unix seconds that no clock will show: infinity and numbers that are none are refused."""
TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""What a token may say that it is; a logout token, signed by the same issuer, says something else."""


class IdTokens:
    """The door for tokens that were signed elsewhere."""

    def __init__(self, issuers: Sequence[IssuerTerms], now: Callable[[], float]) -> None:
        self._now = now
        self._issuers = {terms.issuer: (terms, IssuerKeys(terms, now)) for terms in issuers}
        self._signatures = PyJWS(algorithms=list(ALGORITHMS))

    def __bool__(self) -> bool:
        return bool(self._issuers)

    def caller_of(self, token: str) -> Caller:
        """Whose token it is; 401 for a wrong one, 403 for one that is worth nothing here, 503 in an outage.

        May fetch the issuer's keys.
        """
        terms, claims = self._signed(token)
        _check_audience(claims, terms.audience)
        return self._worth(terms, claims)

    def logged_in(self, token: str, issuer: str, *, nonce: str) -> Caller:
        """Who logged in at that issuer, by the ID token that it gave for a log-in of ours; raises as above.

        The nonce binds it to the log-in, the audience to our client there (OpenID Connect Core 3.1.3.7).
        """
        terms, claims = self._signed(token)
        if terms.issuer != issuer or terms.login is None:
            _refuse("it is of another issuer than was asked")
        client = terms.login.client_id
        _check_audience(claims, client)
        others = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if others else client) != client:
            _refuse("it was made for another client (`azp`)")
        told = claims.get("nonce")
        if not isinstance(told, str) or not hmac.compare_digest(told.encode(), nonce.encode()):
            _refuse("it is of another log-in (`nonce`)")
        return self._worth(terms, claims)

    def _signed(self, token: str) -> tuple[IssuerTerms, Mapping[str, Any]]:
        """The issuer, and what its signature is over."""
        head, claims = (_part(part) for part in token.split(".")[:2])
        issuer = claims.get("iss")
        known = self._issuers.get(issuer) if isinstance(issuer, str) else None
        if known is None:
            _refuse("its issuer is none of those in api.oidc")
        terms, keys = known
        self._check_signature(token, head, keys, terms)
        return terms, claims

    def _worth(self, terms: IssuerTerms, claims: Mapping[str, Any]) -> Caller:
        """Of claims that are signed and meant for us."""
        self._check_times(claims)
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= MOST_SUBJECT or not subject.isprintable():
            _refuse("it names nobody (`sub`)")
        name = f"{terms.issuer} {subject}"
        for rule in terms.rules:
            if rule.fits(claims):
                return Caller(name=name, scope=Scope(rule.scope), models=rule.models)
        raise Problem(
            403,
            "insufficient_scope",
            f"the token of {echo(subject)} is right, but its claims are worth nothing here",
            hint="a rule under `scopes` of its issuer in api.oidc gives a claim a scope",
        )

    def _check_signature(
        self, token: str, head: Mapping[str, Any], keys: IssuerKeys, terms: IssuerTerms
    ) -> None:
        """`jku`, `x5u`, `jwk` and `x5c` are not looked at: they would let a token bring its own key."""
        algorithm, kid, kind = head.get("alg"), head.get("kid"), head.get("typ", "JWT")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            _refuse(f"it is not signed with one of {', '.join(ALGORITHMS)}")
        if not isinstance(kind, str) or kind.lower() not in TYPES:
            _refuse("it is of another type (`typ`) than tokens of callers are")
        if "crit" in head or "b64" in head:
            _refuse("it asks for extensions (`crit`, `b64`) that are not known here")
        if not isinstance(kid, str) or not 0 < len(kid) <= MOST_ID:
            _refuse("it does not say which key signed it (`kid`)")
        try:
            key = keys.find((kid, algorithm))
        except IssuerDown as error:
            raise Problem(
                503,
                "issuer_down",
                f"whether the token is right cannot be told: {terms.issuer}: {error}",
                hint="try again later; tokens that `tiergate token new` made need no issuer",
                headers={"Retry-After": f"{LOOK_SECONDS:.0f}"},
            ) from None
        if key is None:
            _refuse(
                f"{terms.issuer} has no such key for {algorithm}",
                hint=f"a key of the last {LOOK_SECONDS:.0f} seconds may not be known yet: try again",
            )
        try:
            self._signatures.decode(token, key, algorithms=[algorithm])
        except (PyJWTError, ValueError, TypeError):
            _refuse("its signature is not that of its issuer")

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._now()
        if _time(claims, "exp") <= now - LEEWAY_SECONDS:
            _refuse("it has expired", hint="ask its issuer for a new one right before it is needed")
        begins = [_time(claims, "iat"), *([_time(claims, "nbf")] if "nbf" in claims else [])]
        if max(begins) > now + LEEWAY_SECONDS:
            _refuse("it is not good yet", hint="compare the clocks of its issuer and of this API")


def _check_audience(claims: Mapping[str, Any], wanted: str) -> None:
    audience = claims.get("aud")
    listed = audience if isinstance(audience, list) else [audience]
    if wanted not in listed:
        _refuse(
            f"it is for {echo(str(audience))}, not for {echo(wanted)}",
            hint="ask its issuer for one with the audience that api.oidc names",
        )


def _part(encoded: str) -> dict[str, Any]:
    """Header or claims; 401 for what is no JSON object."""
    try:
        found = json.loads(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        _refuse("it is no JSON Web Token")
    return found


def _time(claims: Mapping[str, Any], name: str) -> float:
    """Unix seconds; 401 for what is no time."""
    at = claims.get(name)
    if isinstance(at, bool) or not isinstance(at, int | float) or not abs(at) < LATEST:
        _refuse(f"it does not say when (`{name}`)")
    return float(at)


def _refuse(why: str, *, hint: str = "") -> NoReturn:
    problem = unauthorized(f"the JSON Web Token is refused: {why}")
    problem.hint = hint or "docs/api.md, `Tokens of an issuer`, says what is taken"
    problem.headers["WWW-Authenticate"] = 'Bearer realm="tiergate", error="invalid_token"'
    raise problem
