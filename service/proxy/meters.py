"""What one proxy process counts: the mirror ledger, and series for Prometheus.

A snapshot is plain JSON, so that the parent can add up its processes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Any

from service.store.counters import Count, Dropped, Skipped, ledger_key

Labels = tuple[tuple[str, str], ...]
Series = tuple[str, Labels]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histograms' buckets."""


class Ledger:
    """The account of every request this process saw; cumulative, names as in `service.store.counters`."""

    __slots__ = ("_names", "counters")

    def __init__(self) -> None:
        self.counters: defaultdict[str, int] = defaultdict(int)
        self._names: dict[tuple[str, str, str], str] = {}

    def seen(self, model: str) -> None:
        self._add(Count.SEEN, model, "")

    def skipped(self, model: str, reason: Skipped) -> None:
        self._add(Count.SKIPPED, model, reason)

    def sampled(self, model: str) -> None:
        self._add(Count.SAMPLED, model, "")

    def shipped(self, model: str) -> None:
        self._add(Count.SHIPPED, model, "")

    def dropped(self, model: str, reason: Dropped) -> None:
        self._add(Count.DROPPED, model, reason)

    def traffic(self, model: str, stratum: str) -> None:
        self._add(Count.TRAFFIC, model, stratum)

    def _add(self, count: Count, model: str, detail: str) -> None:
        key = (count, model, detail)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = ledger_key(count, model, detail)
        self.counters[name] += 1


class Histogram:
    """Counts by bucket, the last one unbounded, and the sum."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.sum += seconds


class Meters:
    """Counters, gauges and histograms by name and labels, and the ledger."""

    __slots__ = ("_of_tier", "counters", "gauges", "histograms", "ledger", "requests")

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.counters: defaultdict[Series, int] = defaultdict(int)
        self.gauges: dict[Series, float] = {}
        self.histograms: defaultdict[Series, Histogram] = defaultdict(Histogram)
        self.requests: defaultdict[tuple[str, str, int | None, str], int] = defaultdict(int)
        """By model, tier, status and ending."""
        self._of_tier: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}

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
    ) -> None:
        """A request that went to a backend: seconds to its first byte, and to its end if it had one."""
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
            histograms[0].observe(first_byte)
        if whole is not None:
            histograms[1].observe(whole)

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
