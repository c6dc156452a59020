"""A real API for tests: uvicorn on a port of its own, over real stores, in front of simple backends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import uvicorn
from starlette.routing import BaseRoute

from service.approval.app import create_app
from service.approval.config import ApiConfig
from service.approval.front import FrontOf
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, Policy
from service.fleet import Backend, Ladder, Tier
from service.store.access import tokens
from service.store.redis.captures import Captures
from service.store.scored.pairs import PairRow, Unit, record
from service.store.sql.database import Database
from tests.patience import PATIENCE

MODEL = "org/model"
TIERS = ("bf16", "w8a8", "w4a16")
CRITERIA = ("structured_output", "refusal")
ENOUGH = 40
"""Clean pairs that accept under the policy below, with some to spare."""


@dataclass
class Clock:
    """Unix seconds that a test moves."""

    at: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.at


class Upstream:
    """A backend that answers by path with the status the test gives it; a status of 0 hangs."""

    def __init__(self) -> None:
        self.statuses = {"/health": 200, "/v1/models": 200}
        self.asked: list[tuple[str, str | None]] = []
        self.released = threading.Event()
        upstream = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                upstream.asked.append((self.path, self.headers.get("authorization")))
                status = upstream.statuses.get(self.path, 404)
                if status == 0:
                    upstream.released.wait(20)
                    return
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """Also releases requests that hang."""
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def ladder_over(*upstreams: Upstream, model: str = MODEL, shadow: bool = True) -> Ladder:
    """Three tiers; each upstream backs the tier of its place, the last one all that follow."""
    backends = [upstreams[min(place, len(upstreams) - 1)] for place in range(len(TIERS))]
    return Ladder(
        model=model,
        tiers=tuple(
            Tier(
                name=name,
                backends=(Backend(url=upstream.url, api_key="sk-upstream"),),
                shadow=(Backend(url=upstream.url),) if shadow else (),
                model="m",
                declares={"artifact": "sha256:" + "a" * 64} if name == "w4a16" else {},
            )
            for name, upstream in zip(TIERS, backends, strict=True)
        ),
    )


QUALITY_ONLY = {**dict.fromkeys(Gate, Asked.OFF), Gate.QUALITY: Asked.REQUIRED}
WIDE = Policy(
    criteria=tuple(
        Criterion(
            evaluator=name,
            margin=0.2,
            min_pairs=20,
            hypothesis=Hypothesis.EQUIVALENT if name == "refusal" else Hypothesis.NON_INFERIOR,
        )
        for name in CRITERIA
    ),
    gates=QUALITY_ONLY,
)


@dataclass(kw_only=True)
class LiveApi:
    """An API that runs, its stores, and one secret a scope."""

    url: str
    db: Database
    captures: Captures
    clock: Clock
    secrets: dict[str, str]
    config: ApiConfig
    upstream: Upstream
    clients: list[httpx.Client] = field(default_factory=list)

    def client(self, scope: str | None = None, **headers: str) -> httpx.Client:
        """A client with the token of a scope, or without any."""
        if scope is not None:
            headers = {"Authorization": f"Bearer {self.secrets[scope]}", **headers}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False)
        self.clients.append(client)
        return client

    def raw(self, request: bytes, *, seconds: float = 10.0) -> bytes:
        """The answer to bytes that no client library would send; empty when the connection is reset."""
        host, port = self.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=seconds) as connection:
            answer = b""
            with suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(request)
                while chunk := connection.recv(65536):
                    answer += chunk
        return answer

    def record(self, tier: str, *, harm: int = 0, benefit: int = 0, clean: int = 0, **changes: Any) -> None:
        add_pairs(self.db, tier, harm=harm, benefit=benefit, clean=clean, epoch=f"epoch-{tier}", **changes)

    def accept(self, *tiers: str) -> None:
        """Enough clean pairs on every criterion for these tiers."""
        for tier in tiers:
            self.record(tier, clean=ENOUGH)


def add_pairs(
    db: Database,
    tier: str,
    *,
    epoch: str,
    harm: int = 0,
    benefit: int = 0,
    clean: int = 0,
    arm: str = "candidate",
    criteria: Sequence[str] = CRITERIA,
    model: str = MODEL,
    stratum: str = "short",
    reason: str = "expected JSON, found prose",
    tenant: str = "",
) -> None:
    """Record independent pairs as a worker does, one capture each."""
    kinds = [(True, False)] * harm + [(False, True)] * benefit + [(True, True)] * clean
    for number, (baseline, candidate) in enumerate(kinds):
        kind = "-".join((tier, arm, epoch, *criteria, stratum, tenant))
        capture = f"{kind}-{harm}-{benefit}-{clean}-{number}"
        row = PairRow(
            outcome="scored",
            baseline_passed=baseline,
            candidate_passed=candidate,
            baseline_label="ok" if baseline else "not_json",
            candidate_label="ok" if candidate else "not_json",
            baseline_reason="" if baseline else reason,
            candidate_reason="" if candidate else reason,
        )
        units = [
            Unit(
                capture_id=capture,
                model=model,
                tier=tier,
                arm=arm,
                evaluator=criterion,
                version="1",
                epoch=epoch,
                conversation=f"conversation of {capture}",
                stratum=stratum,
                tenant=tenant,
                digest="",
                counted=True,
                rows=(row,),
                at=1_700_000_000.0 + number,
            )
            for criterion in criteria
        ]
        assert record(db, capture_id=capture, owner="test", units=units, at=1_700_000_000.0)


@contextmanager
def serving(app: Any, *, port: int = 0) -> Iterator[str]:
    """The app on a real server, with the limits that `tiergate api` sets; port 0 is a free one."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        http="h11",
        h11_max_incomplete_event_size=32 * 1024,
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        ws="none",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        deadline = time.monotonic() + PATIENCE
        while not server.started:
            assert thread.is_alive(), "the API ended"
            assert time.monotonic() < deadline, "the API did not start"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def live_api(
    db: Database,
    captures: Captures,
    *,
    policy: Policy = WIDE,
    ladder: Ladder | None = None,
    pages: Sequence[BaseRoute] = (),
    front: FrontOf | None = None,
    **config: Any,
) -> Iterator[LiveApi]:
    """An API over these stores, with a token for each scope."""
    clock, upstream = Clock(), Upstream()
    secrets = {
        scope: tokens.create(db, name=f"test-{scope}", scopes=[scope], now=clock(), expires_at=None)
        for scope in ("read", "label", "approve", "admin")
    }
    ladder = ladder or ladder_over(upstream)
    told = ApiConfig(
        ladders={ladder.model: ladder},
        policy=policy,
        evaluators=dict.fromkeys((*CRITERIA, "field_agreement"), "1"),
        **{"probe_seconds": 20.0, "epoch_of": lambda model, tier: f"epoch-{tier}", **config},
    )
    app = create_app(told, db, captures, pages=pages, front=front, now=clock)
    try:
        with serving(app) as url:
            api = LiveApi(
                url=url,
                db=db,
                captures=captures,
                clock=clock,
                secrets=secrets,
                config=told,
                upstream=upstream,
            )
            try:
                yield api
            finally:
                for client in api.clients:
                    client.close()
    finally:
        upstream.stop()
