"""The proxy as a whole: a small parent keeps N serving processes alive, adds up their counts, and stops them.

The parent touches no traffic. It opens the listening sockets, one per process, and holds on to them, so
that a process that died loses nobody who queued on its socket. It alone reads the configuration again, on
SIGHUP or when asked on the admin address, and the certificate when its files change; what it then tells the
processes is what a process that starts later is told.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvloop

import service
from service.proxy.config import ProxyConfig
from service.proxy.gauges.access_log import check_writable
from service.proxy.gauges.exposition import CONTENT_TYPE, Totals
from service.proxy.gauges.vitals import vitals
from service.proxy.processes.admin import Admin, Page, json_page, open_admin
from service.proxy.processes.descriptors import complaint, raise_limit
from service.proxy.processes.listening import (
    CannotListen,
    cannot_listen,
    listeners_of,
    remove_unix_listener,
    spelled,
)
from service.proxy.processes.steering import Reread, Steering
from service.proxy.processes.terminal import has_terminal
from service.standard_error import StandardError, taken_over
from service.store.redis.capture import Keyring

MOST_FALSE_STARTS = 5
"""Processes in a row that end before they serve: something is wrong that a restart does not cure."""
AFTER_DRAIN_SECONDS = 9.0
"""A process that has not ended so long after its time to drain is killed."""
SILENT_SECONDS = 10.0
"""A process that tells nothing for so long is no longer counted: it does so twice a second."""
LONGEST_PAUSE = 5.0
"""Seconds between two starts of the same process."""
_SNAPSHOT_BYTES = 64 * 1024 * 1024

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_log = logging.getLogger(__name__)


def run(config: ProxyConfig, reread: Reread | None = None) -> int:
    """Serve until SIGTERM or SIGINT; 0 after an orderly stop, 1 after another, 2 when it cannot start."""
    with taken_over() as said:
        logging.basicConfig(level=logging.INFO, format=_LOG_FORMAT, stream=said)
        return _run(config, reread, said)


def _run(config: ProxyConfig, reread: Reread | None, said: StandardError) -> int:
    fit = complaint(config.clients.connections, raise_limit())
    try:
        Keyring(current=config.capture_key_id, keys=config.capture_keys)
        check_writable(config.access_log)
        config.state_dir.mkdir(parents=True, exist_ok=True)
        listeners = listeners_of(config)
        made = None if config.listen_path is None else os.stat(config.listen_path)
    except (ValueError, OSError) as error:
        print(f"tiergate proxy: {error}", file=sys.stderr)
        return 2
    if fit is not None:
        _log.warning("%s", fit)
    # Until there is somebody to reload; the processes inherit it.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(Parent(config, listeners, reread, said).supervise())
    except CannotListen as error:
        print(f"tiergate proxy: {error}", file=sys.stderr)
        return 2
    finally:
        signal.signal(signal.SIGHUP, before)
        for listener in listeners:
            listener.close()
        if config.listen_path is not None:
            remove_unix_listener(config.listen_path, made)


@dataclass(slots=True)
class Slot:
    """The place of one serving process; who fills it may change."""

    listener: socket.socket
    process: asyncio.subprocess.Process | None = None
    snapshot: dict[str, Any] = field(default_factory=dict)
    """What the process told last; empty until it serves."""
    told: float = 0.0
    """When that was; monotonic."""
    false_starts: int = 0


class Parent:
    """`supervise` once."""

    def __init__(
        self,
        config: ProxyConfig,
        listeners: list[socket.socket],
        reread: Reread | None,
        said: StandardError,
    ) -> None:
        self._said = said
        self._steering = Steering(config, reread, self._serving)
        self._had_terminal = has_terminal()
        self._slots = [Slot(listener) for listener in listeners]
        self._stop = asyncio.Event()
        self._is_orderly = True
        self._restarts = 0
        self._retired = Totals()
        """Counts of processes that have ended: counters never fall."""

    @property
    def _config(self) -> ProxyConfig:
        return self._steering.config

    async def supervise(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop)
        config = self._config
        admin = Admin(
            {"/healthz": self._health, "/readyz": self._readiness, "/metrics": self._metrics},
            {"/reload": self._steering.reload},
            self._steering.admin_names,
        )
        try:
            page_server = await open_admin(admin, config.admin_host, config.admin_port)
        except OSError as error:
            raise cannot_listen(spelled(config.admin_host, config.admin_port), error) from error
        self._announce(page_server)
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots:
                    group.create_task(self._keep_filled(slot))
                loop.add_signal_handler(signal.SIGHUP, self._hung_up, group)
                watching = group.create_task(self._steering.watch_certificate())
                await self._stop.wait()
                watching.cancel()
                for slot in self._slots:
                    slot.listener.close()
                    self._signal(slot, signal.SIGTERM)
        finally:
            page_server.close()
        return 0 if self._is_orderly else 1

    def _announce(self, page_server: asyncio.Server) -> None:
        config = self._config
        if config.listen_path is not None:
            where = f"unix:{config.listen_path}"
        else:
            where = spelled(*self._slots[0].listener.getsockname()[:2])
            where = f"{'http' if config.tls is None else 'https'}://{where}"
        print(
            f"tiergate proxy: serving {', '.join(config.ladders)} on {where}, "
            f"admin on http://{spelled(*page_server.sockets[0].getsockname()[:2])}, "
            f"{len(self._slots)} process(es)",
            file=sys.stderr,
            flush=True,
        )

    def _told_to_stop(self) -> None:
        if self._stop.is_set():  # told twice: somebody is in a hurry
            for slot in self._slots:
                self._signal(slot, signal.SIGKILL)
        self._stop.set()

    def _hung_up(self, group: asyncio.TaskGroup) -> None:
        if self._had_terminal and not has_terminal():
            self._told_to_stop()
        elif not self._stop.is_set():
            group.create_task(self._steering.reload())

    # -- processes ---------------------------------------------------------------------------------

    async def _keep_filled(self, slot: Slot) -> None:
        pause = 0.1
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                process, control = await self._start(slot)
            except OSError as error:  # no memory, no descriptor, too many processes: the others serve on
                _log.error("a process of the proxy cannot be started: %s", error)
                await self._pause(LONGEST_PAUSE)
                continue
            listening = asyncio.get_running_loop().create_task(self._listen(slot, control))
            if self._stop.is_set():
                self._signal(slot, signal.SIGTERM)
            code = await self._wait(process)
            await listening
            served = bool(slot.snapshot)
            self._retire(slot)
            if self._stop.is_set():
                # One that had not begun to serve had nothing to finish, and no handler for the signal.
                self._is_orderly &= code == 0 or (not served and code == -signal.SIGTERM)
                return
            _log.error("process %d of the proxy ended with %d, starting another", process.pid, code)
            self._restarts += 1
            slot.false_starts = 0 if served else slot.false_starts + 1
            if slot.false_starts >= MOST_FALSE_STARTS:
                _log.error("%d processes in a row ended before they served: giving up", slot.false_starts)
                self._is_orderly = False
                self._stop.set()
                return
            pause = 0.1 if time.monotonic() - started > 30.0 else min(pause * 2, LONGEST_PAUSE)
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    async def _start(self, slot: Slot) -> tuple[asyncio.subprocess.Process, socket.socket]:
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as unless_started:
            unless_started.callback(ours.close)
            slot.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # a directory called `service` where we happen to be must not be imported
                "-m",
                "service.proxy.processes.child",
                str(theirs.fileno()),
                str(slot.listener.fileno()),
                str(self._slots.index(slot)),
                pass_fds=(theirs.fileno(), slot.listener.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": _search_path()},
            )
            unless_started.pop_all()
        ours.setblocking(False)
        return slot.process, ours

    async def _listen(self, slot: Slot, control: socket.socket) -> None:
        """Tell the process its configuration, then take its snapshots until it ends."""
        reader, writer = await asyncio.open_connection(sock=control, limit=_SNAPSHOT_BYTES)
        try:
            self._steering.follow(writer)
            while line := await reader.readline():
                slot.snapshot, slot.told = json.loads(line), time.monotonic()
        except (OSError, ValueError) as error:
            _log.warning("lost the counts of a process: %s", error)
        finally:
            self._steering.followers.discard(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        """The exit code; a process that outstays its time to drain is killed."""
        waiting = asyncio.get_running_loop().create_task(process.wait())
        stopping = asyncio.get_running_loop().create_task(self._stop.wait())
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not waiting.done():
            await asyncio.wait({waiting}, timeout=self._config.drain_seconds + AFTER_DRAIN_SECONDS)
        if not waiting.done():
            _log.error("process %d did not stop in time and is killed", process.pid)
            process.kill()
        return await waiting

    def _retire(self, slot: Slot) -> None:
        if slot.snapshot:
            self._retired.add(slot.snapshot["meters"], gauges=False)
        slot.snapshot = {}
        slot.process = None

    def _signal(self, slot: Slot, number: signal.Signals) -> None:
        if slot.process is not None and slot.process.returncode is None:
            with suppress(ProcessLookupError):
                slot.process.send_signal(number)

    # -- pages -------------------------------------------------------------------------------------

    def _serving(self) -> list[dict[str, Any]]:
        return [slot.snapshot for slot in self._slots if slot.snapshot]

    def _alive(self) -> list[dict[str, Any]]:
        """Of those that have told something lately: one that hangs serves nobody, whatever it said."""
        lately = time.monotonic() - SILENT_SECONDS
        return [slot.snapshot for slot in self._slots if slot.snapshot and slot.told > lately]

    def _health(self) -> Page:
        alive = len(self._alive())
        status = HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE
        return json_page(status, {"processes": alive, "wanted": len(self._slots)})

    def _readiness(self) -> Page:
        """Ready when a process serves and every model has a backend."""
        snapshots = self._alive()
        models = {
            model: any(snapshot["models"].get(model) for snapshot in snapshots)
            for model in self._config.ladders
        }
        is_ready = bool(snapshots) and all(models.values()) and not self._stop.is_set()
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        routes = snapshots[0]["routes"] if snapshots else {}
        return json_page(
            status,
            {"ready": is_ready, "draining": self._stop.is_set(), "models": models, "routes": routes},
        )

    def _metrics(self) -> Page:
        totals = deepcopy(self._retired)
        totals.add(self._steering.snapshot())
        for snapshot in self._serving():
            totals.add(snapshot["meters"])
        totals.set("processes", len(self._serving()))
        for name, value in vitals(slot.process.pid for slot in self._slots if slot.process).items():
            totals.set(name, value)
        totals.set_counter("restarts", self._restarts)
        totals.count("log_lines_dropped", self._said.dropped)
        return HTTPStatus.OK, CONTENT_TYPE, totals.text().encode()


def _search_path() -> str:
    """Where the child finds the same code as we did, then whatever the environment says."""
    ours = str(Path(service.__file__).resolve().parents[1])
    return os.pathsep.join(part for part in (ours, os.environ.get("PYTHONPATH", "")) if part)
