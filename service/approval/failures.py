"""Wrong tokens are counted by the address they come from; after a few, none is looked up for a while.

Secrets have 256 random bits, so this is not what keeps them from being guessed: it keeps a misconfigured
pipeline, or a scan, from filling the log and asking the database. Many clients may share an address behind
a reverse proxy, so a secret that was right before is looked up however often others were wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import TypeVar

from service.approval.errors import Problem

MOST_FAILURES = 10
"""Of an address within `WINDOW_SECONDS`."""
WINDOW_SECONDS = 60.0
MOST_REMEMBERED = 4096
"""Addresses, and secrets that were right."""
RIGHT_OF = {401: False, 403: True}
"""Whether the secret was right, by the status of a refusal that says so."""
WRONG = "login_refused"
"""Code of a refusal that says so of what an issuer's log-in brought, whatever its status."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class Failures:
    """Of one process; its callers may be threads."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = Lock()
        self._failed: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """The start of its window, in Unix seconds, and how many failed since."""
        self._right: OrderedDict[bytes, None] = OrderedDict()

    def check(self, peer: str, secret: str) -> None:
        """429 while the peer has failed too often; not for a secret that was right."""
        with self._lock:
            began, failed = self._failed.get(peer, (0.0, 0))
            left = began + WINDOW_SECONDS - self._now()
            if failed < MOST_FAILURES or not 0 < left <= WINDOW_SECONDS or _digest(secret) in self._right:
                return
        raise Problem(
            429,
            "too_many_failures",
            f"{failed} wrong tokens came from this address within {WINDOW_SECONDS:g} s",
            hint="correct the token, then wait; one that was right before is not held up",
            headers={"Retry-After": str(int(left) + 1)},
        )

    def looked_up(self, peer: str, secret: str, find: Callable[[str], _V | None]) -> _V | None:
        """What `find` knows of a secret, None for a wrong one, which is counted; 429 after many of them.

        One that is right and worth nothing here (403) is not wrong: it must not keep its neighbours out,
        whose tokens of an issuer are new with every job. Nor is one of which an outage (503) tells nothing.
        """
        self.check(peer, secret)
        try:
            found = find(secret)
        except Problem as problem:
            if problem.status in RIGHT_OF:
                self.note(peer, secret, right=RIGHT_OF[problem.status] and problem.code != WRONG)
            raise
        self.note(peer, secret, right=found is not None)
        return found

    def note(self, peer: str, secret: str, *, right: bool) -> None:
        """Count a secret that was looked up."""
        with self._lock:
            digest = _digest(secret)
            if right:
                _remember(self._right, digest, None)
                return
            self._right.pop(digest, None)
            began, failed = self._failed.get(peer, (self._now(), 0))
            fresh = not 0 <= self._now() - began < WINDOW_SECONDS
            _remember(self._failed, peer, (self._now(), 1) if fresh else (began, failed + 1))


def _remember(known: OrderedDict[_K, _V], key: _K, kept: _V) -> None:
    known[key] = kept
    known.move_to_end(key)
    while len(known) > MOST_REMEMBERED:
        known.popitem(last=False)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="surrogatepass")).digest()
