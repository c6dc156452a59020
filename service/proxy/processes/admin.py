"""The admin listener: health, readiness, metrics and reloads of all processes, for whoever runs the proxy.

It asks for no credentials, so it must not be reachable by a web page that a browser on this machine shows:
a page can neither speak to it under a name of its own (DNS rebinding) nor act on it across origins.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from ipaddress import ip_address

Page = tuple[HTTPStatus, str, bytes]
"""Status, content type, body."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PATIENCE = 10.0
_MOST_HEAD = 8 * 1024
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+?)\.?)(?::\d{1,5})?")
_FROM_A_PAGE = ("origin", "sec-fetch-site")


def json_page(status: HTTPStatus, value: Mapping[str, object]) -> Page:
    return status, "application/json", json.dumps(value).encode() + b"\n"


class Admin:
    """Answers GET and HEAD for pages and POST for actions, one request per connection."""

    def __init__(
        self,
        pages: Mapping[str, Callable[[], Page]],
        actions: Mapping[str, Callable[[], Awaitable[Page]]],
        names: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`names` it goes by at the moment, besides those of this machine and addresses in digits."""
        self._pages = pages
        self._actions = actions
        self._names = names

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The callback of `asyncio.start_server(limit=...)`."""
        try:
            async with asyncio.timeout(_PATIENCE):
                method, path, headers = _read(await reader.readuntil(b"\r\n\r\n"))
                status, kind, body = await self._answer(method, path, headers)
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

    async def _answer(self, method: str, path: str, headers: list[tuple[str, str]]) -> Page:
        named = [value for name, value in headers if name == "host"]
        if len(named) > 1:
            return _refusal(HTTPStatus.BAD_REQUEST, f"{len(named)} Host headers instead of one")
        # Without one it is no browser that asks: load balancers check health in HTTP/1.0.
        if named and not self._goes_by(named[0]):
            return _refusal(
                HTTPStatus.FORBIDDEN,
                f"the admin address does not answer to the name {named[0][:100]!r}: "
                "add it to proxy.admin_hosts if it is yours",
            )
        if action := self._actions.get(path):
            if method != "POST":
                return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "POST only")
            if any(name in _FROM_A_PAGE for name, _ in headers):
                return _refusal(HTTPStatus.FORBIDDEN, "a web page cannot do this")
            return await action()
        page = self._pages.get(path)
        if page is None:
            known = sorted([*self._pages, *self._actions])
            return json_page(HTTPStatus.NOT_FOUND, {"error": "no such page", "pages": known})
        if method not in ("GET", "HEAD"):
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD only")
        return page()

    def _goes_by(self, host: str) -> bool:
        """A name that somebody else's DNS can point here is none of ours; an address is what it says."""
        found = _HOST.fullmatch(host.strip().lower())
        if found is None:
            return False
        name = found[1] or found[2]
        if name in LOOPBACK or name in {each.lower() for each in self._names()}:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


async def open_admin(admin: Admin, host: str, port: int) -> asyncio.Server:
    """OSError when the address is taken."""
    return await asyncio.start_server(admin.serve, host, port, limit=_MOST_HEAD)


def _refusal(status: HTTPStatus, why: str) -> Page:
    return json_page(status, {"error": why})


def _read(head: bytes) -> tuple[str, str, list[tuple[str, str]]]:
    """Method, path without query, headers with names in lower case; an empty method for no request line."""
    line, *lines = head[:-4].decode("latin-1").split("\r\n")
    parts = line.split(" ")
    headers = [
        (name.strip().lower(), value.strip()) for name, _, value in (each.partition(":") for each in lines)
    ]
    return (parts[0], parts[1].partition("?")[0], headers) if len(parts) == 3 else ("", "", headers)
