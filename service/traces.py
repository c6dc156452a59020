"""Traces that tell lengths and no text, and prompts of those lengths made up for them. PURE.

Read are JSON lines (Mooncake: `timestamp` in ms, `input_length`, `output_length`, `hash_ids`) and CSV with a
header (Azure: `TIMESTAMP,ContextTokens,GeneratedTokens`; BurstGPT: `Timestamp,...,Request tokens,Response
tokens`), by the names of their columns. A prompt is words of about one token each, the same for the same
seed, trace and line; what a trace says was a common prefix is one.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import shake_256
from typing import Any

BLOCK_TOKENS = 512
"""Tokens of one hashed block of a prefix, as in Mooncake's traces."""
MOST_TOKENS = 4_000_000
"""Of one prompt or answer; no context window is longer."""

NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""What `errors="surrogateescape"` makes of bytes that are no UTF-8."""

_ARRIVED = ("timestamp", "arrivedat", "arrivaltime", "time")
_PROMPT = ("inputlength", "contexttokens", "prompttokens", "requesttokens", "inputtokens", "numprefilltokens")
_OUTPUT = ("outputlength", "generatedtokens", "outputtokens", "responsetokens", "numdecodetokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line of a file that could not be taken, and why."""

    line: int
    """From 1."""
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One request of a trace."""

    line: int
    arrived: float
    """Seconds from the first request of the trace."""
    prompt_tokens: int
    output_tokens: int
    prefix: tuple[int, ...] = ()
    """Names of its blocks of `BLOCK_TOKENS` tokens; two requests share those that both begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a file holds."""

    requests: tuple[Traced, ...]
    """In the order in which they arrived."""
    bad: tuple[BadLine, ...]


class NotATrace(ValueError):
    """The file as a whole is of no format that is read."""


class _Bad(ValueError):
    """Why one line is none."""


def looks_like_trace(first: str) -> bool:
    """Whether a file that begins with this line holds lengths."""
    try:
        columns = _columns(first)
    except NotATrace:
        return False
    return not any(name == "customid" for name in columns)


def read_trace(lines: Iterable[str]) -> Trace:
    """Every request of a trace and every line that is none; `NotATrace` where no line can be."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise NotATrace("the file is empty")
    rows = _json_rows([first], numbered) if first[1].lstrip().startswith("{") else _csv_rows(first, numbered)
    found: list[tuple[float, Traced]] = []
    bad: list[BadLine] = []
    for number, row in rows:
        try:
            if isinstance(row, _Bad):
                raise row
            found.append(_traced(number, row))
        except _Bad as error:
            bad.append(BadLine(line=number, reason=str(error)))
    found.sort(key=lambda each: (each[0], each[1].line))
    start = found[0][0] if found else 0.0
    return Trace(
        requests=tuple(replace(traced, arrived=at - start) for at, traced in found),
        bad=tuple(bad),
    )


Row = Mapping[str, Any]


def _json_rows(
    first: Iterable[tuple[int, str]], rest: Iterator[tuple[int, str]]
) -> Iterator[tuple[int, Row | _Bad]]:
    for lines in (first, rest):
        for number, line in lines:
            if NOT_UTF8.search(line):
                yield number, _Bad("this is not UTF-8")
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                yield number, _Bad("this is not JSON")
                continue
            if not isinstance(value, dict):
                yield number, _Bad("this is not a JSON object")
                continue
            row = {_plain(str(key)): each for key, each in value.items()}
            at = row.get("timestamp")
            if isinstance(at, int | float) and not isinstance(at, bool):
                row["timestamp"] = _float(at) / 1000  # Mooncake's are in milliseconds
            yield number, row


def _csv_rows(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Row | _Bad]]:
    columns = _columns(first[1])
    if not set(columns) & set(_ARRIVED):
        raise NotATrace(
            "the header has lengths and no time: expected a column TIMESTAMP (or arrived_at, arrival_time, "
            "time) beside them"
        )
    for number, line in rest:
        try:
            cells = next(csv.reader([line]), [])
        except csv.Error as error:
            yield number, _Bad(f"this is not CSV: {error}")
            continue
        if len(cells) != len(columns):
            yield number, _Bad(f"{len(cells)} columns, and the header has {len(columns)}")
            continue
        yield number, dict(zip(columns, (cell.strip() for cell in cells), strict=True))


