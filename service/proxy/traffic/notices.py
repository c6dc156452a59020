"""What the log says of backends that fail: why each is out, and that it is back; no more than helps."""

from __future__ import annotations

import logging
import ssl

from service.proxy.traffic.access_lines import address

QUIET_SECONDS = 10.0
"""Between two lines that say that the same backend is out."""
SAME_SECONDS = 60.0
"""The same, while it has not been back and the reason is as before."""
DENIALS = frozenset({401, 403})
"""Statuses of a health page that is not for us: requests may well fare like it."""
UNREADABLE = "gave an unreadable answer"
_LONGEST = 200
"""Characters of a reason."""

_log = logging.getLogger(__name__)


class Notices:
    """Of one backend; what is not said is counted all the same (`ejections`)."""

    __slots__ = ("_is_out", "_said", "_url", "_why", "denied")

    def __init__(self, url: str) -> None:
        self._url = address(url)
        self._said = float("-inf")
        """Monotonic: when the log last heard that it is out."""
        self._is_out = False
        """As far as the log knows."""
        self._why = ""
        self.denied: int | None = None
        """The 401 or 403 that its last health check was answered with."""

    def ejected(self, why: str, now: float) -> None:
        """It gets no requests for now."""
        quiet = SAME_SECONDS if self._is_out and why == self._why else QUIET_SECONDS
        if now - self._said >= quiet:
            self._said, self._is_out, self._why = now, True, why
            _log.warning("backend %s is ejected: %s", self._url, why)

    def back(self) -> None:
        """It gets requests again."""
        if self._is_out:
            self._is_out = False
            _log.warning("backend %s is back", self._url)

    def checked(self, status: int) -> None:
        """Its health check was answered; said when that begins or ceases to be a denial."""
        denied = status if status in DENIALS else None
        if denied == self.denied:
            return
        self.denied = denied
        if denied is not None:
            _log.warning(
                "backend %s answers %d to its health check: unless clients bring a key of their own, "
                "its api_key or headers are wrong and requests will fail; it stays in use",
                self._url,
                denied,
            )
        else:
            _log.warning("backend %s lets its health check in again", self._url)


def why_unreached(error: OSError | ValueError) -> str:
    """Why there is no connection, in a few words on one line."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return _short(f"TLS verification failed: {error.verify_message or error.reason}")
    if isinstance(error, ssl.SSLError):
        return _short(f"TLS failed: {(error.reason or str(error)).replace('_', ' ').lower()}")
    if isinstance(error, ConnectionRefusedError):
        return "refused the connection"
    if isinstance(error, ConnectionError):
        return "reset the connection"
    if isinstance(error, FileNotFoundError):
        return "its socket does not exist"
    return _short((isinstance(error, OSError) and error.strerror) or str(error))


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
