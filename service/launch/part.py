"""One long-running child: how it starts, when it counts as ready, how long it may take to stop."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Ready = Callable[[str], str | None]
"""Told what the part has logged since its start (at most its last 64 KiB); None = ready, else what is
awaited."""

PATIENCE = 2.0
"""Seconds that one look at a part may take."""


def at_once(log: str) -> str | None:
    """Ready as soon as it runs."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A command that a supervisor keeps running."""

    name: str
    """Unique; names its log file."""
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the supervisor's own environment."""
    ready: Ready = at_once
    ready_seconds: float = 60.0
    """Patience for the first start."""
    awaited: bool = True
    """Whether the next part starts only when this one is ready; the last part waits for all."""
    stop_seconds: float = 10.0
    """From SIGTERM until the whole process group is killed."""
    after_stop: Callable[[], None] | None = None
    """Called when it has stopped, while those that started before it still run."""
    advice: str = ""
    """What to do when it does not start."""


def http_ok(url: str) -> Ready:
    """Ready when a GET is answered 200."""

    def look(log: str) -> str | None:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return None if answer.status == 200 else f"GET {url} answers {answer.status}"
        except urllib.error.HTTPError as error:
            with error:
                return f"GET {url} answers {error.code}"
        except (OSError, ValueError) as error:
            return f"GET {url} fails ({getattr(error, 'reason', error)})"

    return look


def listens(host: str, port: int) -> Ready:
    """Ready when a TCP connection is accepted."""

    def look(log: str) -> str | None:
        try:
            socket.create_connection((host, port), timeout=PATIENCE).close()
        except OSError as error:
            return f"{host}:{port} accepts no connection ({error})"
        return None

    return look


def logs(text: str) -> Ready:
    """Ready when its log has the text."""

    def look(log: str) -> str | None:
        return None if text in log else f"no {text!r} in its log yet"

    return look
