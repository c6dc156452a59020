"""Whose JSON Web Tokens are taken, and what their claims are worth: said by the configuration alone.

What a token says of where its keys are (`jku`, `x5u`) is never followed (ADR 35).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRule:
    """What a claim with one value is worth."""

    claim: str
    equals: str
    scope: str
    """`read`, `label`, `approve` or `admin`."""
    models: frozenset[str] | None = None
    """The only ones it is for; None = all."""

    def fits(self, claims: Mapping[str, object]) -> bool:
        """Whether the claim is that text, or a list with that text in it."""
        found = claims.get(self.claim)
        return found == self.equals or (isinstance(found, list) and self.equals in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginTerms:
    """How people log in there: as which client of the issuer, and where."""

    client_id: str
    """What an ID token has to be for."""
    client_secret: str | None = field(default=None, repr=False)
    """None: a public client, which PKCE alone protects."""
    authorization_endpoint: str | None = None
    """Where browsers go; None: where the discovery document says, on the issuer's own host."""
    token_endpoint: str | None = None
    """Where a code is exchanged; None as above."""
    scopes: tuple[str, ...] = ()
    """Asked for besides `openid`."""
    label: str
    """What people call the issuer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerTerms:
    """Who signs tokens, for whom they have to be, and what they allow."""

    issuer: str
    """A URL, letter for letter as its tokens have it."""
    audience: str
    """What its tokens have to be for: us, and nobody else."""
    rules: tuple[ClaimRule, ...]
    """The first that fits counts; where none does, a token is worth nothing."""
    jwks_uri: str | None = None
    """Where its keys are; None: where its discovery document says, on its own host."""
    ca: str | None = None
    """PEM of the authorities to trust there instead of the system's."""
    fetch_seconds: float = 5.0
    """How long the keys may take to arrive, discovery included."""
    login: LoginTerms | None = None
    """None: nobody logs in there."""

    @property
    def basis(self) -> str:
        """Hexadecimal; another one as soon as anything else is taken from the issuer, or worth something."""
        # The order in which a set is spelled differs between processes.
        worth = [(each.claim, each.equals, each.scope, sorted(each.models or ("",))) for each in self.rules]
        told = repr((self.issuer, self.audience, worth, self.jwks_uri, self.ca, self.login))
        return sha256(told.encode()).hexdigest()
