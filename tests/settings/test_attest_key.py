"""The key that signs statements of decisions, as the configuration names it, and what is refused of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from service.attestation.envelope import key_id
from service.attestation.keys import make_key, read_public
from service.settings import Settings

Loaded = Callable[..., Settings]
Problems = Callable[..., list[str]]


def signing(minimal: dict[str, Any], file: str) -> dict[str, Any]:
    return {**minimal, "api": {"attest_key_file": file}}


def test_nothing_is_signed_unless_the_configuration_says_by_what(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    assert loaded(minimal).api.attest_key is None


def test_the_key_is_the_private_half_that_the_command_made(
    minimal: dict[str, Any], loaded: Loaded, tmp_path: Path
) -> None:
    public = make_key(tmp_path / "attest.key")
    found = loaded(signing(minimal, "attest.key")).api
    assert found.attest_key is not None
    assert key_id(found.attest_key.public_key()) == key_id(read_public(public))
    assert "attest_key" not in repr(found)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("nowhere", "No such file"),
        ("text", "no private key"),
        ("attest.key.pub", "no private key"),
        ("other.pem", "no Ed25519 key"),
        (".", "cannot be read"),
    ],
)
def test_what_is_no_such_key_is_named_with_its_place(
    file: str, why: str, minimal: dict[str, Any], problems: Problems, tmp_path: Path
) -> None:
    make_key(tmp_path / "attest.key")
    (tmp_path / "text").write_text("hello\n")
    other = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "other.pem").write_bytes(
        other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    told = "\n".join(problems(signing(minimal, file)))
    assert "api.attest_key_file" in told
    assert why in told, told
