"""A backend that follows a script and notes, by the clock the generator uses, when it wrote what."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from service.fleet import Backend, Slo
from service.load.block import Load
from service.wire import parse_request
from tests.patience import PATIENCE

ANY_SLO = Slo(ttft_seconds=PATIENCE, tpot_seconds=PATIENCE)
"""That even a machine in trouble keeps."""
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(kw_only=True)
class Served:
    """One request as the backend saw it."""

    number: int
    path: str
    headers: dict[str, str]
    body: Any
    came: float
    writes: list[float] = field(default_factory=list)
    """When each event with output was written."""


class Turn:
    """What a script may do with one request."""

    def __init__(self, served: Served, writer: asyncio.StreamWriter) -> None:
        self.served, self._writer = served, writer
        self.hung_up = False

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        with suppress(ConnectionError):
            await self._writer.drain()

    async def chunk(self, text: str) -> None:
        told = text.encode()
        await self.send(b"%x\r\n%b\r\n" % (len(told), told))

    async def event(self, told: object, *, output: bool = False) -> None:
        """One event; with output, the time of the write is noted just before it."""
        if output:
            self.served.writes.append(time.monotonic())
        await self.chunk(f"data: {told if isinstance(told, str) else json.dumps(told)}\n\n")

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    def close(self) -> None:
        self._writer.close()
        self.hung_up = True

    def cut(self) -> None:
        self._writer.transport.abort()
        self.hung_up = True


Script = Callable[[Turn], Awaitable[None]]


def delta(**fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None}


def usage(output: int, prompt: int = 7, cached: int = 0) -> dict[str, object]:
    return {
        "choices": [],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


async def chat(turn: Turn, *, tokens: int = 3, pause: float = 0.0, told: int | None = None) -> None:
    """A chat answer of so many events, a pause before each, with a role at once and usage at the end."""
    await turn.send(STREAM)
    await turn.event(delta(role="assistant", content=""))
    for number in range(tokens):
        await asyncio.sleep(pause)
        await turn.event(delta(content=f"t{number} "), output=True)
    await turn.event(FINISH)
    await turn.event(usage(tokens if told is None else told))
    await turn.event("[DONE]")
    await turn.end()


class ScriptedBackend:
    """Counts and answers; `page` is what it tells as metrics, None for a 404, or for silence where `mute`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.page: str | Callable[[], str | None] | None = None
        self.mute = False
        self.served: list[Served] = []
        self.connections = 0
        self.url = ""
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # streams of Python 3.11 log a cancelled connection as an error
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split()
        headers = {name.lower(): told for name, _, told in (line.partition(": ") for line in lines)}
        if method == "GET":
            await self._tell(writer)
            return headers.get("connection") != "close"
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        served = Served(number=len(self.served), path=path, headers=headers, body=body, came=time.monotonic())
        self.served.append(served)
        turn = Turn(served, writer)
        await self.script(turn)
        return not turn.hung_up

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        page = self.page() if callable(self.page) else self.page
        if page is None and self.mute:
            await asyncio.Event().wait()
        status, told = ("404 Not Found", b"") if page is None else ("200 OK", page.encode())
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(told)}\r\n\r\n".encode() + told)
        await writer.drain()

    def drop_idle(self) -> None:
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def scripted(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedBackend]:
    """Listens on 127.0.0.1 while the context lasts."""
    backend = ScriptedBackend(script)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    backend.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield backend
    finally:
        server.close()
        backend.drop_idle()
        await asyncio.sleep(0)


def chat_request(text: str = "hello", **more: object) -> Any:
    """A captured request of a client that asked for no stream."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return parse_request("/v1/chat/completions", json.dumps(body).encode())


def load_of(*backends: ScriptedBackend, **more: Any) -> Load:
    """One request, an SLO that everything keeps."""
    given: dict[str, Any] = {
        "backends": tuple(Backend(url=backend.url) for backend in backends),
        "model": "served-name",
        "requests": (chat_request(),),
        "slo": ANY_SLO,
        "watch_seconds": 0.05,
        **more,
    }
    return Load(**given)
