"""Every environment variable that Tiergate reads, and those that were probably meant to be one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from service.settings.nearest import distance, nearest

KNOWN = frozenset(
    {
        "TIERGATE_ADMIN_LISTEN",
        "TIERGATE_API_LISTEN",
        "TIERGATE_ATTEST_KEY",
        "TIERGATE_ATTEST_PUBLIC_KEY",
        "TIERGATE_BROKER_URL",
        "TIERGATE_BROKER_URL_FILE",
        "TIERGATE_CAPTURE_KEY_FILE",
        "TIERGATE_CONFIG",
        "TIERGATE_DATABASE_URL",
        "TIERGATE_DATABASE_URL_FILE",
        "TIERGATE_LEASE_SECONDS",
        "TIERGATE_LOG_LEVEL",
        "TIERGATE_PROXY_LISTEN",
        "TIERGATE_REDIS_URL",
        "TIERGATE_REDIS_URL_FILE",
        "TIERGATE_STATE_DIR",
        "TIERGATE_TOKEN",
        "TIERGATE_TOKEN_FILE",
        "TIERGATE_URL",
        "TIERGATE_VISIBILITY_SECONDS",
        "TIERGATE_WORKER_LISTEN",
    }
)
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
SLIPS = 2
"""Single-letter changes; whatever is further off is somebody else's, such as Kubernetes' TIERGATE_PORT."""


def complaints_of(environ: Mapping[str, str]) -> list[str]:
    """What is wrong with names, and with values that no part of the settings holds."""
    told = [f"{name} is no variable of Tiergate; did you mean {meant}?" for name, meant in misspelt(environ)]
    level = environ.get("TIERGATE_LOG_LEVEL", "WARNING")
    if level.upper() not in LOG_LEVELS:
        told.append(
            f"TIERGATE_LOG_LEVEL: expected {', '.join(LOG_LEVELS[:-1])} or {LOG_LEVELS[-1]}, got {level!r}"
        )
    return told


def misspelt(names: Iterable[str]) -> list[tuple[str, str]]:
    """Names a slip or two away from a known one, with that one; a longer name on purpose is left alone."""
    found = []
    for name in sorted(names):
        if name.startswith("TIERGATE") and name not in KNOWN:
            meant = nearest(name, KNOWN)
            if distance(name, meant) <= SLIPS and not name.startswith(meant):
                found.append((name, meant))
    return found
