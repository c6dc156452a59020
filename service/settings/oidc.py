"""The part of `tiergate.yaml` under `api.oidc`, and the values it becomes: whose tokens are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from service.fleet import Ladder
from service.settings.forms import Name, Shape
from service.settings.nearest import nearest
from service.settings.pipelines import ca_of
from service.settings.problems import Findings, Place
from service.settings.secrets import SecretUnreadable, read_secret
from service.settings.urls import refuse_in_the_clear, web_url
from service.store.access.issuer_terms import ClaimRule, IssuerTerms, LoginTerms

PLACE: Place = ("api", "oidc")

OWN_CLAIMS: Mapping[str, frozenset[str]] = {
    "https://token.actions.githubusercontent.com": frozenset(
        {
            "sub",
            "repository",
            "repository_id",
            "repository_owner",
            "repository_owner_id",
            "job_workflow_ref",
            "workflow_ref",
        }
    ),
    "https://gitlab.com": frozenset(
        {
            "sub",
            "project_path",
            "project_id",
            "namespace_path",
            "namespace_id",
            "user_id",
            "user_login",
            "user_email",
        }
    ),
}
"""Issuers at which everybody can get tokens, and their claims whose values are not everybody's to choose."""
_OF_LOGINS = ("client_secret_file", "authorization_endpoint", "token_endpoint", "login_scopes", "label")


def _issuer_url(given: str) -> str:
    """As it is: its tokens have it letter for letter, with or without a slash at the end."""
    expected = f"expected https://HOST[:PORT][/PATH], got {given!r}"
    parts = web_url(given, expected=expected, credentials="credentials do not belong in a URL")
    if not given.isascii() or "?" in given or "#" in given:
        raise ValueError(expected)
    refuse_in_the_clear(parts, "whoever could change its keys on their way could sign as anybody")
    return given


IssuerUrl = Annotated[str, AfterValidator(_issuer_url), Field(max_length=500)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class ClaimRuleShape(Shape):
    """What a claim with one value is worth."""

    claim: Text = Field(description="Name of a claim: a text, or a list of texts such as groups.")
    equals: Text = Field(description="What it has to be, letter for letter, or have in its list.")
    scope: Literal["read", "label", "approve", "admin"] = Field(
        description="`read`, `label`, `approve` or `admin`; each includes those before it."
    )
    models: Annotated[list[Name], Field(min_length=1)] | None = Field(
        default=None, description="The only models it is for; all of them without it."
    )


class IssuerShape(Shape):
    """Who signs tokens, for whom they have to be, and what they allow."""

    issuer: IssuerUrl = Field(description="Its URL, letter for letter as its tokens have it in `iss`.")
    audience: Text = Field(description="What its tokens have to be for (`aud`).")
    jwks_uri: IssuerUrl | None = Field(
        default=None,
        description="Where its keys are; by default where its discovery document says, on its own host.",
    )
    ca_file: str | None = Field(
        default=None, description="PEM file of authorities to trust there instead of the system's."
    )
    client_id: Text | None = Field(
        default=None,
        description="Of a client of ours there (authorization code with PKCE): then people log in to the "
        "dashboard by it.",
    )
    client_secret_file: str | None = Field(
        default=None, description="File whose first line is that client's secret; a public client has none."
    )
    authorization_endpoint: IssuerUrl | None = Field(
        default=None,
        description="Where browsers log in; by default where its discovery document says, on its own host.",
    )
    token_endpoint: IssuerUrl | None = Field(
        default=None,
        description="Where a code is exchanged; by default where its discovery document says, on its own "
        "host.",
    )
    login_scopes: list[Annotated[str, Field(pattern=r"^[!#-\[\]-~]+$", max_length=200)]] = Field(
        default_factory=list,
        description="What a log-in asks for besides `openid`, such as `profile` or `groups`.",
    )
    label: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="What the log-in page calls it; by default its host."
    )
    scopes: Annotated[list[ClaimRuleShape], Field(min_length=1)] = Field(
        description="What its claims are worth; the first that fits counts, and without one a token is "
        "refused."
    )


def build_issuers(
    shapes: Sequence[IssuerShape],
    ladders: Mapping[str, Ladder],
    *,
    beside: Path,
    public_url: str | None,
    findings: Findings,
) -> tuple[IssuerTerms, ...]:
    """The terms; `findings` says what stands in their way."""
    found: list[IssuerTerms] = []
    for index, shape in enumerate(shapes):
        here = (*PLACE, index)
        if any(shape.issuer == earlier.issuer for earlier in found):
            findings.add((*here, "issuer"), "stands in this list twice; add to the `scopes` of the first")
        own = OWN_CLAIMS.get(shape.issuer.rstrip("/"))
        for place, rule in enumerate(shape.scopes):
            _check_rule(rule, own, ladders, (*here, "scopes", place), findings)
        found.append(
            IssuerTerms(
                issuer=shape.issuer,
                audience=shape.audience,
                rules=tuple(_rule(rule) for rule in shape.scopes),
                jwks_uri=shape.jwks_uri,
                ca=ca_of(beside, shape.ca_file, (*here, "ca_file"), findings),
                login=_login(shape, here, beside=beside, public_url=public_url, findings=findings),
            )
        )
    return tuple(found)


def _login(
    shape: IssuerShape, place: Place, *, beside: Path, public_url: str | None, findings: Findings
) -> LoginTerms | None:
    """How people log in there; None where nobody does."""
    if shape.client_id is None:
        for name in _OF_LOGINS:
            if getattr(shape, name):
                findings.add((*place, name), "is for people who log in: write `client_id` beside it")
        return None
    if public_url is None:
        findings.add(
            (*place, "client_id"),
            "people who log in there come back to `api.public_url`: write it, such as https://tiergate.example",
        )
    secret = None
    if shape.client_secret_file is not None:
        try:
            secret = read_secret(beside / Path(shape.client_secret_file).expanduser())
        except SecretUnreadable as error:
            findings.add((*place, "client_secret_file"), str(error))
    return LoginTerms(
        client_id=shape.client_id,
        client_secret=secret,
        authorization_endpoint=shape.authorization_endpoint,
        token_endpoint=shape.token_endpoint,
        scopes=tuple(each for each in shape.login_scopes if each != "openid"),
        label=shape.label or urlsplit(shape.issuer).netloc,
    )


def _check_rule(
    rule: ClaimRuleShape,
    own: frozenset[str] | None,
    ladders: Mapping[str, Ladder],
    place: Place,
    findings: Findings,
) -> None:
    if own is not None and rule.claim not in own:
        findings.add(
            (*place, "claim"),
            f"anybody there can have a token with this claim; take one of {', '.join(sorted(own))}",
        )
    for number, model in enumerate(rule.models or ()):
        if model not in ladders:
            meant = nearest(model, ladders) if ladders else "none"
            findings.add((*place, "models", number), f"no model has this name; did you mean `{meant}`?")


def _rule(shape: ClaimRuleShape) -> ClaimRule:
    return ClaimRule(
        claim=shape.claim,
        equals=shape.equals,
        scope=shape.scope,
        models=None if shape.models is None else frozenset(shape.models),
    )