def _columns(header: str) -> list[str]:
    """Names of the columns, or of the keys of one JSON line; `NotATrace` where lengths are not among them."""
    if header.lstrip().startswith("{"):
        try:
            value = json.loads(header)
        except (ValueError, RecursionError):
            raise NotATrace("the first line is not JSON") from None
        columns = [_plain(str(key)) for key in value]
    else:
        try:
            columns = [_plain(cell) for cell in next(csv.reader([header]), [])]
        except csv.Error as error:
            raise NotATrace(f"the first line is not CSV: {error}") from None
    if not set(columns) & set(_PROMPT) or not set(columns) & set(_OUTPUT):
        raise NotATrace(
            "this is no trace: expected JSON lines with input_length and output_length, or CSV whose header "
            "has ContextTokens and GeneratedTokens"
        )
    return columns


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _traced(number: int, row: Row) -> tuple[float, Traced]:
    prefix = row.get("hashids") or []
    if not isinstance(prefix, list) or not all(type(each) is int for each in prefix):
        raise _Bad("hash_ids is no list of whole numbers")
    at = _moment(_first(row, _ARRIVED, "timestamp"))
    return at, Traced(
        line=number,
        arrived=at,
        prompt_tokens=_tokens(_first(row, _PROMPT, "input_length"), "prompt", least=1),
        output_tokens=_tokens(_first(row, _OUTPUT, "output_length"), "answer", least=0),
        prefix=tuple(prefix),
    )


def _first(row: Row, names: Iterable[str], shown: str) -> Any:
    for name in names:
        if name in row:
            return row[name]
    raise _Bad(f"{shown} is missing")


def _tokens(written: Any, what: str, *, least: int) -> int:
    try:
        number = float(written)
        tokens = int(number)
    except (TypeError, ValueError, OverflowError):
        raise _Bad(f"the length of the {what} is {written!r}, not a number") from None
    if isinstance(written, bool) or tokens != number or not least <= tokens <= MOST_TOKENS:
        raise _Bad(f"the length of the {what} is {written}, not a whole number of {least} to {MOST_TOKENS}")
    return tokens


def _moment(written: Any) -> float:
    """Seconds: a number of them, or a date and time, taken for UTC where it names no zone."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        seconds = _float(written)
    else:
        text = str(written).strip()
        try:
            seconds = float(text)
        except ValueError:
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                raise _Bad(f"the time {text!r} is neither seconds nor a date and time") from None
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not -1e12 < seconds < 1e12:
        raise _Bad(f"the time {written!r} is out of range")
    return seconds


def _float(number: int | float) -> float:
    """JSON's whole numbers may be longer than any float; such a time is out of range."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def prompt_of(traced: Traced, *, seed: str) -> str:
    """A text of about `prompt_tokens` tokens, one a word; a shared prefix is the same text."""
    left = traced.prompt_tokens
    parts: list[str] = []
    for name in traced.prefix:
        if left <= 0:
            break
        parts.append(_words(f"{seed}/block/{name}", min(left, BLOCK_TOKENS)))
        left -= BLOCK_TOKENS
    if left > 0:
        parts.append(_words(f"{seed}/line/{traced.line}", left))
    return " ".join(parts)


def body_of(traced: Traced, *, model: str, seed: str, exact: bool = False) -> dict[str, Any]:
    """A chat completion request of these lengths; `exact` asks vLLM and SGLang to write to the last token."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt_of(traced, seed=seed)}],
        "max_tokens": max(1, traced.output_tokens),
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return {**body, "ignore_eos": True} if exact else body


def _words(seed: str, count: int) -> str:
    return " ".join([_WORDS[byte] for byte in shake_256(seed.encode()).digest(count)])


_CHOSEN = """
    time year people way day man thing woman life child world school state family student group
    country problem hand part place case week company system program question work number night
    point home water room mother area money story fact month lot right study book eye job word
    business issue side kind head house service friend father power hour game line end member law
    car city community name president team minute idea body information back parent face others
    level office door health person art war history party result change morning reason research girl
    guy moment air teacher force education foot boy age policy music market sense nation plan
    college interest death experience effect use class control care field development role effort
    rate heart drug show leader light voice wife whole police mind price report decision son view
    relationship town road arm difference value building action season society tax director position
    player record paper space ground form event official matter center couple site project base star
    table need court oil situation cost industry figure street image phone data picture practice
    piece land product doctor wall patient worker news test movie north love support technology step
    baby computer type attention film tree source hair look window culture chance brother energy
    period course summer plant opportunity term letter condition choice rule south husband floor
    campaign material population call hospital church risk fire future bank east sport board subject
    officer rest behavior
"""
_WORDS = (2 * _CHOSEN.split())[:256]
"""One for each byte."""
