"""For tools that can set no header: `/gates/token/TOKEN/kayenta/...` is `/gates/kayenta/...` with that token.

Orca's and Kayenta's clients know a base URL and nothing else. The token is taken out of the path before
anything sees it, so that no log line and no error of ours repeats it; what stands in front may well log it.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

PATH = re.compile(r"/gates/token/(?P<token>[^/]+)(?P<rest>/.*)", re.DOTALL)
"""Whatever stands there, also what cannot be a token: the gatekeeper refuses that without repeating it."""


class TokenInPath:
    """In front of the gatekeeper, which then sees a bearer token like any other."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is not None:
            path = f"/gates{found['rest']}"
            bearer = (b"authorization", f"Bearer {found['token']}".encode())
            scope = {
                **scope,
                "path": path,
                "raw_path": path.encode(),
                "headers": [*scope["headers"], bearer],
            }
        await self.app(scope, receive, send)
