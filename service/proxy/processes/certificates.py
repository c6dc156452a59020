"""The listener's certificate in its files: read whole, and looked at again every few seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from service import tls
from service.proxy.config import ListenerTls
from service.tls import Part, TlsUnusable

LOOK_SECONDS = 2.0
"""Between two looks at the files."""

_Texts = tuple[str, str, str | None]


def read_tls(certificate_file: Path, key_file: Path, client_ca_file: Path | None = None) -> ListenerTls:
    """What a listener needs, tried out; raises `TlsUnusable`, whose part says which file is at fault."""
    certificate, key, client_ca = _read(certificate_file, key_file, client_ca_file)
    tls.try_out(tls.listening(certificate=certificate, key=key, client_ca=client_ca))
    return ListenerTls(
        certificate_file=certificate_file,
        key_file=key_file,
        client_ca_file=client_ca_file,
        certificate=certificate,
        key=key,
        client_ca=client_ca,
    )


def days_left(current: ListenerTls, now: datetime | None = None) -> float:
    """Until the certificate that is shown to clients expires; negative when it has."""
    left = tls.not_after(current.certificate) - (now or datetime.now(UTC))
    return left.total_seconds() / 86400


def renews(current: ListenerTls | None, wanted: ListenerTls | None) -> bool:
    """Whether clients are shown something else under TLS; not when it is switched on or off."""
    return current is not None and wanted is not None and _texts(current) != _texts(wanted)


class Watch:
    """Notices that the files say something else than what is in use."""

    def __init__(self, current: ListenerTls) -> None:
        self.current = current
        self._seen: _Texts | TlsUnusable | None = None
        """What the last look found, if it was not what is in use."""
        self._is_told = False

    def look(self) -> ListenerTls | None:
        """What to use from now on; None for what is in use. Raises `TlsUnusable` once for each broken state.

        Two looks must agree: certificate and key are often written one after the other.
        """
        files = (self.current.certificate_file, self.current.key_file, self.current.client_ca_file)
        found: _Texts | TlsUnusable
        try:
            found = _read(*files)
        except TlsUnusable as error:
            found = error
        if found == _texts(self.current):
            self._seen = None
            return None
        if self._seen is None or str(found) != str(self._seen):
            self._seen, self._is_told = found, False
            return None
        if self._is_told:
            return None
        self._is_told = True
        if isinstance(found, TlsUnusable):
            raise found
        self.current = read_tls(*files)
        self._seen = None
        return self.current


def _texts(listener: ListenerTls) -> _Texts:
    return listener.certificate, listener.key, listener.client_ca


def _read(certificate_file: Path, key_file: Path, client_ca_file: Path | None) -> _Texts:
    return (
        _text(certificate_file, Part.CERTIFICATE),
        _text(key_file, Part.KEY),
        None if client_ca_file is None else _text(client_ca_file, Part.CA),
    )


def _text(path: Path, part: Part) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise TlsUnusable(part, f"{path} is not text") from None
    except OSError as error:
        raise TlsUnusable(part, f"{path} cannot be read: {error.strerror}") from None
