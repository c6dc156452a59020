"""Sending shadow traffic: one question put to the backends of one tier.

A replay is a request of our own: own connections, own credentials (the backend's key, never a client's),
own id, own timeouts, and a mark by which no proxy captures it again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import httpx

from evaluators.exchange import Answer, Fault, FaultKind, Outcome
from service.fleet import Backend
from service.reach import client_of, headers_of
from service.wire import parse_answer

REPLAY_MARK = "x-tiergate-replay"

REFUSES_US = frozenset({401, 403, 404, 405, 407, 408})
"""Statuses that speak of our key, address or connection; a request at fault is 400, 413 or 422."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on shadow traffic, per worker child."""

    timeout_seconds: float = 300.0
    """Of one replay, from connecting to its last byte."""
    concurrency: int = 8
    """Replays at once to one backend; a backend that declares fewer gets fewer."""
    retries: int = 3
    """Further attempts after a fault of the infrastructure."""
    pause_seconds: float = 1.0
    """Before the first of them; four times as long before each next: 1, 4, 16 s outlast a restart."""
    max_answer: int = 16 * 1024 * 1024
    """Bytes of one answer; more is a fault of the tier."""


class Shadow:
    """The connections of one worker child; all of its coroutines belong to one event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._outstanding: defaultdict[str, int] = defaultdict(int)
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._clients: dict[Backend, httpx.AsyncClient] = {}

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def put(self, backends: Sequence[Backend], path: str, body: bytes, *, stream: bool) -> Outcome:
        """The outcome of one question, after retries; faults are values. ValueError without backends."""
        if not backends:
            raise ValueError("no backend to ask")
        pause = self._limits.pause_seconds
        for _ in range(self._limits.retries):
            outcome = await self._attempt(backends, path, body, stream=stream)
            if isinstance(outcome, Answer) or not outcome.of_infrastructure:
                return outcome
            await asyncio.sleep(pause)
            pause *= 4
        return await self._attempt(backends, path, body, stream=stream)

    async def _attempt(self, backends: Sequence[Backend], path: str, body: bytes, *, stream: bool) -> Outcome:
        backend = min(backends, key=lambda one: self._outstanding[one.url])
        self._outstanding[backend.url] += 1
        try:
            async with self._slot(backend):
                return await self._ask(backend, path, body, stream=stream)
        finally:
            self._outstanding[backend.url] -= 1

    def _slot(self, backend: Backend) -> asyncio.Semaphore:
        if backend.url not in self._slots:
            most = min(self._limits.concurrency, backend.max_concurrency or self._limits.concurrency)
            self._slots[backend.url] = asyncio.Semaphore(most)
        return self._slots[backend.url]

    def _client(self, backend: Backend) -> httpx.AsyncClient:
        """A backend's own connections, in its own TLS."""
        if backend not in self._clients:
            limit = self._limits.timeout_seconds
            self._clients[backend] = client_of(
                backend,
                timeout=httpx.Timeout(limit, connect=min(10.0, limit)),
                # Shorter than the 5 s after which uvicorn (vLLM's default too) closes an idle connection.
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=3.0),
            )
        return self._clients[backend]

    async def _ask(self, backend: Backend, path: str, body: bytes, *, stream: bool) -> Outcome:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if stream else "application/json",
            "accept-encoding": "identity",
            "user-agent": "tiergate-worker",
            "x-request-id": uuid4().hex,
            **headers_of(backend),
            REPLAY_MARK: "1",
        }
        received = bytearray()
        response: httpx.Response | None = None
        try:
            async with (
                asyncio.timeout(self._limits.timeout_seconds),
                self._client(backend).stream("POST", path, content=body, headers=headers) as response,
            ):
                async for piece in response.aiter_raw():
                    received += piece
                    if len(received) > self._limits.max_answer:
                        return Fault(
                            kind=FaultKind.CUT_OFF,
                            status=response.status_code,
                            detail=f"the answer is longer than {self._limits.max_answer} bytes",
                        )
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout):
            return Fault(
                kind=FaultKind.TIMEOUT, detail=f"no complete answer in {self._limits.timeout_seconds} s"
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.WriteError) as error:
            return Fault(kind=FaultKind.UNREACHABLE, detail=f"{type(error).__name__}: {error}")
        except (httpx.ReadError, httpx.RemoteProtocolError) as error:
            if response is None:
                # It took the request and hung up: what a crash on this very prompt looks like.
                return Fault(kind=FaultKind.CUT_OFF, detail=f"{type(error).__name__}: {error}")
            return _outcome(path, response, received, complete=False)
        return _outcome(path, response, received, complete=True)


def _outcome(path: str, response: httpx.Response, body: bytearray, *, complete: bool) -> Outcome:
    outcome = parse_answer(
        path,
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        content_encoding=response.headers.get("content-encoding", ""),
        body=bytes(body),
        complete=complete,
    )
    if isinstance(outcome, Fault) and outcome.status in REFUSES_US:
        return replace(outcome, kind=FaultKind.UNREACHABLE)
    return outcome
