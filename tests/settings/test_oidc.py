"""Whose tokens the configuration takes, and what is refused in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.store.access.issuer_terms import ClaimRule, IssuerTerms, LoginTerms
from tests.authority import Authority

Loaded = Callable[..., Settings]
Problems = Callable[..., list[str]]
RULE = {"claim": "groups", "equals": "leads", "scope": "approve"}


def taking(
    minimal: dict[str, Any], *issuers: dict[str, Any], public_url: str | None = None
) -> dict[str, Any]:
    right = {"issuer": "https://sso.example/realms/staff", "audience": "tiergate", "scopes": [RULE]}
    api: dict[str, Any] = {"oidc": [{**right, **changes} for changes in issuers]}
    return {**minimal, "api": api if public_url is None else {**api, "public_url": public_url}}


def test_nobodys_tokens_are_taken_unless_the_configuration_says_so(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    assert loaded(minimal).api.issuers == ()


def test_an_issuer_is_read_letter_for_letter(minimal: dict[str, Any], loaded: Loaded) -> None:
    rule = {**RULE, "models": ["qwen"]}
    found = loaded(taking(minimal, {"issuer": "https://auth.example/", "scopes": [rule, RULE]})).api.issuers
    assert found == (
        IssuerTerms(
            issuer="https://auth.example/",
            audience="tiergate",
            rules=(
                ClaimRule(claim="groups", equals="leads", scope="approve", models=frozenset({"qwen"})),
                ClaimRule(claim="groups", equals="leads", scope="approve"),
            ),
        ),
    )


def test_its_authorities_are_read_from_their_file(
    minimal: dict[str, Any], loaded: Loaded, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "ca")
    (found,) = loaded(taking(minimal, {"ca_file": str(authority.file)})).api.issuers
    assert found.ca == authority.text


def test_an_issuer_on_this_machine_may_do_without_tls(minimal: dict[str, Any], loaded: Loaded) -> None:
    for url in ("http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9"):
        assert loaded(taking(minimal, {"issuer": url})).api.issuers[0].issuer == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://sso.example", "write https://"),
        ("https://user:pw@sso.example", "credentials do not belong in a URL"),
        ("https://sso.example?x=1", "expected https://HOST"),
        ("https://sso.example#x", "expected https://HOST"),
        ("https://sso.example/a b", "expected https://HOST"),
        ("file:///etc/passwd", "expected https://HOST"),
        ("sso.example", "expected https://HOST"),
        ("https://", "expected https://HOST"),
        ("https://sso.example:0", "expected https://HOST"),
    ],
)
def test_a_place_that_keys_must_not_come_from_is_refused(
    url: str, why: str, minimal: dict[str, Any], problems: Problems
) -> None:
    assert why in "\n".join(problems(taking(minimal, {"issuer": url})))
    assert why in "\n".join(problems(taking(minimal, {"jwks_uri": url})))


def test_where_everybody_has_tokens_a_claim_must_be_ones_own(
    minimal: dict[str, Any], loaded: Loaded, problems: Problems
) -> None:
    for issuer in ("https://token.actions.githubusercontent.com", "https://gitlab.com"):
        rule = {**RULE, "claim": "environment", "equals": "production"}
        told = "\n".join(problems(taking(minimal, {"issuer": issuer, "scopes": [rule]})))
        assert "anybody there can have a token with this claim" in told
        assert loaded(taking(minimal, {"issuer": issuer, "scopes": [{**rule, "claim": "sub"}]}))


def test_every_mistake_is_named_with_its_place(
    minimal: dict[str, Any], problems: Problems, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no certificate\n")
    said = [
        (({}, {}), "api.oidc[1].issuer", "stands in this list twice"),
        (({"scopes": []},), "api.oidc[0].scopes", "needs at least one entry"),
        (({"scopes": [{**RULE, "models": []}]},), "models", "needs at least one entry"),
        (({"scopes": [{**RULE, "models": ["qwem"]}]},), "models[0]", "did you mean `qwen`"),
        (({"scopes": [{**RULE, "scope": "root"}]},), "scope", "read"),
        (({"scopes": [{**RULE, "equals": ""}]},), "equals", ""),
        (({"audience": ""},), "audience", ""),
        (({"ca_file": "text"},), "ca_file", "there is no certificate in PEM form"),
        (({"ca_file": "nowhere"},), "ca_file", "there is no file"),
    ]
    for changes, place, why in said:
        told = "\n".join(problems(taking(minimal, *changes)))
        assert place in told, told
        assert why in told, told


LOGIN = {"client_id": "tiergate", "client_secret_file": "secret"}
PUBLIC = "https://tiergate.example"


def test_people_log_in_at_an_issuer_that_has_a_client_of_ours(
    minimal: dict[str, Any], loaded: Loaded, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    assert loaded(taking(minimal, {})).api.issuers[0].login is None
    (public,) = loaded(taking(minimal, {"client_id": "tiergate"}, public_url=PUBLIC)).api.issuers
    assert public.login == LoginTerms(client_id="tiergate", client_secret=None, label="sso.example")
    said = {
        **LOGIN,
        "authorization_endpoint": "https://login.example/authorize",
        "token_endpoint": "https://login.example/token",
        "login_scopes": ["openid", "groups"],
        "label": "Staff",
    }
    (found,) = loaded(taking(minimal, said, public_url=PUBLIC)).api.issuers
    assert found.login == LoginTerms(
        client_id="tiergate",
        client_secret="s3cret",
        authorization_endpoint="https://login.example/authorize",
        token_endpoint="https://login.example/token",
        scopes=("groups",),
        label="Staff",
    )
    assert "s3cret" not in repr(found)


def test_every_mistake_about_log_ins_is_named_with_its_place(
    minimal: dict[str, Any], problems: Problems, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("")
    alone = "is for people who log in: write `client_id` beside it"
    said: list[tuple[dict[str, Any], str | None, str, str]] = [
        ({"client_id": "tiergate"}, None, "client_id", "come back to `api.public_url`"),
        ({**LOGIN, "client_secret_file": "nowhere"}, PUBLIC, "client_secret_file", "there is no file"),
        ({**LOGIN, "client_secret_file": "empty"}, PUBLIC, "client_secret_file", "is empty"),
        ({"client_id": ""}, PUBLIC, "client_id", "at least 1 character"),
        ({"client_secret_file": "secret"}, PUBLIC, "client_secret_file", alone),
        ({"authorization_endpoint": "https://a.example"}, PUBLIC, "authorization_endpoint", alone),
        ({"token_endpoint": "https://a.example"}, PUBLIC, "token_endpoint", alone),
        ({"login_scopes": ["groups"]}, PUBLIC, "login_scopes", alone),
        ({"label": "Staff"}, PUBLIC, "label", alone),
        ({**LOGIN, "token_endpoint": "http://a.example"}, PUBLIC, "token_endpoint", "write https://"),
        ({**LOGIN, "login_scopes": ["two words"]}, PUBLIC, "login_scopes", "pattern"),
        ({"client_id": "tiergate"}, f"{PUBLIC}/path", "public_url", "pattern"),
    ]
    for changes, public_url, name, why in said:
        told = "\n".join(problems(taking(minimal, changes, public_url=public_url)))
        place = "api.public_url" if name == "public_url" else f"api.oidc[0].{name}"
        assert place in told, told
        assert why in told, told
