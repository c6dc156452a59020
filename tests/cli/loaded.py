"""A backend that a workload matrix can load: it tells who it is and streams answers as fast as asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.engines.test_pages import vllm_metrics

TEMPLATE, WORD = 10, 2
"""Tokens that it counts: of its template, and of each word."""


class Loaded:
    """Counts what it was asked; `answers` says how, by the body of a request: `chat` or a status."""

    def __init__(self, *, model: str = "m", longest: int | None = 4096) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answers: Callable[[dict[str, Any]], int] = lambda body: 200
        self.lock = threading.Lock()
        self.listing = {"data": [{"id": model, "max_model_len": longest}]}
        loaded = self

        class Answer(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                pages = {
                    "/health": "",
                    "/v1/models": json.dumps(loaded.listing),
                    "/version": json.dumps({"version": "0.32.0"}),
                    "/metrics": vllm_metrics("auto", 46592)
                    + 'vllm:num_requests_running{engine="0"} 1\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n',
                }
                text = pages.get(self.path)
                self._whole(404 if text is None else 200, (text or "").encode(), "text/plain")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with loaded.lock:
                    loaded.bodies.append(body)
                status = loaded.answers(body)
                usage = {
                    "prompt_tokens": TEMPLATE + WORD * len(body["messages"][0]["content"].split()),
                    "completion_tokens": min(3, body.get("max_tokens", 3)),
                }
                if status != 200 or not body.get("stream"):
                    told = {"choices": [{"message": {"content": "a"}}], "usage": usage}
                    self._whole(status, json.dumps(told).encode(), "application/json")
                    return
                deltas = [{"choices": [{"index": 0, "delta": {"content": f"t{n} "}}]} for n in range(3)]
                ends = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
                events = [*deltas, *ends, {"choices": [], "usage": usage}]
                text = "".join(f"data: {json.dumps(each)}\n\n" for each in events) + "data: [DONE]\n\n"
                self._whole(200, text.encode(), "text/event-stream")

            def _whole(self, status: int, content: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """No request is under way any more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def loaded(**more: Any) -> Iterator[Loaded]:
    """It listens while the context lasts."""
    backend = Loaded(**more)
    try:
        yield backend
    finally:
        backend.stop()
