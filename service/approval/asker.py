"""Decisions made while a request is answered are told to come from its peer."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from service.store.decided.whence import asked_by


class Asker:
    """Around every route, those of the gates as well.

    The peer is the other end of the connection, never what a header says: behind a reverse proxy it is that
    proxy, whose own log has the rest.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        with asked_by(client[0] if client else "unix socket"):
            await self.app(scope, receive, send)
