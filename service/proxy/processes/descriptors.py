"""How many files a process may have open, and how many of them clients may have."""

from __future__ import annotations

import resource
from contextlib import suppress

MOST = 2**20
"""As many as anybody needs; beyond it a limit is as good as none."""
ASIDE = 64
"""For listeners, logs, Redis, the control socket, and to turn clients away with."""
FEW = 4096
"""A limit up to here is worth a word."""


def raise_limit() -> int:
    """Lift the soft limit to the hard one, so far as that is of use; the descriptors a process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS has a limit that it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return descriptors()


def descriptors() -> int:
    """How many files this process may have open at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def places(wanted: int | None, of: int) -> int:
    """Clients of a process that may have `of` descriptors: as many as wanted, if they fit.

    By default one for each client and one for the backend that answers it.
    """
    room = of - ASIDE
    return max(1, room // 2 if wanted is None else min(wanted, room))


def complaint(wanted: int | None, of: int) -> str | None:
    """What somebody should hear who starts a proxy with such a limit."""
    fit = places(wanted, of)
    if (wanted or 0) > fit:
        return (
            f"proxy.clients.connections is {wanted}, but {fit} fit into a process that may open {of} files: "
            "raise the hard limit (LimitNOFILE, ulimit -Hn)"
        )
    if wanted is None and of <= FEW:
        return (
            f"a process may open {of} files, so it takes {fit} clients at once: "
            "raise the hard limit (LimitNOFILE, ulimit -Hn)"
        )
    return None
