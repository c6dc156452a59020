"""Which unit is valid when the damage is in late turns: closed conversations, open ones, first sampled pairs.

Conversations of eight turns; the last four carry all of the damage. So many conversations are open at once,
each takes a turn in turn, and a new one begins where one ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from service.decision.eprocess import G10, log_factors
from tests.benchmarks.crossings import Stream, first_pass, mixtures
from tests.benchmarks.rows import ALPHA, MARGIN, PASS, Row, Sizes, share

TURNS = 8
EARLY = (0.001, 0.006)
"""Chances of harm and of benefit in the first half of the turns: half a point better than the baseline."""
LATE = (0.026, 0.001)
"""... and in the second half: 2.5 points worse, so that all turns together are one point worse."""
OPEN_AT_ONCE = (50, 250, 500)
SHARES = (1.0, 0.25, 0.1, 0.05, 0.01)
"""Of requests that are sampled."""


def turn_pairs(generator: np.random.Generator, conversations: int) -> NDArray[np.float64]:
    """D of every turn (conversations x turns)."""
    harm, benefit = np.repeat([EARLY, LATE], TURNS // 2, axis=0).T
    drawn = generator.random((conversations, TURNS))
    return np.where(drawn < harm, 1.0, np.where(drawn < harm + benefit, -1.0, 0.0))


def open_peak(pairs: NDArray[np.float64], open_at_once: int) -> float:
    """Largest log E_NI(margin) when the mean of an open conversation counts, and changes with every turn."""
    conversations = pairs.shape[0]
    means = pairs.cumsum(axis=1) / np.arange(1, TURNS + 1)
    capitals = log_factors(means.ravel(), MARGIN, G10).T.reshape(conversations, TURNS, -1)
    changes = np.diff(capitals, axis=1, prepend=0.0)
    number = np.arange(conversations)
    # Seat by seat: whoever sits down takes one turn a round, and the next one follows at once.
    rounds = (number // open_at_once * TURNS)[:, None] + np.arange(TURNS) + _staggered(number, open_at_once)
    order = np.argsort(rounds.ravel(), kind="stable")
    path = changes.reshape(-1, changes.shape[-1])[order].cumsum(axis=0)
    return float(mixtures(path, G10).max())


def _staggered(number: NDArray[np.int64], open_at_once: int) -> NDArray[np.int64]:
    """The round in which each seat is first taken: seats fill over the first conversation's length."""
    return (number % open_at_once * TURNS // open_at_once)[:, None]


def first_sampled(
    generator: np.random.Generator, pairs: NDArray[np.float64], sampled: float
) -> tuple[NDArray[np.float64], float]:
    """D of the first sampled turn of each conversation that has one, and the share of late turns in it."""
    chosen = generator.random(pairs.shape) < sampled
    with_any = np.flatnonzero(chosen.any(axis=1))
    turn = chosen[with_any].argmax(axis=1)
    return pairs[with_any, turn], float((turn >= TURNS // 2).mean())


def late_damage(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """A tier at the margin over all turns, whose damage is in the second half of a conversation."""
    conversations = sizes.horizon // TURNS
    case = "one point worse over all turns, all of it late"
    opened, closed = [], []
    for _ in range(sizes.turns):
        pairs = turn_pairs(generator, conversations)
        opened.append([open_peak(pairs, count) >= PASS for count in OPEN_AT_ONCE])
        closed.append(np.isfinite(first_pass(Stream.of(pairs.mean(axis=1)), MARGIN, PASS)))
    yield share(
        closed,
        measured="wrongly passes, closed conversations",
        case=case,
        bound=ALPHA,
        reference="0",
        source="A2",
    )
    for count, passed_open in zip(OPEN_AT_ONCE, np.array(opened).T, strict=True):
        yield share(
            passed_open,
            measured=f"for contrast: open ones count too, {count} of {conversations:,} at once",
            case=case,
            reference=".073",
            source="A2",
        )
    for sampled in SHARES:
        passed, late = [], []
        for _ in range(sizes.turns):
            units, of_late = first_sampled(generator, turn_pairs(generator, 4 * conversations), sampled)
            passed.append(np.isfinite(first_pass(Stream.of(units), MARGIN, PASS)))
            late.append(of_late)
        words = {"case": f"{case}, {sampled:.0%} sampled", "reference": "-", "source": "-"}
        yield share(passed, measured="passes, first sampled pair of each", **words)
        yield Row(
            measured="late turns in the evidence, half of the traffic",
            found=float(np.mean(late)),
            error=float(np.std(late) / np.sqrt(len(late))),
            **words,
        )
