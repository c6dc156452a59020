"""What the parent tells a serving process: its configuration, at its start and whenever it changes.

Frames of eight bytes of length and a pickled `Orders`, over a socket that only the two of them have. The
process tells its counts the other way (`child`).
"""

from __future__ import annotations

import pickle
import socket
from dataclasses import dataclass
from io import BytesIO
from types import MappingProxyType
from typing import Any

from service.proxy.config import ProxyConfig

_PREFIX = 8
_ONE_READ = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """The configuration to serve by, numbered in order."""

    number: int
    config: ProxyConfig


def framed(orders: Orders) -> bytes:
    """For `Frames` on the other side."""
    buffer = BytesIO()
    _Pickler(buffer).dump(orders)
    return len(buffer.getvalue()).to_bytes(_PREFIX, "big") + buffer.getvalue()


class Frames:
    """Bytes in, orders out, however they were cut on the way."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, received: bytes) -> list[Orders]:
        self._received += received
        complete = []
        while len(self._received) >= _PREFIX:
            end = _PREFIX + int.from_bytes(self._received[:_PREFIX], "big")
            if len(self._received) < end:
                break
            orders = pickle.loads(self._received[_PREFIX:end])
            assert isinstance(orders, Orders)
            complete.append(orders)
            del self._received[:end]
        return complete


def first_orders(control: socket.socket, frames: Frames) -> list[Orders]:
    """Wait for what a process starts with; EOFError when the parent is gone."""
    while True:
        received = control.recv(_ONE_READ)
        if not received:
            raise EOFError("the parent ended before it said what to serve")
        if orders := frames.feed(received):
            return orders


class _Pickler(pickle.Pickler):
    """Also takes read-only mappings, which frozen values like to hold."""

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, MappingProxyType):
            return dict, (dict(value),)
        return NotImplemented
