"""A workload matrix: prompts of some lengths, so many at once, under a token budget; what each cell did.

    row    the cells of one class of prompts under one budget, by concurrency
    knee   the last step of a row that gained `LEAST_GAIN` of goodput or more; the next one did not

A row is tried from the fewest at once and left after its knee: what comes later costs a window each and says
the same again. Nothing is extrapolated: a row whose last step still gains has no knee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LEAST_GAIN = 0.05
"""Of the tokens a second that met the SLO, by which a step must exceed the best before it. Ours: no law."""
MOST_TRIES = 2
"""Of a cell that the generator spoiled."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEnd:
    """Whether a row is over, and what it shows."""

    over: bool
    knee: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """What is asked for in one sitting; one budget, since an engine has one at a time."""

    prompts: tuple[PromptClass, ...]
    concurrencies: tuple[int, ...]
    """Rising."""
    batch_tokens: int | None = None
    longest: int | None = None
    """Tokens of prompt and answer that the engine takes; `None`: not told."""
    output_tokens: int = 128

    def __post_init__(self) -> None:
        if not self.prompts or len({each.name for each in self.prompts}) != len(self.prompts):
            raise ValueError("classes of prompts are some, each once")
        rising = tuple(sorted(set(self.concurrencies)))
        if not rising or rising != self.concurrencies or rising[0] < 1:
            raise ValueError(f"concurrencies rise from at least 1, got {list(self.concurrencies)}")
        if self.output_tokens < 2:
            raise ValueError("an answer has at least 2 tokens: with fewer there is no TPOT")
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise ValueError(f"a budget has at least 1 token, got {self.batch_tokens}")

    @property
    def rows(self) -> tuple[Row, ...]:
        """In the order in which they are tried."""
        return tuple(Row(prompt=each, batch_tokens=self.batch_tokens) for each in self.prompts)

    def too_long(self, row: Row) -> str:
        """Why the engine takes no such prompt; empty when it does, or does not tell."""
        needed = row.prompt.tokens + self.output_tokens
        if self.longest is None or needed <= self.longest:
            return ""
        return f"prompt and answer of {needed:,} tokens are more than the engine's {self.longest:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """The cell that is tried next."""

    row: Row
    concurrency: int


def usable(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Valid ones of one row by concurrency; of several at one place the last."""
    latest = {each.concurrency: each for each in cells if not each.invalid}
    return tuple(latest[count] for count in sorted(latest))


def row_end(cells: Sequence[Cell]) -> RowEnd:
    """What the cells of one row show so far; it is open while nothing speaks against more at once."""
    best: Cell | None = None
    for each in usable(cells):
        if best is None:
            if each.passed == 0:
                faults = ", ".join(f"{fault} {count}" for fault, count in sorted(each.failed.items()))
                told = f": {faults}" if faults else ""
                reason = f"no knee: at {each.concurrency} at once not one request keeps the SLO{told}"
                return RowEnd(over=True, knee=None, reason=reason)
            best = each
        elif each.goodput < (1 + LEAST_GAIN) * best.goodput:
            reason = (
                f"{each.concurrency} at once has {each.goodput:,.4g} tokens/s that count, "
                f"{best.concurrency} has {best.goodput:,.4g}"
            )
            return RowEnd(over=True, knee=best.concurrency, reason=reason)
        else:
            best = each
    if best is None:
        return RowEnd(over=False, knee=None, reason="not reached: nothing was measured")
    reason = f"not reached: {best.concurrency} at once still gains, and no more was tried"
    return RowEnd(over=False, knee=None, reason=reason)


def spoiled(cells: Sequence[Cell], concurrency: int) -> str:
    """Why a place is given up after `MOST_TRIES`; empty while it is not, or has a figure."""
    tries = [each for each in cells if each.concurrency == concurrency]
    if len(tries) < MOST_TRIES or any(not each.invalid for each in tries):
        return ""
    return "; ".join(tries[-1].invalid)


def next_spot(axes: Axes, cells: Sequence[Cell]) -> Spot | None:
    """The next cell that matters: row by row, upwards, until a row is past its knee; `None` when all are."""
    for row in axes.rows:
        own = [each for each in cells if each.row == row]
        if axes.too_long(row) or row_end(own).over:
            continue
        for concurrency in axes.concurrencies:
            if spoiled(own, concurrency):
                break
            if not any(each.concurrency == concurrency and not each.invalid for each in own):
                return Spot(row=row, concurrency=concurrency)
    return None


def told_of(axes: Axes, cells: Sequence[Cell], row: Row) -> RowEnd:
    """What is said of a row: its knee, why it has none, or why it was not tried."""
    own = [each for each in cells if each.row == row]
    if reason := axes.too_long(row):
        return RowEnd(over=True, knee=None, reason=f"not tried: {reason}")
    end = row_end(own)
    if end.over:
        return end
    stuck = next((why for count in axes.concurrencies if (why := spoiled(own, count))), "")
    return RowEnd(over=True, knee=None, reason=f"not reached: {stuck}") if stuck else end
