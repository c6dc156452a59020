"""Batches end in the order that their workers and their failures make."""

from __future__ import annotations

import numpy as np

from tests.benchmarks import completion


def test_slow_batches_are_overtaken() -> None:
    """The first batch has a harm: seven others of its time, and all that follow them, end before it."""
    batches = completion.WORKERS * completion.SLOWER
    pairs = np.arange(batches * completion.BATCH) * 1e-9 - 1
    pairs[3] = 1.0
    found = completion.finished(pairs).reshape(-1, completion.BATCH)
    order = [round((batch[0] + 1) * 1e9) // completion.BATCH for batch in found]
    before = (completion.WORKERS - 1) * completion.SLOWER
    assert sorted(order) == list(range(batches))
    assert order.index(0) in range(before - completion.WORKERS, before + 1)


def test_clean_batches_end_in_their_order() -> None:
    pairs = -np.arange(10.0 * completion.BATCH)
    assert completion.finished(pairs).tolist() == pairs.tolist()
