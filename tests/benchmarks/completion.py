"""What counting pairs as they finish does when failures are slow, and what counting them in order does.

Eight workers take up batches one after another. A batch with a harm takes 15 times as long, for a candidate
that fails often runs to its limit; so what is finished at any time is better than what was begun.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.crossings import Stream, first_pass
from tests.benchmarks.rows import ALPHA, MARGIN, PASS, Row, Sizes, share

WORKERS, SLOWER = 8, 15
BATCH = 20
DISCORDANCE = 0.02


def finished(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The pairs in the order in which their batches end, as far as all of them have ended."""
    batches = pairs[: pairs.size // BATCH * BATCH].reshape(-1, BATCH)
    slow = (batches > 0).any(axis=1)
    free = [0.0] * WORKERS
    ends = np.empty(len(batches))
    for number, is_slow in enumerate(slow.tolist()):
        ends[number] = heapq.heappop(free) + (SLOWER if is_slow else 1)
        heapq.heappush(free, ends[number])
    return np.asarray(batches[np.argsort(ends, kind="stable")].ravel())


def order_of_completion(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """A tier exactly at the margin, looked at after every pair that counts."""
    harm, benefit = (DISCORDANCE + MARGIN) / 2, (DISCORDANCE - MARGIN) / 2
    by_finish, by_start = [], []
    for _ in range(sizes.turns):
        drawn = generator.random(sizes.horizon)
        pairs = np.where(drawn < harm, 1.0, np.where(drawn < harm + benefit, -1.0, 0.0))
        by_finish.append(np.isfinite(first_pass(Stream.of(finished(pairs)), MARGIN, PASS)))
        by_start.append(np.isfinite(first_pass(Stream.of(pairs), MARGIN, PASS)))
    case = "true rise 1 pp, discordance 2 %, slow failures"
    words = {"case": case, "reference": "-", "source": "-"}
    yield share(by_start, measured="wrongly passes, counted in the order of taking up", bound=ALPHA, **words)
    yield share(by_finish, measured="for contrast: counted as they finish", **words)
