"""N_max is what the decision plans at the minimum of pairs."""

from __future__ import annotations

import numpy as np

from service.decision.planning import max_pairs
from tests.benchmarks.crossings import Stream
from tests.benchmarks.ends import MIN_PAIRS, planned_end
from tests.benchmarks.rows import ALPHA, MARGIN


def test_an_epoch_ends_where_its_first_pairs_say() -> None:
    units = np.zeros(2 * MIN_PAIRS)
    units[[5, MIN_PAIRS - 1]] = [1.0, -1.0]
    units[MIN_PAIRS:] = 1.0
    expected = max_pairs(margin=MARGIN, alpha=ALPHA, discordant=2, pairs=MIN_PAIRS)
    assert planned_end(Stream.of(units)) == expected
