"""What a proxy tells about itself on its metrics page."""

from __future__ import annotations

import time
import urllib.request
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

TELL_SECONDS = 0.6
"""A page is at most this old: the proxy's processes tell their parent twice a second."""


def series(admin_port: int) -> defaultdict[str, float]:
    """Sums by name; those of the ledger by what they count, as `ledger shipped`."""
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix("tiergate_proxy_")
            found[f"ledger {sample.labels['count']}" if name == "ledger_total" else name] += sample.value
    return found


def drained(admin_port: int, seconds: float = 30.0) -> float:
    """Wait until no capture is buffered any more, for so long; how many seconds it took."""
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(TELL_SECONDS)
        if not series(admin_port)["capture_buffer_bytes"]:
            break
    return time.monotonic() - began - TELL_SECONDS
