"""Whether a SIGHUP says that the terminal has gone, or asks for a reload."""

from __future__ import annotations

import os


def has_terminal() -> bool:
    """Whether this process has a controlling terminal now; one that was closed is gone from all of them."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
