"""A workload matrix: prompts of some lengths, so many at once, under a token budget; what each cell did.

    row    the cells of one class of prompts under one budget, by concurrency
    knee   the last step of a row that gained `LEAST_GAIN` of goodput or more; the next one did not

A row is tried from the fewest at once and left after its knee: what comes later costs a window each and says
the same again. One window may be chance, so that a row is not left before both cells that make its knee have
had `WINDOWS`, and goes on where they then say otherwise. Nothing is extrapolated: a row whose last step still
gains has no knee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.capacity.matrix_cells import Cell, PromptClass, Row, usable

LEAST_GAIN = 0.05
"""Of the tokens a second that met the SLO, by which a step must exceed the best before it. Ours: no law."""
WINDOWS = 2
"""Of each of the two cells that end a row."""
MOST_TRIES = 2
"""Of a cell that the generator spoiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEnd:
    """Whether a row is over, and what it shows."""

    over: bool
    knee: int | None
    reason: str
    again: tuple[int, ...] = ()
    """Cells, by concurrency, that need another window before it is over."""


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


def row_end(cells: Sequence[Cell]) -> RowEnd:
    """What the cells of one row show so far; it is open while nothing speaks against more at once."""
    best: Cell | None = None
    for each in usable(cells):
        if best is None:
            if each.passed == 0:
                faults = ", ".join(f"{fault} {count}" for fault, count in sorted(each.failed.items()))
                told = f": {faults}" if faults else ""
                reason = f"no knee: at {each.concurrency} at once not one request keeps the SLO{told}"
                return _ended(cells, None, reason, each.concurrency)
            best = each
        elif each.goodput < (1 + LEAST_GAIN) * best.goodput:
            was, now = _rates(cells, best.concurrency), _rates(cells, each.concurrency)
            reason = (
                f"{each.concurrency} at once has {each.goodput:,.4g} tokens/s that count{_spread(now)}, "
                f"{best.concurrency} has {best.goodput:,.4g}{_spread(was)}"
            )
            if max(now) >= (1 + LEAST_GAIN) * min(was):
                reason += "; their windows overlap, so that it may be chance"
            return _ended(cells, best.concurrency, reason, best.concurrency, each.concurrency)
        else:
            best = each
    if best is None:
        return RowEnd(over=False, knee=None, reason="not reached: nothing was measured")
    reason = f"not reached: {best.concurrency} at once still gains, and no more was tried"
    return RowEnd(over=False, knee=None, reason=reason)


def _rates(cells: Sequence[Cell], count: int) -> list[float]:
    return [each.goodput for each in cells if each.concurrency == count and not each.invalid]


def _spread(rates: Sequence[float]) -> str:
    low, high = min(rates), max(rates)
    return "" if low == high else f" ({low:,.4g} to {high:,.4g})"


def _ended(cells: Sequence[Cell], knee: int | None, reason: str, *counts: int) -> RowEnd:
    """Over, once these cells have windows enough; or as far as they can have them."""
    again = tuple(count for count in counts if _needs_another(cells, count))
    if again:
        reason += "; one window each is not enough to tell"
    return RowEnd(over=not again, knee=knee, reason=reason, again=again)


def _needs_another(cells: Sequence[Cell], count: int) -> bool:
    tries = [each for each in cells if each.concurrency == count]
    spoilt = sum(bool(each.invalid) for each in tries)
    return len(tries) - spoilt < WINDOWS and spoilt < MOST_TRIES


def spoiled(cells: Sequence[Cell], concurrency: int) -> str:
    """Why a place is given up after `MOST_TRIES`; empty while it is not, or has a figure."""
    tries = [each for each in cells if each.concurrency == concurrency]
    if len(tries) < MOST_TRIES or any(not each.invalid for each in tries):
        return ""
    return "; ".join(tries[-1].invalid)


def next_spot(axes: Axes, cells: Sequence[Cell]) -> Spot | None:
    """The next cell that matters: row by row, upwards, until a row is past its knee; `None` when all are.

    What another sitting began is not measured again where this one does not ask for it.
    """
    for row in axes.rows:
        own = [each for each in cells if each.row == row]
        end = row_end(own)
        if axes.too_long(row) or end.over:
            continue
        if end.again:
            again = [count for count in end.again if count in axes.concurrencies]
            if again:
                return Spot(row=row, concurrency=again[0])
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
