"""Where things are: state directory, URLs, addresses to bind, capture keys; the environment goes first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from service.attestation.keys import KeyUnusable, read_private
from service.proxy.config import AccessLogPlan, ListenerTls, RoutesFrom
from service.proxy.processes.certificates import read_tls
from service.settings import units
from service.settings.problems import Findings, Place
from service.settings.secrets import (
    MAKE_A_KEY,
    SecretUnreadable,
    key_to_be_made,
    make_key,
    read_keyring,
    read_secret,
    secret_from,
)
from service.settings.shape import AccessLogShape, ApiShape, RoutesShape, TiergateShape, TlsShape
from service.settings.urls import is_here
from service.store.redis.capture import Keyring
from service.tls import Part, TlsUnusable

EMBEDDED_REDIS_FILE = "redis.url"
"""In the state directory."""


def state_dir(shape: TiergateShape, beside: Path, environ: Mapping[str, str]) -> Path:
    """Absolute; what the file says is relative to the file, what the environment says to where we are."""
    if given := environ.get("TIERGATE_STATE_DIR"):
        return Path(given).expanduser().absolute()
    return (beside / Path(shape.store.state_dir).expanduser()).absolute()


def url(
    environ: Mapping[str, str],
    name: str,
    written: str | None,
    check: Callable[[str], str],
    findings: Findings,
) -> str | None:
    """The environment's URL, else the file's; None when neither has one."""
    try:
        given = secret_from(environ, name)
    except SecretUnreadable as error:
        findings.add((), f"{name}_FILE: {error}")
        return None
    if given is None:
        return written
    try:
        return check(given)
    except ValueError as error:
        findings.add((), f"{name}: {error}")
        return None


def embedded_redis(state_dir: Path) -> str | None:
    """The server that `tiergate up` runs on this state directory now, so that other commands find it."""
    try:
        return read_secret(state_dir / EMBEDDED_REDIS_FILE)
    except SecretUnreadable:
        return None


def listen(
    environ: Mapping[str, str],
    name: str,
    written: units.Listen,
    findings: Findings,
    *,
    read: Callable[[object], units.Listen] = units.listen,
) -> units.Listen:
    """The environment's address to bind, else the file's."""
    given = environ.get(name)
    if not given:
        return written
    try:
        return read(given)
    except ValueError as error:
        findings.add((), f"{name}: {error}")
        return written


def access_log(shape: AccessLogShape, beside: Path) -> AccessLogPlan | None:
    """None when nothing is to be written."""
    if shape.to == "none":
        return None
    to = shape.to if shape.to in ("stderr", "stdout") else str(beside / Path(shape.to).expanduser())
    return AccessLogPlan(to=to, sample=shape.sample, errors=shape.errors)


def routes_from(shape: RoutesShape | None, beside: Path, findings: Findings) -> RoutesFrom | None:
    """The API that a proxy asks for routes; None when it is to ask none."""
    if shape is None:
        return None
    token, place = None, ("proxy", "routes", "token_file")
    if shape.token_file is not None:
        try:
            token = read_secret(beside / Path(shape.token_file).expanduser())
        except SecretUnreadable as error:
            findings.add(place, f"{error}; `tiergate token new proxy --scope read` makes a token")
        if token is not None and not (token.isascii() and token.isprintable()):
            findings.add(place, "a token is printable ASCII on one line")
    return RoutesFrom(url=shape.url, token=token)


def attest_key(shape: ApiShape, beside: Path, findings: Findings) -> Ed25519PrivateKey | None:
    """What signs statements of decisions; None when nothing is to."""
    if shape.attest_key_file is None:
        return None
    try:
        return read_private(beside / Path(shape.attest_key_file).expanduser())
    except KeyUnusable as error:
        findings.add(("api", "attest_key_file"), str(error))
        return None


def keyring(
    shape: TiergateShape,
    beside: Path,
    state_dir: Path,
    redis_url: str | None,
    environ: Mapping[str, str],
    findings: Findings,
    *,
    make: bool = True,
) -> Keyring | None:
    """The capture keys; made in the state directory where all processes share it and none is named.

    With `make` false nothing is written: `key_to_be_made` stands for what a start would make.
    """
    given = shape.mirror.capture.key_file
    place: Place = ("mirror", "capture", "key_file") if given else ()
    if from_environment := environ.get("TIERGATE_CAPTURE_KEY_FILE"):
        key_file, place = Path(from_environment).expanduser(), ()
    elif given is not None:
        key_file = beside / Path(given).expanduser()
    else:
        key_file = state_dir / "capture.key"
        is_apart = redis_url is not None and not is_here(urlsplit(redis_url).hostname or "")
        if is_apart and not key_file.exists():
            findings.add(
                ("mirror", "capture"),
                f"key_file is needed where Redis is on another machine: every proxy and worker must have the"
                f" same key; {MAKE_A_KEY} and name it here or in TIERGATE_CAPTURE_KEY_FILE",
            )
            return None
        if not make and not key_file.exists():
            return key_to_be_made()
        try:
            make_key(key_file)
        except OSError as error:
            findings.add(
                (), f"cannot keep a capture key in {state_dir}: {error.strerror}; set TIERGATE_STATE_DIR"
            )
            return None
    try:
        return read_keyring(key_file)
    except SecretUnreadable as error:
        findings.add(place, f"capture key: {error}")
        return None


def listener_tls(shape: TlsShape | None, beside: Path, findings: Findings) -> ListenerTls | None:
    """The proxy's certificate, read and tried out; None for plain HTTP."""
    if shape is None:
        return None
    client_ca = None if shape.client_ca_file is None else beside / Path(shape.client_ca_file).expanduser()
    try:
        return read_tls(
            beside / Path(shape.certificate_file).expanduser(),
            beside / Path(shape.key_file).expanduser(),
            client_ca,
        )
    except TlsUnusable as error:
        key = {Part.CERTIFICATE: "certificate_file", Part.KEY: "key_file", Part.CA: "client_ca_file"}[
            error.part
        ]
        findings.add(("proxy", "tls", key), str(error))
        return None
