"""Snapshots of several processes as one Prometheus page. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from service.proxy.gauges.meters import bounds_of
from service.store.redis.counters import split_ledger_key

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "tiergate_proxy_"

HELP = {
    "requests": "Requests that went to a backend, by the status it gave and how the answer ended.",
    "errors": "Answers of the proxy's own making, by x-tiergate-error code.",
    "fallbacks": "Requests served by a lower rung because every backend of their tier was down.",
    "overflows": "Requests served by a lower rung because every backend of their tier was full.",
    "retries": "Requests sent once more: the backend did not accept, or closed without a byte of an answer.",
    "client_disconnects": "Clients that left while their request was under way, by what it waited for.",
    "request_bytes": "Bytes of request bodies that were meant for backends.",
    "answer_bytes": "Bytes of answer bodies that came from backends.",
    "queue_seconds": "How long requests waited for their turn, however that ended; by those that had to.",
    "queue_refusals": "Requests turned away: the queue was full, or they had waited in it for too long.",
    "queued": "Requests that wait for their turn.",
    "limited_in_flight": "Requests of models at backends, where models or backends have limits.",
    "concurrency_limit": "How many of them a model may have there, over all processes.",
    "kv_guard_closed": "Processes that hold new requests back from the backend: its KV cache is full.",
    "kv_guard_blind": "Processes whose KV guard of the backend is open, since its metrics tell nothing.",
    "kv_guard_looks": "Looks of KV guards at the metrics of the backend, by whether they told of its cache.",
    "ejections": "Times a backend was taken out of service by a process.",
    "added_latency_seconds": "The proxy's own share: from a request's last byte until an open backend "
    "connection has it, and from the read with the answer's head until the client's connection has it.",
    "connect_seconds": "To open a connection to a backend, TLS included.",
    "first_byte_seconds": "From a request's last byte to the backend's first.",
    "answer_seconds": "From a request's last byte to the last of its whole answer.",
    "loop_lag_seconds": "How long an event waits for the event loop, by events at known times.",
    "requests_in_flight": "Requests under way.",
    "clients": "Open client connections.",
    "client_limit": "Client connections that the serving processes take at once.",
    "clients_crowded_out": "Clients that came when there was no room: the longest idle was closed for them, "
    "or they were refused.",
    "shortages": "Connections not opened or taken for want of descriptors, ports or memory of our own.",
    "capture_buffer_bytes": "Bytes of captures being recorded or waiting to be shipped.",
    "request_buffer_bytes": "Bytes of request bodies above 64 KiB that are read and not yet being answered.",
    "access_log_dropped": "Lines of the access log that were drawn and could not be written.",
    "log_lines_dropped": "Lines of the log that nobody read in time, or that could not be written.",
    "backend_usable": "Processes that send requests to the backend.",
    "backend_denied": "Processes whose health check the backend answers with 401 or 403.",
    "backend_outstanding": "Requests under way to the backend.",
    "backend_idle_connections": "Open connections to the backend without a request.",
    "backend_connections_opened": "Connections opened to the backend.",
    "backend_connections_reused": "Requests over a connection to the backend that was open already.",
    "backend_connect_failures": "Connections that the backend refused or did not accept in time.",
    "cpu_seconds": "CPU time of the serving processes, user and system.",
    "resident_memory_bytes": "Resident memory of the serving processes.",
    "open_fds": "Open file descriptors of the serving processes.",
    "max_fds": "File descriptors that the serving processes may open.",
    "tls_handshakes": "TLS handshakes of clients, by how they ended.",
    "tls_certificate_days_left": "Days until the certificate that clients are shown expires.",
    "tls_reloads": "Changed certificate files, by what became of them.",
    "config_reloads": "Configurations read again, by what became of them.",
    "processes": "Processes that serve.",
    "restarts": "Processes that ended unbidden and were started again.",
    "ledger": "The mirror ledger: requests seen, skipped, sampled, shipped and dropped, by model and reason.",
    "traffic": "Eligible requests by model and stratum.",
}

Series = tuple[str, tuple[tuple[str, str], ...]]


class Totals:
    """Sums over processes, those that are gone included where the sum may not fall."""

    def __init__(self) -> None:
        self._counters: defaultdict[Series, float] = defaultdict(float)
        self._gauges: defaultdict[Series, float] = defaultdict(float)
        self._histograms: dict[Series, tuple[list[int], float]] = {}

    def add(self, meters: Mapping[str, Any], *, gauges: bool = True) -> None:
        """Add a process's meters; without its gauges when it has ended."""
        for name, value in meters["ledger"].items():
            key = split_ledger_key(name)
            if key.what.value == "traffic":
                self._counters["traffic", (("model", key.model), ("stratum", key.detail))] += value
            else:
                labels = (("count", key.what.value), ("model", key.model), ("reason", key.detail))
                self._counters["ledger", labels] += value
        for name, labels, value in meters["counters"]:
            self._counters[name, _labels(labels)] += value
        for name, labels, value in meters["gauges"] if gauges else ():
            self._gauges[name, _labels(labels)] += value
        for name, labels, counts, total in meters["histograms"]:
            before, sum_before = self._histograms.get((name, _labels(labels)), ([0] * len(counts), 0.0))
            added = [one + other for one, other in zip(before, counts, strict=True)]
            self._histograms[name, _labels(labels)] = (added, sum_before + total)

    def set(self, name: str, value: float) -> None:
        self._gauges[name, ()] = value

    def count(self, name: str, amount: float) -> None:
        self._counters[name, ()] += amount

    def set_counter(self, name: str, value: float) -> None:
        self._counters[name, ()] = value

    def text(self) -> str:
        """The exposition format, version 0.0.4."""
        lines: list[str] = []
        _write(lines, self._counters.items(), "counter", "_total")
        _write(lines, self._gauges.items(), "gauge", "")
        last = ""
        for (name, labels), (counts, total) in sorted(self._histograms.items()):
            if name != last:
                _describe(lines, name, "histogram", "")
                last = name
            reached = 0
            for bound, count in zip((*bounds_of(name), None), counts, strict=True):
                reached += count
                limit = "+Inf" if bound is None else f"{bound:g}"
                lines.append(f"{_PREFIX}{name}_bucket{_braces((*labels, ('le', limit)))} {reached}")
            lines.append(f"{_PREFIX}{name}_sum{_braces(labels)} {total!r}")
            lines.append(f"{_PREFIX}{name}_count{_braces(labels)} {reached}")
        return "\n".join(lines) + "\n"


def _write(lines: list[str], series: Iterable[tuple[Series, float]], kind: str, suffix: str) -> None:
    last = ""
    for (name, labels), value in sorted(series):
        if name != last:
            _describe(lines, name, kind, suffix)
            last = name
        lines.append(f"{_PREFIX}{name}{suffix}{_braces(labels)} {value:.17g}")


def _describe(lines: list[str], name: str, kind: str, suffix: str) -> None:
    lines.append(f"# HELP {_PREFIX}{name}{suffix} {HELP[name]}")
    lines.append(f"# TYPE {_PREFIX}{name}{suffix} {kind}")


def _braces(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(pairs: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in pairs)
