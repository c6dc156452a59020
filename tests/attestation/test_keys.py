"""Key files: the private half for its owner alone, never overwritten."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from service.attestation.keys import KeyUnusable, make_key, read_private, read_public


def test_a_pair_fits_and_its_private_half_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "attest.key"
    before = os.umask(0)
    try:
        public = make_key(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public == tmp_path / "attest.key.pub"
    read_public(public).verify(read_private(path).sign(b"x"), b"x")


@pytest.mark.parametrize("taken", ["attest.key", "attest.key.pub"])
def test_a_file_that_is_there_is_never_written_over(taken: str, tmp_path: Path) -> None:
    (tmp_path / taken).write_text("old")
    with pytest.raises(KeyUnusable, match="take another name"):
        make_key(tmp_path / "attest.key")
    assert (tmp_path / taken).read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_files_that_are_no_such_key_are_told_with_what_to_do(tmp_path: Path) -> None:
    public = make_key(tmp_path / "k")
    rsa = tmp_path / "rsa"
    rsa.write_bytes(
        generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    for path, complaint in (
        (tmp_path / "none", "cannot be read"),
        (public, "attest key"),
        (rsa, "no Ed25519 key"),
    ):
        with pytest.raises(KeyUnusable, match=complaint):
            read_private(path)
    for path, complaint in ((tmp_path / "none", "cannot be read"), (tmp_path / "k", r"ends in \.pub")):
        with pytest.raises(KeyUnusable, match=complaint):
            read_public(path)
    with pytest.raises(KeyUnusable, match="cannot be written"):
        make_key(tmp_path / "no such directory" / "k")
