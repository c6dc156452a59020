"""What one proxy process counts: the mirror ledger, and series for Prometheus.

A snapshot is plain JSON, so that the parent can add up its processes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from service.proxy.gauges.numbers import Numbers
from service.store.redis.counters import Count, Dropped, Skipped, ledger_key

Labels = tuple[tuple[str, str], ...]
Series = tuple[str, Labels]

SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)
"""Upper bounds of the buckets for what backends take."""
OWN_SECONDS = (
    *(0.00005, 0.0001, 0.00015, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
)
"""Of the buckets for what we take ourselves: tenths of a millisecond, and seconds when something is wrong."""
BOUNDS: Mapping[str, tuple[float, ...]] = {
    "added_latency_seconds": OWN_SECONDS,
    "connect_seconds": OWN_SECONDS,
    "loop_lag_seconds": OWN_SECONDS,
}


def bounds_of(name: str) -> tuple[float, ...]:
    """The upper bounds of a histogram's buckets but the last."""
    return BOUNDS.get(name, SECONDS)


class Ledger:
    """The account of every request this process saw; cumulative, by the names of `store.redis.counters`."""

    __slots__ = ("_arrived", "_counters", "_names", "numbers")

    def __init__(self) -> None:
        self._counters: defaultdict[str, int] = defaultdict(int)
        self._names: dict[tuple[str, str, str], str] = {}
        self._arrived: defaultdict[tuple[str, str, Skipped | None], int] = defaultdict(int)
        """Requests by model, stratum and fate: one step each, told apart only when somebody asks."""
        self.numbers = Numbers()

    @property
    def counters(self) -> dict[str, int]:
        totals = self._counters.copy()
        for (model, stratum, reason), amount in self._arrived.items():
            totals[self._name(Count.SEEN, model, "")] += amount
            if stratum:
                totals[self._name(Count.TRAFFIC, model, stratum)] += amount
            if reason is not None:
                totals[self._name(Count.SKIPPED, model, reason)] += amount
        return dict(totals)

    def arrived(self, model: str, stratum: str, reason: Skipped | None) -> None:
        """A request for a model, of a stratum if it generates, skipped for a reason if it is."""
        self._arrived[model, stratum, reason] += 1

    def skipped(self, model: str, reason: Skipped) -> None:
        self._add(Count.SKIPPED, model, reason)

    def sampled(self, model: str) -> None:
        self._add(Count.SAMPLED, model, "")

    def shipped(self, model: str, amount: int = 1) -> None:
        self._add(Count.SHIPPED, model, "", amount)

    def dropped(self, model: str, reason: Dropped, amount: int = 1) -> None:
        self._add(Count.DROPPED, model, reason, amount)

    def _add(self, count: Count, model: str, detail: str, amount: int = 1) -> None:
        self._counters[self._name(count, model, detail)] += amount

    def _name(self, count: Count, model: str, detail: str) -> str:
        key = (count, model, detail)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = ledger_key(count, model, detail)
        return name


class Histogram:
    """Counts by bucket, the last one unbounded, and the sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds


class Histograms(defaultdict[Series, Histogram]):
    """Made when first asked for, with the buckets of their name."""

    def __missing__(self, series: Series) -> Histogram:
        made = self[series] = Histogram(bounds_of(series[0]))
        return made


class Meters:
    """Counters, gauges and histograms by name and labels, and the ledger."""

    __slots__ = (
        "_of_tier",
        "answer_added",
        "answer_bytes",
        "counters",
        "gauges",
        "histograms",
        "ledger",
        "request_added",
        "request_bytes",
        "requests",
        "reused",
    )

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.counters: defaultdict[Series, float] = defaultdict(int)
        self.gauges: dict[Series, float] = {}
        self.histograms = Histograms()
        self.requests: defaultdict[tuple[str, str, int | None, str], int] = defaultdict(int)
        """By model, tier, status and ending."""
        self.reused: defaultdict[str, int] = defaultdict(int)
        """Requests over connections that were open already, by backend."""
        self.request_bytes = self.answer_bytes = 0
        self._of_tier: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}
        self.request_added = self.histograms["added_latency_seconds", (("direction", "request"),)]
        self.answer_added = self.histograms["added_latency_seconds", (("direction", "answer"),)]

    def count(self, name: str, *labels: tuple[str, str]) -> None:
        self.counters[name, labels] += 1

    def passed(
        self,
        model: str,
        tier: str,
        status: int | None,
        ending: str,
        *,
        first_byte: float | None,
        whole: float | None,
        request_added: float | None,
        answer_added: float | None,
    ) -> None:
        """A request that went to a backend: seconds to its first byte, to its end if it had one, and our own.

        What `Histogram.observe` does is written out: four calls for every request are worth the repetition.
        """
        self.requests[model, tier, status, ending] += 1
        histograms = self._of_tier.get((model, tier))
        if histograms is None:
            labels = (("model", model), ("tier", tier))
            histograms = (
                self.histograms["first_byte_seconds", labels],
                self.histograms["answer_seconds", labels],
            )
            self._of_tier[model, tier] = histograms
        if first_byte is not None:
            histogram = histograms[0]
            histogram.counts[bisect_left(SECONDS, first_byte)] += 1
            histogram.sum += first_byte
        if whole is not None:
            histogram = histograms[1]
            histogram.counts[bisect_left(SECONDS, whole)] += 1
            histogram.sum += whole
        if request_added is not None:
            histogram = self.request_added
            histogram.counts[bisect_left(OWN_SECONDS, request_added)] += 1
            histogram.sum += request_added
        if answer_added is not None:
            histogram = self.answer_added
            histogram.counts[bisect_left(OWN_SECONDS, answer_added)] += 1
            histogram.sum += answer_added

    def snapshot(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {
            "ledger": dict(self.ledger.counters),
            "counters": [
                *([name, labels, value] for (name, labels), value in self.counters.items()),
                *(
                    ["requests", _request_labels(model, tier, status, ending), value]
                    for (model, tier, status, ending), value in self.requests.items()
                ),
                *(
                    ["backend_connections_reused", (("backend", url),), value]
                    for url, value in self.reused.items()
                ),
                ["request_bytes", (), self.request_bytes],
                ["answer_bytes", (), self.answer_bytes],
            ],
            "gauges": [[name, labels, value] for (name, labels), value in self.gauges.items()],
            "histograms": [
                [name, labels, histogram.counts, histogram.sum]
                for (name, labels), histogram in self.histograms.items()
            ],
        }


def _request_labels(model: str, tier: str, status: int | None, ending: str) -> Labels:
    return (
        ("model", model),
        ("tier", tier),
        ("status", "none" if status is None else str(status)),
        ("ending", ending),
    )
