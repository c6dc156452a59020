"""From where a decision came: the part of Tiergate that wrote it, its machine, who asked over the network.

The part is told once, where a process opens its database; the asker is known for as long as one request is
answered. So nobody who decides has to remember either.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from service.store.sql.database import Database

KEY = "whence"
"""Of a decision's detail; nobody else may write it."""

_asker: ContextVar[str | None] = ContextVar("asker", default=None)


@contextmanager
def asked_by(peer: str | None) -> Iterator[None]:
    """Within the block, and in the threads and tasks begun in it, decisions are told to come from there."""
    token = _asker.set(peer)
    try:
        yield
    finally:
        _asker.reset(token)


def whence(db: Database) -> dict[str, str]:
    """`part`, `host` and, for what was asked over the network, `peer`; only what is known."""
    told: dict[str, str] = {}
    if db.part:
        told |= {"part": db.part, "host": socket.gethostname()}
    if (peer := _asker.get()) is not None:
        told["peer"] = peer
    return told
