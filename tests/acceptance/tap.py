"""A tap on the wire: forwards every connection to a server and keeps a copy of what went over it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self


class Tap:
    """Listens on a port of its own; `heard` are the bytes of both directions, each connection's in order."""

    def __init__(self, port: int) -> None:
        """`port` of 127.0.0.1 is where the server listens."""
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.delay = 0.0
        """Seconds by which everything is handed on late, in either direction."""
        self._heard: list[bytearray] = []
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def heard(self) -> list[bytes]:
        """What went over the wire so far: for each connection, what was sent and then what was answered."""
        return [bytes(each) for each in list(self._heard)]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in list(self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join()
        for end in self._open:
            end.close()

    def _start(self, target: object, *given: object) -> None:
        thread = threading.Thread(target=target, args=given, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()  # nobody is there now
                continue
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                self._heard.append(bytearray())
                self._start(self._copy, source, sink, self._heard[-1])

    def _copy(self, source: socket.socket, sink: socket.socket, heard: bytearray) -> None:
        with contextlib.suppress(OSError):
            while passing := source.recv(65536):
                heard += passing
                time.sleep(self.delay)
                sink.sendall(passing)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
