"""One serving process: `python -m service.proxy.child CONTROL_FD LISTENER_FD`, as `run` starts it.

It reads its configuration from the control socket and tells its counts there, one JSON document a line.
When the socket ends, the parent is gone, and the process drains as if told to.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import pickle
import signal
import socket
import sys
import uuid

import uvloop

from service.proxy.config import ProxyConfig
from service.proxy.downstream import ClientConnection
from service.proxy.health import watch_forever
from service.proxy.listening import BACKLOG
from service.proxy.plane import DataPlane
from service.store.shipping import CaptureStore

TELL_SECONDS = 0.5
"""Between two snapshots for the parent."""

_log = logging.getLogger(__name__)


def receive_config(control: socket.socket) -> ProxyConfig:
    """The configuration, as `send_config` wrote it."""
    with control.makefile("rb") as reader:
        size = int.from_bytes(reader.read(8), "big")
        config = pickle.loads(reader.read(size))
    assert isinstance(config, ProxyConfig)
    return config


async def serve(config: ProxyConfig, control: socket.socket, listener: socket.socket) -> None:
    """Serve until told to stop, or until the parent is gone."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C reaches the parent too, which tells us
    control.setblocking(False)
    loop.add_reader(control, _parent_spoke, control, stop)

    store = CaptureStore.open(config.redis_url, config.broker_url)
    plane = DataPlane(config, store, instance=uuid.uuid4().hex)
    plane.start()
    watches = []
    if config.probe_seconds is not None:
        watches = [plane.spawn(watch_forever(plane, each, config.probe_seconds)) for each in plane.servers]
    server = await loop.create_server(lambda: ClientConnection(plane), sock=listener, backlog=BACKLOG)
    telling = plane.spawn(_tell_forever(plane, control))
    await stop.wait()

    loop.remove_reader(control)
    server.close()
    for watch in watches:
        watch.cancel()
    await plane.drain()
    telling.cancel()
    await _tell(plane, control)
    await store.aclose()


async def _tell_forever(plane: DataPlane, control: socket.socket) -> None:
    while True:
        await _tell(plane, control)
        await asyncio.sleep(TELL_SECONDS)


async def _tell(plane: DataPlane, control: socket.socket) -> None:
    line = json.dumps(plane.snapshot(), separators=(",", ":")).encode() + b"\n"
    try:
        await asyncio.get_running_loop().sock_sendall(control, line)
    except OSError:
        _log.debug("nobody listens to the counts")


def _parent_spoke(control: socket.socket, stop: asyncio.Event) -> None:
    """The parent says nothing after the configuration: what can be read is the end."""
    try:
        if control.recv(4096):
            return
    except BlockingIOError:
        return
    except OSError:
        pass
    stop.set()


def main() -> None:
    logging.basicConfig(
        level=os.environ.get("TIERGATE_LOG_LEVEL", "WARNING").upper(),
        format="%(asctime)s proxy[%(process)d] %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    control = socket.socket(fileno=int(sys.argv[1]))
    listener = socket.socket(fileno=int(sys.argv[2]))
    config = receive_config(control)
    # What is here now stays: the collector need not look at it again, nor after every few requests.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(config, control, listener))


if __name__ == "__main__":
    main()
