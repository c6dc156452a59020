"""What a worker counts for Prometheus, and the small listener it is read from.

A prefork child cannot be scraped, so children add to a hash in Redis that belongs to their worker, and its
main process prints the hash. A child that dies loses at most the batch it was in; a worker that restarts
counts on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = logging.getLogger("tiergate.worker")

CAPTURES = "tiergate_worker_captures_total"
PAIRS = "tiergate_worker_pairs_total"
REPLAYS = "tiergate_worker_replays_total"
TOKENS = "tiergate_worker_shadow_tokens_total"
PROBE_TOKENS = "tiergate_worker_probe_prompt_tokens_total"
BATCHES = "tiergate_worker_batches_total"
GUARD_RUNS = "tiergate_guard_runs_total"
GUARD_ACTIONS = "tiergate_guard_actions_total"
BEAT_MESSAGES = "tiergate_beat_messages_total"
LOAD_BLOCKS = "tiergate_load_blocks_total"
LOAD_INVALID = "tiergate_load_invalid_blocks_total"
LOAD_REQUESTS = "tiergate_load_requests_total"
LOAD_TOKENS = "tiergate_load_tokens_total"
LOAD_LAG = "tiergate_load_lag_seconds"

HELP: Mapping[str, str] = {
    CAPTURES: "Captures by how they left the worker.",
    PAIRS: "Pairs by evaluator and by what became of them.",
    REPLAYS: "Questions put to backends by outcome: answer, or the kind of fault.",
    TOKENS: "Prompt plus answer tokens of shadow traffic.",
    PROBE_TOKENS: "Prompt tokens of recall questions, from the prefix cache or not, where engines tell.",
    BATCHES: "Batches of captures by ending: recorded, idle (all held or settled elsewhere), failed.",
    GUARD_RUNS: "Runs of the guard's tasks, done or failed; without growth beat or the guard is away.",
    GUARD_ACTIONS: "What the guard decided: roll_back, roll_back_refused, slo_lost, frozen, promote ...",
    BEAT_MESSAGES: "Messages to the guard by ending: sent, left_out (its queue is long), failed.",
    LOAD_BLOCKS: "Blocks of load by ending: done, given_back, lost, cancelled, aborted, failed.",
    LOAD_INVALID: "Blocks that are done and must not be used, by reason: generator_lag, over_saturated ...",
    LOAD_REQUESTS: "Requests of windows of open loops: due, taken_up by the generator, met (SLO).",
    LOAD_TOKENS: "Prompt and output tokens of load, warm-up included, as the servers tell.",
    LOAD_LAG: "By how much the load generator took requests up late.",
}
HISTOGRAMS = frozenset({LOAD_LAG})
"""All others are counters."""
_MICRO = 1_000_000
"""Sums of histograms are counted in millionths: children add whole numbers."""


def series(name: str, **labels: str) -> str:
    """One time series in Prometheus text form; KeyError for a name without a help text."""
    if name not in HELP:
        raise KeyError(name)
    written = ",".join(f'{label}="{_escaped(labels[label])}"' for label in sorted(labels))
    return f"{name}{{{written}}}" if written else name


def buckets(name: str, values: Sequence[float], bounds: Sequence[float]) -> dict[str, int]:
    """What these values add to a histogram with these upper bounds, rising; all of its series."""
    if name not in HISTOGRAMS:
        raise KeyError(name)
    found = {f'{name}_bucket{{le="{bound:g}"}}': sum(value <= bound for value in values) for bound in bounds}
    found[f'{name}_bucket{{le="+Inf"}}'] = found[f"{name}_count"] = len(values)
    found[f"{name}_sum"] = round(sum(values) * _MICRO)
    return found


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def page(counts: Mapping[str, int]) -> str:
    """The counts in Prometheus text format, series of one name together."""
    lines: list[str] = []
    for name, text in HELP.items():
        kind = "histogram" if name in HISTOGRAMS else "counter"
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        if name in HISTOGRAMS:
            lines += _histogram(name, counts)
            continue
        lines += [
            f"{each} {counts[each]}"
            for each in sorted(counts)
            if each == name or each.startswith(f"{name}{{")
        ]
    return "\n".join(lines) + "\n"


def _histogram(name: str, counts: Mapping[str, int]) -> list[str]:
    """Its buckets by their bounds, and what they add up to; nothing before the first value."""
    opens, closes = f'{name}_bucket{{le="', '"}'
    bounds = [each[len(opens) : -len(closes)] for each in counts if each.startswith(opens)]
    if not bounds:
        return []
    written = [opens + bound + closes for bound in sorted(bounds, key=float)]
    lines = [f"{each} {counts[each]}" for each in written]
    total, count = counts[f"{name}_sum"] / _MICRO, counts[f"{name}_count"]
    return [*lines, f"{name}_sum {total}", f"{name}_count {count}"]


class Listener:
    """Serves `/metrics`, `/healthz` and `/readyz`. Binds at once (OSError when the address is taken)."""

    def __init__(
        self, host: str, port: int, *, counts: Callable[[], Mapping[str, int]], ready: Callable[[], None]
    ) -> None:
        """`ready` raises when the worker could not work now."""
        self._server = ThreadingHTTPServer((host, port), _page_class(counts, ready))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Answer from a daemon thread; only after the pool forked."""
        self._thread.start()
        log.info("metrics on http://%s:%s/metrics", *self._server.server_address[:2])

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def close_socket(self) -> None:
        """In a forked child: it would keep the address from the next worker."""
        self._server.socket.close()


def _page_class(
    counts: Callable[[], Mapping[str, int]], ready: Callable[[], None]
) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            try:
                if self.path == "/metrics":
                    self._send(200, page(counts()), "text/plain; version=0.0.4; charset=utf-8")
                elif self.path == "/healthz":
                    self._send(200, "ok\n")
                elif self.path == "/readyz":
                    ready()
                    self._send(200, "ok\n")
                else:
                    self._send(404, "try /metrics, /healthz or /readyz\n")
            except Exception as error:
                # Whatever keeps it from answering is the answer: a probe must see a 503, not a reset. The
                # message goes to the log alone, since it may name addresses.
                log.warning("%s: not ready: %s", self.path, error)
                self._send(503, f"{type(error).__name__}; see the worker's log\n")

        def _send(self, status: int, text: str, kind: str = "text/plain; charset=utf-8") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            log.debug(format, *args)

    return Page
