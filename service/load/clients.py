"""Whether clients still get what they are promised, from the proxy's own metrics. Pure.

A load run on capacity that serves (`--i-own-this-capacity`) is watched by this: two looks at the proxy's page
tell how many answers of a model began in between, and how many of them later than the TTFT of its SLO. The
first look at which more than a share of them did, or at which backends failed clients more often than that,
ends the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

_FIRST_BYTE = "tiergate_proxy_first_byte_seconds"
_REQUESTS = "tiergate_proxy_requests"
LATE_SHARE = 0.05
"""An SLO is a promise about P95: so many may be late."""
LEAST_ANSWERS = 20
"""Fewer between two looks say nothing; they are added to those of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCounts:
    """What one page of the proxy's metrics has counted for one model since it started."""

    answers: float = 0.0
    """That began."""
    late: float = 0.0
    """Of those, later than the promise."""
    failed: float = 0.0
    """Requests that a backend failed: a status of 500 and up or none, cut off, or given up."""


def client_counts(page: str, model: str, *, ttft_seconds: float) -> ClientCounts:
    """From the page of the proxy's admin address.

    Buckets are coarse: late is beyond the bucket of the promise. ValueError for text that is no such page.
    """
    answers = in_time = failed = 0.0
    reached: dict[float, float] = {}
    for name, labels, value in _samples(page):
        if labels.get("model") != model:
            continue
        if name == f"{_FIRST_BYTE}_bucket":
            bound = float(labels["le"])
            reached[bound] = reached.get(bound, 0.0) + value
        elif name == f"{_REQUESTS}_total":
            failed += value if _is_failure(labels.get("status", ""), labels.get("ending", "")) else 0.0
    if reached:
        answers = max(reached.values())
        in_time = reached[min(bound for bound in reached if bound >= ttft_seconds)]
    return ClientCounts(answers=answers, late=answers - in_time, failed=failed)


def breach(before: ClientCounts, now: ClientCounts, *, late_share: float = LATE_SHARE) -> str | None:
    """Why clients do not get what they are promised; empty when they do, None when too few asked to tell."""
    answers = now.answers - before.answers
    late, failed = now.late - before.late, now.failed - before.failed
    if answers < 0:
        return None  # the proxy started anew
    asked = answers + failed
    if asked < LEAST_ANSWERS:
        return None
    if late + failed > late_share * asked:
        return (
            f"of {asked:.0f} requests of clients {late:.0f} began late and {failed:.0f} failed: "
            f"more than {late_share:.0%}"
        )
    return ""


def _is_failure(status: str, ending: str) -> bool:
    if ending == "censored":
        return False  # the client hung up
    return not status.isdigit() or int(status) >= 500 or ending in ("cut_off", "timeout")


def _samples(page: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for family in text_string_to_metric_families(page):
        if family.name in (_FIRST_BYTE, _REQUESTS):
            for sample in family.samples:
                yield sample.name, sample.labels, sample.value
