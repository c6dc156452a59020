"""Whom the configuration lets us call back, and what is refused in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from service.settings import Settings
from service.store.outgoing.gate_terms import NO_GATES, GateTarget
from tests.authority import ODD_CURVE

Loaded = Callable[..., Settings]
Problems = Callable[..., list[str]]


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture(scope="module")
def app_key() -> str:
    return pem(rsa.generate_private_key(65537, 2048))


@pytest.fixture
def files(tmp_path: Path, app_key: str) -> Path:
    (tmp_path / "app.pem").write_text(app_key)
    (tmp_path / "hook").write_text("hook secret\n")
    (tmp_path / "token").write_text("glpat-abc\n")
    return tmp_path


def named(minimal: dict[str, Any]) -> dict[str, str]:
    """Model and highest tier of the configuration."""
    model = next(iter(minimal["models"]))
    return {"model": model, "tier": minimal["models"][model]["ladder"][-1]["tier"]}


def github(minimal: dict[str, Any], **changes: object) -> dict[str, Any]:
    rule = {"repository": "Org/App", "environment": "Production", **named(minimal)}
    shape = {"app": "Iv1abc", "private_key_file": "app.pem", "secret_file": "hook", "environments": [rule]}
    return {**minimal, "pipelines": {"github": {**shape, **changes}}}


def gitlab(minimal: dict[str, Any], **changes: object) -> dict[str, Any]:
    rule = {"project": "Group/sub/App", **named(minimal)}
    shape = {
        "url": "https://gitlab.example/",
        "token_file": "token",
        "secret_file": "hook",
        "checks": [{**rule, "check": "tiergate"}],
        "deployments": [
            {**rule, "environment": "production", "basis": "verdict", "represented_as": "Quality"}
        ],
    }
    return {**minimal, "pipelines": {"gitlab": {**shape, **changes}}}


def test_nobody_is_called_unless_the_configuration_says_whom(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(minimal).pipelines == NO_GATES
    assert not loaded(minimal).pipelines.any


def test_a_github_app_is_read_from_its_files(minimal: dict[str, Any], loaded: Loaded, files: Path) -> None:
    found = loaded(github(minimal)).pipelines.github
    assert found is not None
    assert (found.url, found.app, found.secret) == ("https://api.github.com", "Iv1abc", "hook secret")
    assert found.wait_seconds == 86_400.0
    assert found.environments == {("org/app", "production"): GateTarget(**named(minimal))}
    assert "hook secret" not in repr(found)
    assert "PRIVATE" not in repr(found)


def test_a_gitlab_is_read_from_its_files(minimal: dict[str, Any], loaded: Loaded, files: Path) -> None:
    found = loaded(gitlab(minimal)).pipelines.gitlab
    assert found is not None
    assert (found.url, found.token, found.secret) == ("https://gitlab.example", "glpat-abc", "hook secret")
    assert found.checks == {("group/sub/app", "tiergate"): GateTarget(**named(minimal))}
    assert found.deployments == {
        ("group/sub/app", "production"): GateTarget(
            **named(minimal), basis="verdict", represented_as="Quality"
        )
    }
    assert "glpat" not in repr(found)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://gitlab.example", "a token is sent there: write https://"),
        ("https://user:pw@gitlab.example", "credentials do not belong in a URL"),
        ("https://gitlab.example?x=1", "expected https://HOST"),
        ("file:///etc/passwd", "expected https://HOST"),
        ("https://", "expected https://HOST"),
        ("https://gitlab.example:0", "expected https://HOST"),
        ("https://gitlab.example:port", "expected https://HOST"),
        ("https://gitlab .example", "expected https://HOST"),
        ("https://gitlab.\nexample", "expected https://HOST"),
    ],
)
def test_a_url_that_would_give_a_token_away_is_refused(
    url: str, why: str, minimal: dict[str, Any], problems: Problems, files: Path
) -> None:
    assert why in "\n".join(problems(gitlab(minimal, url=url)))
    assert why in "\n".join(problems(github(minimal, url=url)))


def test_a_server_on_this_machine_may_do_without_tls(
    minimal: dict[str, Any], loaded: Loaded, files: Path
) -> None:
    for url in ("http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9"):
        found = loaded(gitlab(minimal, url=url)).pipelines.gitlab
        assert found is not None
        assert found.url == url


def test_every_mistake_is_named_with_its_place(
    minimal: dict[str, Any], problems: Problems, files: Path
) -> None:
    (files / "other.pem").write_text(pem(ec.generate_private_key(ec.SECP256R1())))
    (files / "odd.pem").write_text(ODD_CURVE)
    (files / "empty").write_text("")
    rule = {"project": "group/app", "check": "tiergate", **named(minimal)}
    said = [
        (github(minimal, private_key_file="other.pem"), "GitHub Apps have RSA keys"),
        (github(minimal, private_key_file="hook"), "there is no private key in PEM form"),
        (github(minimal, private_key_file="odd.pem"), "there is no private key in PEM form"),
        (github(minimal, private_key_file="nowhere"), "there is no file"),
        (github(minimal, secret_file="empty"), "is empty"),
        (github(minimal, ca_file="hook"), "there is no certificate in PEM form"),
        (github(minimal, environments=[]), "needs at least one entry"),
        (gitlab(minimal, secret_file=None), "status checks are signed"),
        (gitlab(minimal, checks=[], deployments=[]), "there is nothing to answer"),
        (gitlab(minimal, checks=[rule, rule]), "stands in this list twice"),
        (gitlab(minimal, checks=[{**rule, "model": "no-such"}]), "no model has this name"),
        (gitlab(minimal, checks=[{**rule, "tier": "no-such"}]), "no tier above the baseline has this name"),
        (gitlab(minimal, checks=[{**rule, "project": "no-group"}]), "project"),
    ]
    for given, why in said:
        assert why in "\n".join(problems(given)), why
