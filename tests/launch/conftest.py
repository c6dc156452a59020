"""Looking at real processes and asking real small servers."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

Pages = Mapping[str, tuple[int, str]]


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie that waits for its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def eventually(true: Callable[[], object], *, seconds: float = PATIENCE) -> bool:
    """Looks again and again; generous, since many tests share the machine."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)
    return bool(true())


@contextmanager
def serving(
    pages: Pages,
    *,
    api_key: str | None = None,
    tenant: str | None = None,
    tls: ssl.SSLContext | None = None,
    post: Callable[[dict[str, Any]], tuple[int, Any]] | None = None,
) -> Iterator[str]:
    """An HTTP server with these pages (status, body) on a port of its own; yields its base URL.

    `post` answers JSON with a status and JSON.
    """

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = pages.get(self.path, (404, "{}"))
            if api_key is not None and self.headers.get("authorization") != f"Bearer {api_key}":
                status, body = 401, "{}"
            if tenant is not None and self.headers.get("x-tenant") != tenant:
                status, body = 403, "{}"
            content = body.encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, answer = post(body) if post else (501, {"error": {"message": "no such thing"}})
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        if tls is not None:
            # The handshake belongs to the thread of a connection, which may fail; not to the accepting one.
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def models_page(*names: str) -> str:
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


@pytest.fixture
def said() -> list[str]:
    """What a supervisor told; pass `said.append`."""
    return []
