"""Recorded traces that carry times and lengths only: the Azure 2023 CSV and the Mooncake JSON lines.

    TIMESTAMP,ContextTokens,GeneratedTokens                        2023-11-16 18:15:46.6805900,374,44
    {"timestamp": 0, "input_length": 6758, "output_length": 500}   milliseconds
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TICKS = 6
"""Digits of a second that `datetime` reads; Azure writes seven."""


class NotATrace(ValueError):
    """Text that is no trace we know, with the line at which that shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRequest:
    """One request as its trace tells it."""

    at: float
    """Seconds since the trace's first."""
    prompt_tokens: int
    output_tokens: int


def read_trace(lines: Iterable[str]) -> tuple[TracedRequest, ...]:
    """The requests of a trace in the order of their times; NotATrace when it is none."""
    waiting = iter(lines)
    first = next((line for line in waiting if line.strip()), "").removeprefix("\ufeff")
    if first.lstrip().startswith("{"):
        found = list(_json_lines(first, waiting))
    elif tuple(cell.strip() for cell in first.split(",")) == _AZURE:
        found = list(_csv(waiting))
    else:
        raise NotATrace(
            f"line 1: neither the header {','.join(_AZURE)} nor a JSON object with timestamp, input_length"
            " and output_length"
        )
    if not found:
        raise NotATrace("the trace has no request")
    found.sort(key=lambda request: request.at)
    begin = found[0].at
    return tuple(
        TracedRequest(
            at=request.at - begin,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
        )
        for request in found
    )


def _csv(lines: Iterator[str]) -> Iterator[TracedRequest]:
    for number, cells in enumerate(csv.reader(lines), start=2):
        if not cells:
            continue
        try:
            stamp, prompt, output = cells
            yield TracedRequest(at=_moment(stamp), prompt_tokens=_tokens(prompt), output_tokens=_tokens(output))
        except ValueError as error:
            raise NotATrace(f"line {number}: {error}") from None


def _json_lines(first: str, lines: Iterator[str]) -> Iterator[TracedRequest]:
    for number, line in enumerate((first, *lines), start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            at = float(told["timestamp"]) / 1000
            if not math.isfinite(at):
                raise ValueError(f"a time must be finite, got {at}")
            yield TracedRequest(
                at=at,
                prompt_tokens=_tokens(told["input_length"]),
                output_tokens=_tokens(told["output_length"]),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise NotATrace(f"line {number}: {error!r}") from None


def _moment(stamp: str) -> float:
    whole, _, fraction = stamp.strip().partition(".")
    written = f"{whole}.{fraction[:_TICKS]}" if fraction else whole
    return datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()


def _tokens(told: object) -> int:
    count = int(str(told))
    if count < 0:
        raise ValueError(f"a number of tokens cannot be negative, got {count}")
    return count
