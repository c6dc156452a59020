"""Contexts from PEM text: what makes one, and what is said of what makes none."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from service.tls import Part, TlsUnusable, connecting, listening, not_after
from tests.authority import ODD_CURVE, Authority, Pair


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def pair(authority: Authority) -> Pair:
    return authority.issue("server")


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "localhost") -> ssl.SSLObject:
    """The client's side of a completed handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(10):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    theirs.write(b"hello")
    assert ours.read(10) == b"hello"
    return ours


def test_a_listener_speaks_http_1_1_over_tls_1_2_and_up(authority: Authority, pair: Pair) -> None:
    context = listening(certificate=pair.text, key=pair.key_text)
    client = connecting(ca=authority.text)
    client.set_alpn_protocols(["h2", "http/1.1"])
    side = shaken(context, client)
    assert (side.selected_alpn_protocol(), side.version()) == ("http/1.1", "TLSv1.3")
    old = authority.client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shaken(context, old).version() == "TLSv1.2"
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        shaken(context, old)


def test_a_client_that_speaks_only_h2_gets_no_h2(authority: Authority, pair: Pair) -> None:
    client = authority.client_context()
    client.set_alpn_protocols(["h2"])
    assert (
        shaken(listening(certificate=pair.text, key=pair.key_text), client).selected_alpn_protocol() is None
    )


def test_with_client_authorities_only_their_clients_get_in(
    authority: Authority, pair: Pair, tmp_path: Path
) -> None:
    context = listening(certificate=pair.text, key=pair.key_text, client_ca=authority.text)
    mine = authority.issue("client")
    shaken(context, authority.client_context(mine))
    stranger = Authority(tmp_path / "other").issue("client")
    for client in (authority.client_context(), authority.client_context(stranger)):
        with pytest.raises(ssl.SSLError):
            shaken(context, client)


def test_a_connection_out_trusts_its_own_authority_alone_and_checks_the_name(
    authority: Authority, pair: Pair, tmp_path: Path
) -> None:
    server = pair.server_context()
    shaken(server, connecting(ca=authority.text))
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken(server, connecting(ca=authority.text), "gpu-a")
    for other in (connecting(), connecting(ca=Authority(tmp_path / "other").text)):
        with pytest.raises(ssl.SSLCertVerificationError):
            shaken(server, other)


def test_verification_ends_only_where_it_is_said(pair: Pair) -> None:
    assert connecting().verify_mode is ssl.CERT_REQUIRED
    assert connecting(ca=pair.text).check_hostname
    shaken(pair.server_context(), connecting(insecure_skip_verify=True), "anything")


def test_a_connection_out_shows_its_certificate(authority: Authority, pair: Pair) -> None:
    mine = authority.issue("proxy")
    server = listening(certificate=pair.text, key=pair.key_text, client_ca=authority.text)
    shaken(server, connecting(ca=authority.text, certificate=mine.text, key=mine.key_text))


def encrypted(pair: Pair) -> str:
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    ).decode()


def test_what_is_wrong_is_said_of_the_right_part(authority: Authority, pair: Pair) -> None:
    other = authority.issue("other")
    wrong: dict[str, tuple[dict[str, str], Part, str]] = {
        "another's key": ({"key": other.key_text}, Part.KEY, "does not belong to the certificate"),
        "no key": ({"key": pair.text}, Part.KEY, "no private key"),
        "a key of another kind": ({"key": ODD_CURVE}, Part.KEY, "no private key"),
        "a key with a passphrase": ({"key": encrypted(pair)}, Part.KEY, "encrypted"),
        "no certificate": ({"certificate": pair.key_text}, Part.CERTIFICATE, "no certificate"),
        "nothing": ({"certificate": ""}, Part.CERTIFICATE, "no certificate"),
        "half a certificate": ({"certificate": pair.text[:300]}, Part.CERTIFICATE, "no certificate"),
        "no authority": ({"client_ca": "hello"}, Part.CA, "no certificate"),
    }
    for case, (change, part, why) in wrong.items():
        with pytest.raises(TlsUnusable, match=why) as caught:
            listening(**{"certificate": pair.text, "key": pair.key_text, **change})
        assert caught.value.part is part, case


def test_the_first_certificate_of_a_chain_is_the_one_that_expires(authority: Authority) -> None:
    leaf = authority.issue("leaf", days=10)
    left = not_after(leaf.text + authority.text) - datetime.now(UTC)
    assert 9.9 < left.total_seconds() / 86400 <= 10


def test_no_descriptor_stays_open(pair: Pair) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        listening(certificate=pair.text, key=pair.key_text)
    assert len(os.listdir("/proc/self/fd")) <= before + 1
