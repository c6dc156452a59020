"""The decision log as a file: JSON lines, a row each as it is stored, and the head last.

    {"action": "approve", "actor": ..., "at": ..., "detail": "{...}", "digest": ..., "model": ..., ...}
    {"head": {"seq": 1, "digest": ...}}

`detail` stays the text that the digest is over. Whoever has the file can check it without us.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from service.store.decided.chain import Break, Head, Row, canonical, find_break

_TEXTS = ("actor", "action", "model", "detail", "prev", "digest")


class NotALog(ValueError):
    """A file that is no exported decision log; says which line and why."""


def lines_of(rows: Iterable[Row], head: Head) -> Iterator[str]:
    """The file, line by line, without line ends."""
    for row in rows:
        yield canonical(asdict(row))
    yield canonical({"head": asdict(head)})


def check_lines(lines: Iterable[str], *, kept: Iterable[Head] = ()) -> tuple[Head, Break | None]:
    """The head of an exported log and where it does not hold, if anywhere. Raises NotALog."""
    ends: list[Head] = []
    last = Head(seq=0, digest="0" * 64)

    def rows() -> Iterator[Row]:
        nonlocal last
        for number, line in enumerate(lines, start=1):
            if ends:
                raise NotALog(f"line {number}: there is something after the head")
            read = _read(line, number)
            if isinstance(read, Head):
                ends.append(read)
            else:
                last = Head(seq=read.seq, digest=read.digest)
                yield read

    read = list(rows())
    found = find_break(read, ends[0] if ends else None, kept=kept)
    return (ends[0] if ends else last), found


def _read(line: str, number: int) -> Row | Head:
    try:
        document = json.loads(line)
        if set(document) == {"head"}:
            head = document["head"]
            return Head(seq=_whole(head["seq"]), digest=str(head["digest"]))
        row = Row(**document)
        if any(not isinstance(getattr(row, name), str) for name in _TEXTS) or isinstance(row.at, bool):
            raise TypeError("a field is no text")
        if not isinstance(row.at, float) or not isinstance(row.tier, str | None):
            raise TypeError("at or tier is of another type")
        _whole(row.seq)
        json.loads(row.detail)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotALog(f"line {number} is no row of a decision log: {error}") from error
    return row


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{number!r} is no sequence number")
    return number
