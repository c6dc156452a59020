"""A certificate authority for tests, and the files it makes."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ODD_CURVE = """-----BEGIN PRIVATE KEY-----
ME4CAQAwEAYHKoZIzj0CAQYFK4EEAAYENzA1AgEBBA6P8pCuyr6pt8AsR2JoGKEg
Ax4ABGyNyk7eHgEZ9IOrH2V4UormjYic+7yRGS+luM4=
-----END PRIVATE KEY-----
"""
"""secp112r1, which `cryptography` does not know: it raises no ValueError."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in PEM files."""

    certificate: Path
    key: Path

    @property
    def text(self) -> str:
        return self.certificate.read_text()

    @property
    def key_text(self) -> str:
        return self.key.read_text()

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Authority:
    """Signs certificates for this machine: `localhost`, 127.0.0.1, ::1."""

    def __init__(self, directory: Path, name: str = "test authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            self._begin(self._name, self._key.public_key(), days=3650)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = directory / "ca.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    @property
    def text(self) -> str:
        return self.file.read_text()

    def client_context(self, pair: Pair | None = None) -> ssl.SSLContext:
        """Trusts what this authority signed, and shows `pair`."""
        context = ssl.create_default_context(cafile=str(self.file))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    def issue(
        self,
        stem: str,
        *,
        days: float = 90.0,
        names: tuple[str, ...] = ("localhost",),
        addresses: tuple[str, ...] = ("127.0.0.1", "::1"),
    ) -> Pair:
        """A new pair in files of that stem, replacing what was there."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, stem)])
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            self._begin(subject, key.public_key(), days=days)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self._directory / f"{stem}.pem", self._directory / f"{stem}.key")
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return pair

    def _begin(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, *, days: float
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=400))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(identifier, critical=False)
        )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
