"""The admin listener: health, readiness and metrics of all processes, for whoever watches the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus

Page = tuple[HTTPStatus, str, bytes]
"""Status, content type, body."""

_PATIENCE = 5.0
_MOST_HEAD = 8 * 1024


def json_page(status: HTTPStatus, value: Mapping[str, object]) -> Page:
    return status, "application/json", json.dumps(value).encode() + b"\n"


class Admin:
    """Answers GET and HEAD for the given paths, one request per connection."""

    def __init__(self, pages: Mapping[str, Callable[[], Page]]) -> None:
        self._pages = pages

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The callback of `asyncio.start_server(limit=...)`."""
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path = self._asked(head)
                status, kind, body = self._page(method, path)
                answer = (
                    f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: {kind}\r\n"
                    f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
                )
                writer.write(answer.encode() + (b"" if method == "HEAD" else body))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _page(self, method: str, path: str) -> Page:
        page = self._pages.get(path)
        if page is None:
            return json_page(HTTPStatus.NOT_FOUND, {"error": "no such page", "pages": sorted(self._pages)})
        if method not in ("GET", "HEAD"):
            return json_page(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "GET and HEAD only"})
        return page()

    @staticmethod
    def _asked(head: bytes) -> tuple[str, str]:
        parts = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        return (parts[0], parts[1].partition("?")[0]) if len(parts) == 3 else ("", "")


async def open_admin(admin: Admin, host: str, port: int) -> asyncio.Server:
    """OSError when the address is taken."""
    return await asyncio.start_server(admin.serve, host, port, limit=_MOST_HEAD)
