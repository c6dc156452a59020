"""The keys of one issuer: fetched from where the configuration says, kept for an hour; a day in an outage.

Nothing of a token decides where they are fetched from, and no flood of tokens how often: an id that is not
known is a reason to look once in `LOOK_SECONDS`, by one request at a time, with few others waiting for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import BoundedSemaphore, Lock

import httpx

from service.approval.issuer_documents import Unusable, discovered, document, place_of
from service.approval.key_sets import KeyName, NoKeySet, PublicKey, public_keys
from service.store.access.issuer_terms import IssuerTerms

log = logging.getLogger(__name__)

FRESH_SECONDS = 3600.0
"""After that they are fetched again, by whoever needs one."""
KEPT_SECONDS = 86_400.0
"""After that they are not used any more, however long the issuer is down."""
LOOK_SECONDS = 10.0
"""Between two looks for an id that is not known."""
RETRY_SECONDS = 60.0
"""Between two attempts to replace keys that still serve."""
MOST_WAITING = 8
"""Requests that wait for a fetch, of the 40 threads that answer requests."""


class IssuerDown(Exception):
    """No key can be had that would tell whether a token is right; what the issuer did instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    keys: Mapping[KeyName, PublicKey] = field(default_factory=dict)
    at: float
    """When they were fetched, in unix seconds."""


class IssuerKeys:
    """Of one process; its callers are threads, which may wait here."""

    def __init__(self, terms: IssuerTerms, now: Callable[[], float]) -> None:
        self._terms = terms
        self._now = now
        self._turn = Lock()
        self._waiting = BoundedSemaphore(MOST_WAITING)
        self._kept: _Kept | None = None
        self._tried_at: float | None = None
        self._complaint = ""
        """About the last attempt; empty when it went well."""

    def find(self, name: KeyName) -> PublicKey | None:
        """The key of that id and algorithm; None when the issuer has none. IssuerDown when nobody can say."""
        kept = self._usable()
        if kept is None or name not in kept.keys:
            self._look_for(name)
        elif self._now() - kept.at >= FRESH_SECONDS and self._turn.acquire(blocking=False):
            try:
                self._fetch(every=RETRY_SECONDS)
            finally:
                self._turn.release()
        kept = self._usable()
        found = None if kept is None else kept.keys.get(name)
        # Where the last look failed, an id that is not known may well be new there.
        if found is None and (kept is None or self._complaint):
            raise IssuerDown(self._complaint or "its keys were never fetched")
        return found

    def _usable(self) -> _Kept | None:
        kept, now = self._kept, self._now()
        if kept is not None and now < kept.at:
            # A clock that was set back must not keep them for longer than a day from here.
            kept = self._kept = replace(kept, at=now)
        return kept if kept is not None and now - kept.at <= KEPT_SECONDS else None

    def _look_for(self, name: KeyName) -> None:
        if not self._waiting.acquire(blocking=False):
            raise IssuerDown("its keys are being fetched, and enough requests wait for them")
        try:
            with self._turn:
                kept = self._usable()
                if kept is None or name not in kept.keys:
                    self._fetch(every=LOOK_SECONDS)
        finally:
            self._waiting.release()

    def _fetch(self, *, every: float) -> None:
        """Whoever calls this has the turn."""
        now = self._now()
        if self._tried_at is not None and 0 <= now - self._tried_at < every:
            return
        self._tried_at = now
        try:
            keys = asyncio.run(self._ask())
        except Unusable as error:
            self._complaint = str(error)
            log.warning("the keys of %s cannot be fetched: %s", self._terms.issuer, error)
        else:
            self._kept, self._complaint = _Kept(keys=keys, at=now), ""

    async def _ask(self) -> Mapping[KeyName, PublicKey]:
        limit = self._terms.fetch_seconds
        try:
            async with asyncio.timeout(limit):
                uri = self._terms.jwks_uri
                if uri is None:
                    uri = place_of(self._terms, await discovered(self._terms), "jwks_uri", "keys")
                return public_keys(await document(self._terms, uri))
        except (TimeoutError, httpx.TimeoutException):
            raise Unusable(f"no answer within {limit:g} s") from None
        except NoKeySet as error:
            raise Unusable(f"what it answers is no key set: {error}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unusable(str(error) or type(error).__name__) from error
