"""What a proxy should let in, by what its backends' memory holds: limits, a line, a level of the KV guard.

Backends of one kind, each with the cache that a budget leaves. A request holds its prompt and its answer; how
many are at work at once follows from a typical one, what is refused from the longest, and how many may wait
from Little's law: in a time T, concurrency x T / seconds of a request get a place. Who goes first follows
from how many typical ones take the room of one longest; a rung below takes what is too much, if it has room.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.capacity.initial import NothingFits
from service.capacity.memory import Budget, Cache

LEAST_AHEAD = 2
"""Typical requests by one longest, below which nobody needs to go first."""
ESTIMATE = 1.25
"""A proxy has no tokenizer: four bytes for a token are a quarter off either way, in natural text."""
DEFAULT_PATIENCE = 30.0
"""Seconds of waiting, where nothing is told of the SLO."""
LEAST_LEVEL, MOST_LEVEL = 0.50, 0.95
LEAST_STEP = 0.05
"""Between the level that closes a KV guard and the one that opens it: less is the noise of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Requests as they are expected; tokens, seconds."""

    longest_prompt: int
    longest_answer: int
    typical: int
    """Prompt and answer of a request in the middle."""
    backends: int = 1
    seconds: float | None = None
    """That a typical request takes at that concurrency, from a measurement; `None`: not known."""
    ttft_seconds: float | None = None
    """The SLO of the first token; `None`: there is none."""

    def __post_init__(self) -> None:
        if min(self.longest_prompt, self.longest_answer, self.typical, self.backends) < 1:
            raise ValueError("a prompt and an answer have at least 1 token, and at least 1 backend serves")
        if self.typical > self.longest:
            raise ValueError(f"a typical request has no more than the longest, {self.longest:,} tokens")
        if any(each is not None and not 0 < each < math.inf for each in (self.seconds, self.ttft_seconds)):
            raise ValueError("times are above 0 seconds")

    @property
    def longest(self) -> int:
        """Prompt and answer together."""
        return self.longest_prompt + self.longest_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One key of a model's `limits`."""

    name: str
    value: str
    """As the configuration writes it."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """The next rung below, whose cache may take what the tier cannot."""

    name: str
    budget: Budget
    cache: Cache
    backends: int = 1

    def __post_init__(self) -> None:
        if self.backends < 1:
            raise ValueError("a rung below has at least 1 backend")


def admission(
    budget: Budget, cache: Cache, expected: Expected, below: Below | None = None
) -> tuple[Rule, ...]:
    """Limits in the order of a configuration; `NothingFits` where one longest request has no room."""
    known, longest = cache.shape.context, expected.longest
    if known is not None and longest > known:
        raise NothingFits(f"the longest request has {longest:,} tokens, the model was made for {known:,}")
    if not cache.concurrency(longest):
        lacking = cache.sequence_bytes(longest) - cache.memory + max(0, budget.lacking)
        raise NothingFits(f"one request of {longest:,} tokens lacks {lacking:,} bytes of the cache")
    relief, fallback = _fallback(below, expected)
    each, held = _at_once(budget, cache, expected)
    more, held_more = (0, "") if relief is None else _at_once(relief.budget, relief.cache, expected)
    concurrency = each * expected.backends + (0 if relief is None else more * relief.backends)
    told = f"{_each_of(expected.backends)} {held}"
    if relief is not None:
        told += f"; of {relief.name} {_each_of(relief.backends)} {held_more}"
    patience, why_patience = _patience(expected)
    queue, why_queue = _queue(expected, concurrency, patience)
    opens, closes, why_level = _levels(cache, expected)
    return (
        Rule(name="concurrency", value=str(concurrency), reason=told),
        Rule(name="queue", value=str(queue), reason=why_queue),
        Rule(name="queue_timeout", value=_duration(patience), reason=why_patience),
        Rule(
            name="max_prompt_tokens",
            value=str(math.ceil(expected.longest_prompt * ESTIMATE)),
            reason=f"{expected.longest_prompt:,} and a quarter: the proxy estimates 4 bytes for a token, and "
            "the engine has the last word",
        ),
        Rule(
            name="max_output_tokens",
            value=str(expected.longest_answer),
            reason="the longest answer that the budget has room for",
        ),
        Rule(
            name="require_max_tokens",
            value="true",
            reason="an answer without a limit may run to the end of the context, and hold its blocks",
        ),
        Rule(
            name="kv_guard",
            value=f"{{above: {_percent(closes)}, below: {_percent(opens)}}}",
            reason=why_level,
        ),
        _priority(cache, expected),
        fallback,
    )


def _each_of(backends: int) -> str:
    return "one backend" if backends == 1 else f"each of {backends} backends"


def _priority(cache: Cache, expected: Expected) -> Rule:
    """Where a longest takes the room of several typical ones, so many of those go first."""
    many = cache.sequence_bytes(expected.longest) // cache.sequence_bytes(expected.typical)
    if many < LEAST_AHEAD:
        return Rule(
            name="priority",
            value="null",
            reason="a longest request takes hardly more room than a typical one: each in its turn",
        )
    return Rule(
        name="priority",
        value=f"{{short: {math.ceil(expected.typical * ESTIMATE)}, ahead: {many}}}",
        reason="prompts of no more than a typical request go first; a longest takes the room of "
        f"{many:,}, and after so many has its turn",
    )


def _fallback(below: Below | None, expected: Expected) -> tuple[Below | None, Rule]:
    """The rung below, where it takes what is too much, and what is said of it."""
    value, relief = "line", None
    if below is None:
        reason = "no rung below is told: what finds the tier full waits"
    elif not below.cache.concurrency(expected.longest):
        reason = (
            f"{below.name} does not hold one request of {expected.longest:,} tokens: what is too much waits"
        )
    else:
        value, relief = "rung_below", below
        part = below.cache.sequence_bytes(expected.longest) / below.cache.memory
        reason = (
            f"{below.name} takes what finds the tier full, behind the same guard; a longest request takes "
        )
        reason += f"{part:.1%} of its cache"
    return relief, Rule(name="fallback", value=value, reason=reason)


def _at_once(budget: Budget, cache: Cache, expected: Expected) -> tuple[int, str]:
    fitting = cache.concurrency(expected.typical)
    if budget.sequences < fitting:
        return budget.sequences, f"runs {budget.sequences:,} sequences; its cache would hold {fitting:,}"
    return fitting, f"holds {fitting:,} requests of {expected.typical:,} tokens in its cache"


def _patience(expected: Expected) -> tuple[float, str]:
    if expected.ttft_seconds is None:
        return DEFAULT_PATIENCE, "no SLO is told: the proxy's own default"
    return expected.ttft_seconds, "who waited as long as the first token may take has missed the SLO already"


def _queue(expected: Expected, concurrency: int, patience: float) -> tuple[int, str]:
    if expected.seconds is None:
        return concurrency, "not told how long a request takes: as many as are at work at once"
    served = concurrency * patience / expected.seconds
    reason = (
        f"{concurrency:,} x {patience:g} s / {expected.seconds:g} s get a place in time; one more would not"
    )
    return max(1, math.floor(served)), reason


def _levels(cache: Cache, expected: Expected) -> tuple[float, float, str]:
    """Below which use new prompts go on, and from which they wait; whole per cent."""
    free = cache.sequence_bytes(expected.longest) / cache.memory
    above = _whole(min(max(1 - free, LEAST_LEVEL), MOST_LEVEL))
    step = max(LEAST_STEP, cache.sequence_bytes(expected.typical) / cache.memory)
    below = _whole(max(above - step, above / 2))
    reason = (
        f"a longest request takes {free:.1%} of a cache: who is let in can end without preempting another"
    )
    if 1 - free < LEAST_LEVEL:
        reason = (
            f"a longest request takes {free:.1%} of a cache: next to it others are preempted all the same"
        )
    return below, above, reason


def _whole(level: float) -> float:
    """Down to whole per cent, but for what a float is off."""
    return math.floor(100 * level + 1e-9) / 100


def _percent(level: float) -> str:
    return f"{round(100 * level)}%"


def _duration(seconds: float) -> str:
    return f"{seconds:g}s" if seconds >= 10 else f"{max(1, round(1000 * seconds))}ms"
