"""How long a dead worker's work stays with it, how long the broker waits for an acknowledgement, and how long
a task of the guard may go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

LEASE_SECONDS = "TIERGATE_LEASE_SECONDS"
VISIBILITY_SECONDS = "TIERGATE_VISIBILITY_SECONDS"
"""Only a net under the leases, which bring work back in minutes: messages delivered again find it held."""
LONGEST = 86_400.0
RUN_SECONDS = 4.0
"""After which a run of the guard begins nothing more: what harms clients is looked for by the same child."""


def for_a_while(clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Whether a run that begins now may begin something more."""
    end = clock() + RUN_SECONDS
    return lambda: clock() < end


def lease_seconds(environ: Mapping[str, str]) -> float:
    """From the environment; SystemExit for what is no number of seconds."""
    return _seconds(environ, LEASE_SECONDS, "120")


def visibility_seconds(environ: Mapping[str, str]) -> float:
    """From the environment; SystemExit for what is no number of seconds."""
    return _seconds(environ, VISIBILITY_SECONDS, "3600")


def _seconds(environ: Mapping[str, str], name: str, default: str) -> float:
    given = environ.get(name, default)
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST:
        raise SystemExit(f"{name}={given}: expected a number of seconds, at most a day")
    return seconds
