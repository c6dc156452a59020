"""The chain of the decision log by itself: rows in, the first one that does not fit out. No SQL.

    digest = sha256(canonical JSON of seq, at, actor, action, model, tier, detail, prev)

Canonical JSON is ASCII with sorted keys, no spaces and no NaN. `detail` enters as the text that is stored:
not even its spaces can change. A database and what was exported from it are checked by the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

GENESIS = "0" * 64
"""`prev` of the first row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row as it is stored."""

    seq: int
    """1 for the first, then without a gap."""
    at: float
    """Unix seconds."""
    actor: str
    action: str
    model: str
    tier: str | None
    detail: str
    """Canonical JSON."""
    prev: str
    """Digest of the row before."""
    digest: str

    @property
    def true_digest(self) -> str:
        """What its digest has to be."""
        body = asdict(self)
        del body["digest"]
        return sha256(canonical(body).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last row: whoever keeps its digest elsewhere can tell whether what is there now grew out of it."""

    seq: int
    """0 of an empty log."""
    digest: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """Where a chain does not hold, and why."""

    seq: int
    """Of the first row that does not fit; one past the last: rows were cut off."""
    why: str

    def __str__(self) -> str:
        return f"row {self.seq}: {self.why}"


def canonical(document: Mapping[str, Any]) -> str:
    """The one text of a document; ValueError when it is not JSON."""
    try:
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"the detail of a decision must be JSON: {error}") from error


def find_break(rows: Iterable[Row], head: Head | None, *, kept: Iterable[Head] = ()) -> Break | None:
    """The first row that does not fit; None when the whole chain holds.

    `head` is what the log says of its own end, None when it says nothing. `kept` are heads that were kept
    elsewhere: a chain that was made anew as a whole fits itself, and not them.
    """
    outside = {each.seq: each.digest for each in kept}
    outside.pop(0, None)
    last = Head(seq=0, digest=GENESIS)
    for row in rows:
        if found := _misfit(row, last):
            return found
        if outside.pop(row.seq, row.digest) != row.digest:
            return Break(seq=row.seq, why="it is not the row whose digest was kept: the log was written anew")
        last = Head(seq=row.seq, digest=row.digest)
    return break_at_end(last, head, missing=outside)


def follow(rows: Iterable[Row], after: Head) -> tuple[Head, Break | None]:
    """The last row that fits behind one that is known to, and the first that does not, if any."""
    last = after
    for row in rows:
        if found := _misfit(row, last):
            return last, found
        last = Head(seq=row.seq, digest=row.digest)
    return last, None


def break_at_end(last: Head, head: Head | None, *, missing: Collection[int] = ()) -> Break | None:
    """Where the log does not end as its head says; `missing` rows are known to have been there."""
    if head is None:
        if last.seq == 0 and not missing:
            return None
        return Break(seq=max(last.seq, 1), why="the log does not say where it ends")
    if head.seq > last.seq or missing:
        return Break(
            seq=last.seq + 1, why=f"it is missing: rows up to {max([head.seq, *missing])} were there"
        )
    if head != last:
        return Break(seq=last.seq, why="it is no part of the log: the log ends before it, or otherwise")
    return None


def _misfit(row: Row, last: Head) -> Break | None:
    """Why a row does not follow on the last one."""
    seq = last.seq + 1
    if row.seq != seq:
        missing = row.seq > seq
        return Break(
            seq=seq, why="it is missing or moved" if missing else f"row {row.seq} is out of its place"
        )
    if row.prev != last.digest:
        return Break(seq=seq, why="it does not follow from the row before it")
    if row.digest != row.true_digest:
        return Break(seq=seq, why="it was altered: its digest is not that of what it says")
    return None
