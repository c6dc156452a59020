"""Every name in Redis, and how a route is written there.

Captures and routes live under `tiergate:`; the Celery queue is a list under its own name, because kombu
says so.
"""

from __future__ import annotations

import json
from typing import TypeVar

from service.fleet import Route

CAPTURES_DUE = "tiergate:captures:due"
"""Sorted set: capture id by the unix time at which a sweeper enqueues it again, unless settled."""

CAPTURES_BYTES = "tiergate:captures:bytes"
"""Hash: bytes of sealed captures, by the end of the interval (unix seconds) in which they expire."""

LEDGER_INSTANCES = "tiergate:ledger:instances"
"""Set: proxy instances that have a ledger."""

ROUTES = "tiergate:routes"
"""Hash: route as JSON, by model."""

FUTURE_SECONDS = 300.0
"""A route issued so much later than Redis' own clock says is believed by nobody."""

ROUTES_CHANGED = "tiergate:routes:changed"
"""Channel: the model whose route changed."""

SHADOW_TOKENS = "tiergate:shadow:tokens"
"""Hash: what is left in the bucket of shadow traffic (`level`), and when it was filled (`at`)."""

JUDGE_TOKENS = "tiergate:judge:tokens"
"""Hash: the bucket of the judge's questions, as that of all shadow traffic."""

META = "#"
"""Fields of a ledger hash that begin so are about the ledger, not counters."""

CLOSED = "#closed"
"""1 after the instance's last write, when it drained in order."""

RESERVED = "#reserved"
"""The instance gives its requests numbers up to this one before it writes again."""

WRITTEN_AT = "#written_at"
"""Unix seconds of the last write."""


def capture(capture_id: str) -> str:
    """String with a time to live: one sealed capture."""
    return f"tiergate:capture:{capture_id}"


def ledger(instance: str) -> str:
    """Hash: cumulative counters of one proxy instance."""
    return f"tiergate:ledger:{instance}"


def probe_tokens(model: str) -> str:
    """Hash: the bucket of one model's recall probes, as that of all shadow traffic."""
    return f"tiergate:probe:{model}:tokens"


def prompt(hashed: str) -> str:
    """String with a time to live: who sent a prompt last, as JSON."""
    return f"tiergate:prompt:{hashed}"


def worker_counts(worker: str) -> str:
    """Hash: Prometheus series of one Celery worker, added to by its children."""
    return f"tiergate:worker:{worker}:counts"


def in_doubt(instance: str) -> str:
    """Set: captures this instance counted as dropped without knowing whether Redis took them."""
    return f"tiergate:ledger:{instance}:in_doubt"


_Number = TypeVar("_Number", int, float)


def _bounded(number: _Number) -> _Number:
    """ValueError for what no clock shows and no counter reaches."""
    if not 0 <= number < 2**53:
        raise ValueError(f"{number} is out of range")
    return number


def route_to_json(route: Route) -> str:
    return json.dumps(
        {
            "model": route.model,
            "weights": dict(route.weights),
            "version": route.version,
            "issued_at": route.issued_at,
        }
    )


def route_from_json(text: str | bytes) -> Route:
    """The route; ValueError when the text is not one."""
    try:
        written = json.loads(text)
        if not isinstance(written["model"], str):
            raise TypeError("a model is named by a string")
        return Route(
            model=written["model"],
            weights={str(tier): int(weight) for tier, weight in written["weights"].items()},
            version=_bounded(int(written["version"])),
            issued_at=_bounded(float(written.get("issued_at", 0.0))),
        )
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not a route: {text[:200]!r}") from error
