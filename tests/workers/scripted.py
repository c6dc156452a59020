"""A real HTTP server that gives the answers it is told to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        return str(self.body["messages"][-1]["content"])

    @property
    def first(self) -> str:
        return str(self.body["messages"][0]["content"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server does with one request."""

    text: str = ""
    status: int = 200
    wait: float = 0.0
    """Seconds before the head."""
    hang_up: bool = False
    """Close without a word."""
    completion_tokens: int = 5
    """What it claims to have written."""
    cached_tokens: int | None = None
    """What it claims to have had in its prefix cache, of 10."""
    cut_off: bool = False
    """Promise the whole body, send half of it, close."""


Script = Callable[[Asked], Reply]


def completion(text: str, *, completion_tokens: int = 5, cached_tokens: int | None = None) -> bytes:
    """The body of an unstreamed chat completion."""
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": completion_tokens,
                "total_tokens": 10 + completion_tokens,
                "prompt_tokens_details": None if cached_tokens is None else {"cached_tokens": cached_tokens},
            },
        }
    ).encode()


@dataclass
class ScriptedBackend:
    """Starts on entering, on a free port of 127.0.0.1, in a thread of its own."""

    script: Script
    asked: list[Asked] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    socket: Path | None = None
    """Of a unix socket to listen on instead of a port."""
    most_at_once: int = 0
    _running: int = 0

    def __enter__(self) -> ScriptedBackend:
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.StreamWriter] = set()
        started = threading.Event()

        async def serve() -> None:
            self._stop = asyncio.Event()
            if self.socket is not None:
                self._server = await asyncio.start_unix_server(self._converse, self.socket, limit=2**24)
            else:
                self._server = await asyncio.start_server(
                    self._converse, "127.0.0.1", 0, limit=2**24, ssl=self.tls
                )
                self.port = self._server.sockets[0].getsockname()[1]
            started.set()
            await self._stop.wait()
            self._server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            for writer in self._connections:
                writer.transport.abort()
            await asyncio.sleep(0)
            await asyncio.sleep(0.01)

        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(serve()), daemon=True)
        self._thread.start()
        assert started.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        self._loop.close()

    @property
    def url(self) -> str:
        if self.socket is not None:
            return f"unix:{self.socket}"
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                asked = Asked(path=head[0].split()[1], headers=headers, body=json.loads(body or b"{}"))
                self.asked.append(asked)
                self._running += 1
                self.most_at_once = max(self.most_at_once, self._running)
                try:
                    goes_on = await self._answer(self.script(asked), writer)
                finally:
                    self._running -= 1
                if not goes_on:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        if reply.wait:
            await asyncio.sleep(reply.wait)
        if reply.hang_up:
            return False
        body = (
            completion(
                reply.text, completion_tokens=reply.completion_tokens, cached_tokens=reply.cached_tokens
            )
            if reply.status == 200
            else b'{"error": {"message": "no"}}'
        )
        head = f"HTTP/1.1 {reply.status} X\r\ncontent-type: application/json\r\n"
        writer.write(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode())
        writer.write(body[: len(body) // 2] if reply.cut_off else body)
        await writer.drain()
        return not reply.cut_off
