"""The two files of an Ed25519 key pair, PEM: PKCS #8 for who signs, SubjectPublicKeyInfo for who checks."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)


class KeyUnusable(ValueError):
    """A key file that cannot be read or made; says what to do."""


def public_file(path: Path) -> Path:
    """Where the public half of a key lies: beside it."""
    return path.with_name(path.name + ".pub")


def make_key(path: Path) -> Path:
    """Write a new pair, the private half for its owner alone (mode 0600); the path of the public half.

    Never over a file that is there: what was signed with it could not be checked any more.
    """
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    beside = public_file(path)
    if beside.exists():
        raise KeyUnusable(f"there is a file {beside} already: take another name")
    _write(path, private, 0o600)
    _write(beside, public, 0o644)
    return beside


def read_private(path: Path) -> Ed25519PrivateKey:
    """The half that signs; KeyUnusable."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise KeyUnusable(f"the key {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise KeyUnusable(
            f"{path} is no private key in PEM without a password; `tiergate attest key` makes one"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyUnusable(f"{path} is no Ed25519 key; `tiergate attest key` makes one")
    return key


def read_public(path: Path) -> Ed25519PublicKey:
    """The half that checks; KeyUnusable."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise KeyUnusable(f"the key {path} cannot be read: {error.strerror}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyUnusable(f"{path} is no public key in PEM: name the file that ends in .pub") from error
    if not isinstance(key, Ed25519PublicKey):
        raise KeyUnusable(f"{path} is no Ed25519 key")
    return key


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise KeyUnusable(f"there is a file {path} already: take another name") from None
    except OSError as error:
        raise KeyUnusable(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(number, "wb") as file:
        file.write(content)
