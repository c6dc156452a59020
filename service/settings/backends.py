"""Backends from their checked shape: keys, headers and certificates are read from where the file says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from service import tls
from service.fleet import Backend, BackendTls
from service.settings.fleet_shape import BackendShape, HeaderShape
from service.settings.forms import HEADER_VALUE_EXPECTED, is_header_value
from service.settings.problems import Findings, Place
from service.settings.secrets import SecretUnreadable, read_secret, read_text

_TLS_KEYS = ("ca_file", "certificate_file", "key_file", "insecure_skip_verify")
_KEY_OF = {tls.Part.CA: "ca_file", tls.Part.CERTIFICATE: "certificate_file", tls.Part.KEY: "key_file"}


def build_backend(
    backend: BackendShape, place: Place, beside: Path, environ: Mapping[str, str], findings: Findings
) -> Backend:
    """With its secrets and certificates read; what is wrong with them goes to `findings`."""
    return Backend(
        url=backend.url,
        api_key=_api_key(backend, place, beside, environ, findings),
        headers=_headers(backend, place, beside, environ, findings),
        tls=_tls(backend, place, beside, findings),
        max_concurrency=backend.max_concurrency,
    )


def _api_key(
    backend: BackendShape, place: Place, beside: Path, environ: Mapping[str, str], findings: Findings
) -> str | None:
    if backend.api_key_file is not None and backend.api_key_env is not None:
        findings.add(place, "give api_key_file or api_key_env, not both")
        return None
    key, here = None, place
    if backend.api_key_file is not None:
        here = (*place, "api_key_file")
        try:
            key = read_secret(beside / backend.api_key_file)
        except SecretUnreadable as error:
            findings.add(here, str(error))
    elif backend.api_key_env is not None:
        here = (*place, "api_key_env")
        key = environ.get(backend.api_key_env) or None
        if key is None:
            findings.add(here, f"the environment has no {backend.api_key_env}")
    if key is not None and not is_header_value(key):
        findings.add(here, "an API key is printable ASCII on one line")
        return None
    return key


def _headers(
    backend: BackendShape, place: Place, beside: Path, environ: Mapping[str, str], findings: Findings
) -> tuple[tuple[str, str], ...]:
    headers: dict[str, tuple[str, str]] = {}
    has_key = backend.api_key_file is not None or backend.api_key_env is not None
    for name, header in backend.headers.items():
        here: Place = (*place, "headers", name)
        if name.lower() in headers:
            findings.add(here, "this header stands here twice: case makes no difference")
        elif name.lower() == "authorization" and has_key:
            findings.add(here, "an API key is sent as Authorization: give one of the two")
        elif (value := _header(header, here, beside, environ, findings)) is not None:
            headers[name.lower()] = (name, value)
    return tuple(headers.values())


def _header(
    header: HeaderShape, place: Place, beside: Path, environ: Mapping[str, str], findings: Findings
) -> str | None:
    if sum(given is not None for given in (header.value, header.file, header.env)) != 1:
        findings.add(place, "give exactly one of value, file and env")
        return None
    if header.value is not None:
        return header.value
    if header.file is not None:
        try:
            value = read_secret(beside / header.file)
        except SecretUnreadable as error:
            findings.add((*place, "file"), str(error))
            return None
    else:
        value = environ.get(str(header.env), "")
        if not value:
            findings.add((*place, "env"), f"the environment has no {header.env}")
            return None
    if not is_header_value(value):
        findings.add(place, HEADER_VALUE_EXPECTED)
        return None
    return value


def _tls(backend: BackendShape, place: Place, beside: Path, findings: Findings) -> BackendTls:
    if not backend.url.startswith("https:"):
        for key in _TLS_KEYS:
            if getattr(backend, key):
                findings.add(
                    (*place, key), f"{backend.url} is not reached by TLS: begin its URL with https://"
                )
        return BackendTls()
    if (backend.certificate_file is None) != (backend.key_file is None):
        findings.add(place, "certificate_file and key_file are given together or not at all")
        return BackendTls()
    if backend.insecure_skip_verify and backend.ca_file is not None:
        findings.add(
            (*place, "ca_file"), "with insecure_skip_verify nothing is verified: remove one of the two"
        )
    read: dict[str, str | None] = {}
    for key in ("ca_file", "certificate_file", "key_file"):
        path = getattr(backend, key)
        try:
            read[key] = None if path is None else read_text(beside / path)
        except SecretUnreadable as error:
            findings.add((*place, key), str(error))
            return BackendTls()
    settings = BackendTls(
        ca=read["ca_file"],
        certificate=read["certificate_file"],
        key=read["key_file"],
        insecure_skip_verify=backend.insecure_skip_verify,
    )
    try:
        tls.connecting(
            ca=settings.ca,
            certificate=settings.certificate,
            key=settings.key,
            insecure_skip_verify=settings.insecure_skip_verify,
        )
    except tls.TlsUnusable as error:
        key = _KEY_OF[error.part]
        findings.add((*place, key), f"{getattr(backend, key)}: {error}")
    return settings
