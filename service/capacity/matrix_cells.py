"""A cell of a workload matrix, in one window or several: what was sent, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptClass:
    """Prompts of one length."""

    name: str
    """`512`, or a quantile of captured traffic such as `p90`."""
    tokens: int
    """Asked for, or of captured ones estimated."""

    def __post_init__(self) -> None:
        if not self.name or self.tokens < 1:
            raise ValueError(f"a class of prompts has a name and at least 1 token, got {self.tokens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Of one time over a window, in seconds; `None` where so many failed that there is none."""

    p50: float | None = None
    p95: float | None = None
    lower: float | None = None
    """Limits of P95 at level .95; `None` with fewer than 72 requests."""
    upper: float | None = None

    def __post_init__(self) -> None:
        for told in (self.p50, self.p95, self.lower, self.upper):
            if told is not None and not 0 <= told < math.inf:
                raise ValueError(f"times are finite and not below 0, got {told}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one class of prompts did, so many at once, under one budget; `None` is not told, never 0."""

    prompt: PromptClass
    concurrency: int
    batch_tokens: int | None = None
    """`max-num-batched-tokens` as the engine was started with, where somebody said."""
    offered: int
    passed: int
    """Met the SLO."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Requests by fault."""
    prompt_tokens: float | None = None
    """Of a prompt on average, by the engine's own count."""
    output_tokens: float | None = None
    repeated: int = 0
    """Requests that this cell had sent before: a prefix cache may know them."""
    ttft: Times = Times()
    tpot: Times = Times()
    throughput: float = 0.0
    """Output tokens a second."""
    goodput: float = 0.0
    """Those that met the SLO."""
    running: float | None = None
    """In the engine, on average."""
    waiting: float | None = None
    kv_usage: float | None = None
    """Share of the KV cache, at its fullest."""
    kv_bytes: float | None = None
    """The same in bytes, where the engine tells how many its cache has."""
    preemptions: float | None = None
    evictions: float | None = None
    """Tokens pushed out of the prefix cache."""
    prefix_rate: float | None = None
    """Of tokens, by the prefix cache."""
    memory: float | None = None
    """Bytes of host memory of the server's process."""
    invalid: tuple[str, ...] = ()
    """Why its figures must not be used; empty when they may."""

    def __post_init__(self) -> None:
        if self.concurrency < 1 or not 0 <= self.passed <= self.offered:
            raise ValueError("at least one at once, and no more requests passed than were offered")
        for told in (self.throughput, self.goodput, *self._told):
            if told is not None and not 0 <= told < math.inf:
                raise ValueError(f"figures are finite and not below 0, got {told}")
        for share in (self.kv_usage, self.prefix_rate):
            if share is not None and share > 1:
                raise ValueError(f"a share is at most 1, got {share}")

    @property
    def _told(self) -> tuple[float | None, ...]:
        return (
            *(self.prompt_tokens, self.output_tokens, self.running, self.waiting, self.kv_usage),
            *(self.kv_bytes, self.preemptions, self.evictions, self.prefix_rate, self.memory),
        )

    @property
    def row(self) -> Row:
        """The row that it is of."""
        return Row(prompt=self.prompt, batch_tokens=self.batch_tokens)

    @property
    def pass_rate(self) -> float | None:
        """`None` when nothing was offered."""
        return self.passed / self.offered if self.offered else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One class of prompts under one budget."""

    prompt: PromptClass
    batch_tokens: int | None = None

    def __str__(self) -> str:
        tokens = f"{self.prompt.tokens:,} tokens"
        named = tokens if self.prompt.name == str(self.prompt.tokens) else f"{self.prompt.name}, {tokens}"
        return named if self.batch_tokens is None else f"{named}, budget {self.batch_tokens:,}"


def usable(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Valid ones of one row by concurrency; several windows of one place are one cell."""
    valid = [each for each in cells if not each.invalid]
    counts = sorted({each.concurrency for each in valid})
    return tuple(merged([each for each in valid if each.concurrency == count]) for count in counts)


def merged(windows: Sequence[Cell]) -> Cell:
    """Windows of one place as one: rates on average, counts added up, of times and fullness the worst."""
    if len(windows) == 1:
        return windows[0]
    failed: dict[str, int] = {}
    for each in windows:
        for fault, count in each.failed.items():
            failed[fault] = failed.get(fault, 0) + count
    return replace(
        windows[-1],
        offered=sum(each.offered for each in windows),
        passed=sum(each.passed for each in windows),
        failed=failed,
        repeated=sum(each.repeated for each in windows),
        ttft=_worst([each.ttft for each in windows]),
        tpot=_worst([each.tpot for each in windows]),
        throughput=fmean(each.throughput for each in windows),
        goodput=fmean(each.goodput for each in windows),
        prompt_tokens=_told(fmean, [each.prompt_tokens for each in windows]),
        output_tokens=_told(fmean, [each.output_tokens for each in windows]),
        running=_told(fmean, [each.running for each in windows]),
        waiting=_told(fmean, [each.waiting for each in windows]),
        prefix_rate=_told(fmean, [each.prefix_rate for each in windows]),
        kv_usage=_told(max, [each.kv_usage for each in windows]),
        kv_bytes=_told(max, [each.kv_bytes for each in windows]),
        memory=_told(max, [each.memory for each in windows]),
        preemptions=_told(math.fsum, [each.preemptions for each in windows]),
        evictions=_told(math.fsum, [each.evictions for each in windows]),
    )


def _told(together: Callable[[list[float]], float], numbers: Sequence[float | None]) -> float | None:
    known = [each for each in numbers if each is not None]
    return together(known) if known else None


def _worst(times: Sequence[Times]) -> Times:
    """By P95; a window that has none, since so many failed, is worse than any."""
    return max(times, key=lambda each: math.inf if each.p95 is None else each.p95)
