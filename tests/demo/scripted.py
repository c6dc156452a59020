"""A small real HTTP server that plays proxy and API: what it answers, it counts as judged."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 20.0
"""Seconds that a hung answer waits before it gives up."""

Decide = Callable[[str, int], str]
"""Decision on a tier after so many judged captures."""


@dataclass(slots=True)
class Scripted:
    """What the server does and what it has seen."""

    decide: Decide = lambda tier, judged: "undecided"
    status: int = 200
    worker_stopped: bool = False
    answers: threading.Event = field(default_factory=threading.Event)
    """Completions wait for it."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def judged(self) -> int:
        return 0 if self.worker_stopped else len(self.bodies) - self.at_once

    def ledger(self) -> dict[str, Any]:
        seen = len(self.bodies) - self.at_once
        counters = {
            "seen": seen, "sampled": seen, "processed": self.judged, "expired": 0, "lost": 0,
            "in_flight": self.at_once, "waiting": seen - self.judged,
        }  # fmt: skip
        return {"balanced": True, "counters": counters}

    def verdict(self, tier: str) -> dict[str, Any]:
        decision = self.decide(tier, self.judged)
        asked = {"criterion": "refusal", "margin": 0.2, "min_pairs": 20}
        finding = {
            "criterion": "refusal", "decision": decision, "reason": "scripted", "n": self.judged,
            "conversations": self.judged, "harm": 0, "benefit": 0, "estimate": 0.0, "margin": 0.2,
            "interval": {"lower": -0.1, "upper": 0.1, "level": 0.9, "method": "e-process"},
            "log_e": {"noninferiority": 0.0, "harm": 0.0, "warn": 0.0}, "warn": False, "more_pairs": None,
            "role": "decisive", "not_shown": False, "worst_strata": [], "log_e_holm": None,
            "max_pairs": None,
        }  # fmt: skip
        return {
            "model": "smollm2", "tier": tier, "decision": decision, "reasons": [], "findings": [finding],
            "gates": {"quality": "passed", "control": "passed", "coverage": "passed",
                      "slo": "not_asked", "money": "not_asked"},
            "not_shown": False, "baseline_after_approval": "kept", "age_seconds": None,
            "thresholds": {"accept": 20.0, "harm": 60.0, "strata": 6000.0},
            "epoch": "e" * 64, "attempt": 1, "alpha": 0.05, "policy": {"criteria": [asked]},
            "production": {"in_force": False, "criteria": [{**asked, "margin": 0.01, "more_pairs": 481}]},
            "evaluated_at": "2026-01-01T12:00:00Z",
        }  # fmt: skip


@contextmanager
def serving(scripted: Scripted) -> Iterator[Scripted]:
    """The server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            tier = self.path.split("/")[-2]
            self._answer(200, scripted.ledger() if "/ledger" in self.path else scripted.verdict(tier))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with scripted.lock:
                scripted.bodies.append(body)
                scripted.at_once += 1
                scripted.most_at_once = max(scripted.most_at_once, scripted.at_once)
            scripted.answers.wait(PATIENCE)
            with scripted.lock:
                scripted.at_once -= 1
            self._answer(scripted.status, {"choices": []})

        def _answer(self, status: int, content: dict[str, Any]) -> None:
            text = json.dumps(content).encode()
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    scripted.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield scripted
    finally:
        scripted.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()
