"""What is asked of the socket itself, past its transport."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from collections.abc import Callable

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def has_hung_up(transport: asyncio.BaseTransport, *, half_close: bool) -> bool:
    """Whether the client's end is to be found behind what is not read for now; its side's alone is one, too,
    unless it may close that and listen on."""
    ends = select.POLLHUP | select.POLLERR
    if not half_close:
        ends |= getattr(select, "POLLRDHUP", 0)  # Linux
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), ends)
    return bool(poll.poll(0))


def take_turns(transport: asyncio.Transport, may_read_on: Callable[[], bool]) -> None:
    """Read from it again after everybody else: the loop would go on while there is more."""

    def read_on() -> None:
        if may_read_on() and not transport.is_closing():
            transport.resume_reading()

    if not transport.is_closing():
        transport.pause_reading()
        asyncio.get_running_loop().call_soon(read_on)


def reset(transport: asyncio.WriteTransport) -> None:
    """End the connection so that nobody can take it for a clean end."""
    opened: socket.socket = transport.get_extra_info("socket")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()
