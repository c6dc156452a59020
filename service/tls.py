"""TLS contexts from PEM text in memory: for whoever listens, and for whoever connects.

The settings read the files; what was read travels with the configuration, so that a process which starts
while a file is broken still has the last good one.

TlsUnusable
    text that makes no context, with what is wrong with which part of it
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

PROTOCOLS = ["http/1.1"]
"""What we say and take in ALPN."""


class Part(StrEnum):
    """What a piece of PEM text is for."""

    CERTIFICATE = "certificate"
    KEY = "key"
    CA = "ca"


class TlsUnusable(ValueError):
    """PEM text that makes no context: which part of it, and why."""

    def __init__(self, part: Part, why: str) -> None:
        self.part = part
        super().__init__(why)


def listening(*, certificate: str, key: str, client_ca: str | None = None) -> ssl.SSLContext:
    """For a listener: TLS 1.2 and up, HTTP/1.1; with `client_ca` only who has a certificate of it gets in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(PROTOCOLS)
    _load_chain(context, certificate, key)
    if client_ca is not None:
        _load_ca(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def try_out(context: ssl.SSLContext) -> None:
    """Shake hands with a listener's context as a client that trusts anybody; TlsUnusable when that fails.

    What makes a context need not make a handshake: clients take a chain of a hundred kilobytes at most.
    """
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there)
    server = context.wrap_bio(there, back, server_side=True)
    try:
        for side in (client, server, client):  # TLS 1.3 asks for a client's certificate after that
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLError as error:
        raise TlsUnusable(Part.CERTIFICATE, f"no client can use it: {_reason(error)}") from None


@lru_cache(maxsize=64)
def connecting(
    *,
    ca: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    insecure_skip_verify: bool = False,
) -> ssl.SSLContext:
    """For connections out: `ca` is trusted instead of the system (or what SSL_CERT_FILE names).

    Remembered, since reading the system's certificates takes tens of milliseconds.
    """
    context = ssl.create_default_context() if ca is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(PROTOCOLS)
    if ca is not None:
        _load_ca(context, ca)
    if certificate is not None and key is not None:
        _load_chain(context, certificate, key)
    if insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def not_after(certificate: str) -> datetime:
    """When the first certificate of a chain expires."""
    return _certificates(certificate, Part.CERTIFICATE)[0].not_valid_after_utc


def _load_chain(context: ssl.SSLContext, certificate: str, key: str) -> None:
    _certificates(certificate, Part.CERTIFICATE)
    try:
        load_pem_private_key(key.encode(), None)
    except TypeError:
        raise TlsUnusable(Part.KEY, "the private key is encrypted; write it without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise TlsUnusable(Part.KEY, "there is no private key in PEM form in it") from None
    with _as_file(certificate) as certificate_file, _as_file(key) as key_file:
        try:
            context.load_cert_chain(certificate_file, key_file)
        except ssl.SSLError as error:
            if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
                raise TlsUnusable(Part.KEY, "the key does not belong to the certificate") from None
            raise TlsUnusable(Part.CERTIFICATE, f"OpenSSL refuses it: {_reason(error)}") from None


def _load_ca(context: ssl.SSLContext, ca: str) -> None:
    _certificates(ca, Part.CA)
    try:
        context.load_verify_locations(cadata=ca)
    except ssl.SSLError as error:
        raise TlsUnusable(Part.CA, f"OpenSSL refuses it: {_reason(error)}") from None


def _certificates(text: str, part: Part) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise TlsUnusable(part, "there is no certificate in PEM form in it") from None


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path to the text, which `load_cert_chain` wants; in memory alone where the system can do that."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        number = os.memfd_create("pem", os.MFD_CLOEXEC)
        with os.fdopen(number, "w") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{number}"
    else:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # readable by this user alone
            file.write(text)
            file.flush()
            yield file.name
