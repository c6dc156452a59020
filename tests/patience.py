"""Bounds of tests that mean the same on every machine."""

from __future__ import annotations

import re
import time

PATIENCE = 60.0
"""Seconds for what must come: so long that only what never comes takes it."""

_YARDSTICK_SECONDS = 0.012
"""What the yardstick takes on the machine on which bounds of processor time were set."""


def here(seconds: float) -> float:
    """A bound of processor time that was set elsewhere, on this machine, as busy as it is; generous."""
    text = b'{"a":[1,"b\\n"],' * 20_000
    started = time.process_time()
    found = sum(len(match.group()) for match in re.finditer(rb'"[^"\\]*(?:\\.[^"\\]*)*"', text))
    found += sum(each for each in text if each == 34)
    took = time.process_time() - started
    assert found
    return 3.0 * seconds * max(1.0, took / _YARDSTICK_SECONDS)
