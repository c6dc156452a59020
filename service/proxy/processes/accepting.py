"""Taking clients from a listener, except while there is no descriptor to take one with.

Without any the loop closes whoever comes, unheard, or is woken for them over and over. While nobody listens
here they wait in the listener's queue instead.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from service.proxy.processes.listening import BACKLOG
from service.proxy.traffic.shortages import want_of_descriptors

if TYPE_CHECKING:
    from service.proxy.processes.entrance import Entrance

LOOK_SECONDS = 0.25
SPARE = 8
"""Descriptors that must be free before clients are taken again."""


class Accepting:
    """`open` it, `watch_forever`, and `close` it before the end."""

    def __init__(self, entrance: Entrance, listener: socket.socket) -> None:
        self._entrance = entrance
        self._listener = listener
        """Kept by us, so that its queue stays; the loop gets copies."""
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        copy = self._listener.dup()
        try:
            if copy.family is socket.AF_UNIX:
                self._server = await loop.create_unix_server(self._entrance, sock=copy, backlog=BACKLOG)
            else:
                self._server = await loop.create_server(self._entrance, sock=copy, backlog=BACKLOG)
        except BaseException:
            copy.close()
            raise

    async def watch_forever(self) -> None:
        """Pause while descriptors have run out."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            want = want_of_descriptors(SPARE if self._server is None else 1)
            if want is not None and self._server is not None:
                self._entrance.plane.shortages.met(want)
                self.close()
            elif want is None and self._server is None:
                with suppress(OSError):
                    await self.open()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
