"""Names of the mirror ledger's counters, such as `skipped|qwen3-32b|too_large`.

    seen = skipped{reason} + sampled        sampled = shipped + dropped{reason}

Parts are percent-encoded, so that a model called `a|b` stays one part. Loads no SQL: the proxy counts
with it.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote


class Count(StrEnum):
    """What a proxy counts."""

    SEEN = "seen"
    SKIPPED = "skipped"
    SAMPLED = "sampled"
    SHIPPED = "shipped"
    DROPPED = "dropped"
    TRAFFIC = "traffic"
    """Requests by stratum: what the evidence has to cover."""


class Skipped(StrEnum):
    """Why a request was not captured."""

    NOT_GENERATION = "not_generation"
    OPTED_OUT = "opted_out"
    NOT_SAMPLED = "not_sampled"
    TOO_LARGE = "too_large"
    STATEFUL = "stateful"
    REMOTE_MEDIA = "remote_media"
    TIER_UNKNOWN = "tier_unknown"
    REFUSED = "refused"
    """A limit of its model turned it away, or its client left before its turn: no backend saw it."""


class Dropped(StrEnum):
    """Why a sampled exchange never became a capture."""

    BUFFER_FULL = "buffer_full"
    STORE_DOWN = "store_down"
    STORE_FULL = "store_full"


_DETAILED: dict[Count, type[StrEnum] | None] = {
    Count.SKIPPED: Skipped,
    Count.DROPPED: Dropped,
    Count.TRAFFIC: None,
}


class LedgerKey(NamedTuple):
    """One counter, taken apart; `detail` is a reason or a stratum, empty for the others."""

    what: Count
    model: str
    detail: str = ""


def ledger_key(count: Count, model: str, detail: str = "") -> str:
    """The counter's name; ValueError when the detail is missing, unknown or out of place."""
    if count not in _DETAILED:
        if detail:
            raise ValueError(f"{count} has no detail, got {detail!r}")
        return f"{count}|{quote(model, safe='')}"
    reasons = _DETAILED[count]
    if reasons is not None:
        reasons(detail)
    elif not detail:
        raise ValueError(f"{count} needs a stratum")
    return f"{count}|{quote(model, safe='')}|{quote(detail, safe='')}"


@lru_cache(maxsize=4096)
def split_ledger_key(key: str) -> LedgerKey:
    """The inverse of `ledger_key`; ValueError for anything else."""
    count, *parts = key.split("|")
    known = Count(count)
    if len(parts) != (2 if known in _DETAILED else 1):
        raise ValueError(f"not a ledger counter: {key!r}")
    model, detail = unquote(parts[0]), unquote(parts[1]) if len(parts) == 2 else ""
    if ledger_key(known, model, detail) != key:
        raise ValueError(f"not a ledger counter: {key!r}")
    return LedgerKey(known, model, detail)
