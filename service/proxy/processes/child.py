"""One serving process, as `run` starts it: `python -m service.proxy.processes.child CONTROL LISTENER PLACE`.

It reads its configuration, and each later one, from the control socket and tells its counts there, one JSON
document a line.
When the socket ends, the parent is gone, and the process drains as if told to.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import sys
import uuid
from contextlib import suppress

import uvloop

from service.proxy.processes.accepting import Accepting
from service.proxy.processes.adoption import adopt
from service.proxy.processes.control import Frames, Orders, first_orders
from service.proxy.processes.descriptors import raise_limit
from service.proxy.processes.entrance import Entrance
from service.proxy.traffic.health import Watches
from service.proxy.traffic.plane import DataPlane
from service.proxy.traffic.telling import snapshot
from service.standard_error import StandardError, take_over
from service.store.redis.shipping import CaptureStore

TELL_SECONDS = 0.5
"""Between two snapshots for the parent."""
_ONE_READ = 256 * 1024

_log = logging.getLogger(__name__)


class Control:
    """The socket to the parent: orders come in, counts go out, and its end is the parent's."""

    def __init__(
        self, control: socket.socket, frames: Frames, plane: DataPlane, said: StandardError, number: int
    ) -> None:
        self._control = control
        self._frames = frames
        self._plane = plane
        self._said = said
        self._number = number
        """Of the orders that are followed."""
        self._wake = asyncio.Event()
        self.ended = asyncio.Event()

    def readable(self, entrance: Entrance, watches: Watches) -> None:
        try:
            received = self._control.recv(_ONE_READ)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            asyncio.get_running_loop().remove_reader(self._control)
            self.ended.set()
        for orders in self._frames.feed(received):
            try:
                adopt(orders.config, self._plane, entrance, watches)
            except Exception:
                # Whatever it is: clients are served by the configuration before.
                _log.exception("a new configuration could not be taken")
            else:
                self._number = orders.number
            self._wake.set()

    async def tell_forever(self) -> None:
        while True:
            await self.tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(TELL_SECONDS):
                    await self._wake.wait()
            self._wake.clear()

    async def tell(self) -> None:
        self._plane.meters.counters["log_lines_dropped", ()] = self._said.dropped
        counts = {**snapshot(self._plane), "orders": self._number}
        line = json.dumps(counts, separators=(",", ":")).encode() + b"\n"
        try:
            await asyncio.get_running_loop().sock_sendall(self._control, line)
        except OSError:
            _log.debug("nobody listens to the counts")


async def serve(
    orders: Orders,
    frames: Frames,
    control_socket: socket.socket,
    listener: socket.socket,
    place: int,
    said: StandardError,
) -> None:
    """Serve until told to stop, or until the parent is gone; `place` tells processes apart, from 0."""
    loop = asyncio.get_running_loop()
    config = orders.config
    store = CaptureStore.open(config.redis_url, config.broker_url)
    plane = DataPlane(config, store, instance=uuid.uuid4().hex, place=place)
    control = Control(control_socket, frames, plane, said, orders.number)
    entrance = Entrance(plane, config.tls)
    watches = Watches(plane)
    loop.add_signal_handler(signal.SIGTERM, control.ended.set)
    for number in (signal.SIGINT, signal.SIGHUP):  # they reach the parent too, which tells us what to do
        loop.add_signal_handler(number, lambda: None)
    control_socket.setblocking(False)
    loop.add_reader(control_socket, control.readable, entrance, watches)

    plane.start()
    watches.adopt(config.probe_seconds)
    accepting = Accepting(entrance, listener)
    await accepting.open()
    watching = plane.spawn(accepting.watch_forever())
    telling = plane.spawn(control.tell_forever())
    await control.ended.wait()

    loop.remove_reader(control_socket)
    watching.cancel()
    accepting.close()
    listener.close()
    entrance.close()
    watches.adopt(None)
    await plane.drain()
    telling.cancel()
    await control.tell()
    await store.aclose()


def main() -> None:
    said = take_over()
    logging.basicConfig(
        level=os.environ.get("TIERGATE_LOG_LEVEL", "WARNING").upper(),
        format="%(asctime)s proxy[%(process)d] %(levelname)s %(message)s",
        stream=said,
    )
    raise_limit()
    control = socket.socket(fileno=int(sys.argv[1]))
    listener = socket.socket(fileno=int(sys.argv[2]))
    place = int(sys.argv[3])
    frames = Frames()
    orders = first_orders(control, frames)[-1]
    # What is here now stays: the collector need not look at it again, nor after every few requests.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(orders, frames, control, listener, place, said))


if __name__ == "__main__":
    main()
