"""The difference by people's labels: right on average, and its limits hold what they say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from service.decision import tango
from service.decision.correction import (
    BENEFIT,
    BOTH_FAILED,
    BOTH_PASSED,
    HARM,
    Cell,
    Labels,
    pairs_by_cell,
    rectify,
)
from service.decision.rogan_gladen import Seen, corrected_share
from service.decision.tally import Tally, Triple

CELLS = (BOTH_PASSED, HARM, BENEFIT, BOTH_FAILED)


def tally(*, both_passed: int = 0, harm: int = 0, benefit: int = 0, both_failed: int = 0) -> Tally:
    n = both_passed + harm + benefit + both_failed
    return Tally(units=Tally.of_pairs(n=n, harm=harm, benefit=benefit).units, both_failed=both_failed)


def test_an_evaluator_that_is_right_is_not_corrected() -> None:
    counted = tally(both_passed=940, harm=30, benefit=20, both_failed=10)
    labels = Labels(
        table={
            (HARM, HARM): 30,
            (BENEFIT, BENEFIT): 20,
            (BOTH_PASSED, BOTH_PASSED): 300,
            (BOTH_FAILED, BOTH_FAILED): 10,
        }
    )
    found = rectify(counted, labels, level=0.9)
    assert found is not None
    assert found.estimate == pytest.approx(0.01)
    assert found.interval.lower < 0.01 < found.interval.upper


def test_every_labelled_pair_stands_for_the_pairs_it_was_drawn_from() -> None:
    # By hand: .95 * (3 - 1)/100 + .03 * (10 - 2)/30 - .02 * 0
    counted = tally(both_passed=950, harm=30, benefit=20)
    labels = Labels(
        table={
            (BOTH_PASSED, BOTH_PASSED): 96,
            (BOTH_PASSED, HARM): 3,
            (BOTH_PASSED, BENEFIT): 1,
            (HARM, HARM): 10,
            (HARM, BENEFIT): 2,
            (HARM, BOTH_PASSED): 18,
            (BENEFIT, BOTH_PASSED): 20,
        }
    )
    found = rectify(counted, labels, level=0.9)
    assert found is not None
    assert found.estimate == pytest.approx(0.95 * 2 / 100 + 0.03 * 8 / 30)


def test_without_pairs_or_labels_there_is_nothing() -> None:
    assert rectify(Tally(), Labels(table={(HARM, HARM): 1}), level=0.9) is None
    assert rectify(tally(both_passed=10), Labels(), level=0.9) is None
    with pytest.raises(ValueError, match="level must be in"):
        rectify(tally(both_passed=10), Labels(), level=1.0)
    with pytest.raises(ValueError, match="none can be negative"):
        Labels(open={HARM: -1})


def test_a_stratum_that_nobody_looked_at_is_not_taken_for_right() -> None:
    counted = tally(both_passed=900, harm=100)
    found = rectify(counted, Labels(table={(HARM, HARM): 100}), level=0.9)
    assert found is not None
    assert found.estimate == pytest.approx(0.1)
    assert found.interval.lower < 0.1 - 0.9 + 0.05
    assert found.interval.upper > 0.99


def test_no_error_seen_is_not_no_error() -> None:
    counted = tally(both_passed=1000)
    wide = rectify(counted, Labels(table={(BOTH_PASSED, BOTH_PASSED): 50}), level=0.9)
    close = rectify(counted, Labels(table={(BOTH_PASSED, BOTH_PASSED): 900}), level=0.9)
    assert wide is not None
    assert close is not None
    assert wide.interval.upper > 0.04
    assert 0.001 < close.interval.upper < 0.006


def test_pairs_left_open_widen_the_limits_by_the_worst_they_may_have_been() -> None:
    counted = tally(both_passed=1000)
    told = {(BOTH_PASSED, BOTH_PASSED): 190}
    without = rectify(counted, Labels(table=told), level=0.9)
    found = rectify(counted, Labels(table=told, open={BOTH_PASSED: 10}), level=0.9)
    assert without is not None
    assert found is not None
    assert found.estimate == without.estimate == 0
    assert found.interval.upper - without.interval.upper > 0.045
    assert without.interval.lower - found.interval.lower > 0.045


def test_pairs_of_a_conversation_count_for_less() -> None:
    labels = Labels(table={(BOTH_PASSED, BOTH_PASSED): 300, (HARM, HARM): 40})
    alone = Tally.of_pairs(n=1000, harm=40, benefit=0)
    together = Tally(units={Triple(10, 10, 0): 4, Triple(10, 0, 0): 96})
    narrow, wide = rectify(alone, labels, level=0.9), rectify(together, labels, level=0.9)
    assert narrow is not None
    assert wide is not None
    assert wide.interval.upper - wide.interval.lower > 1.5 * (narrow.interval.upper - narrow.interval.lower)


def test_rogan_and_gladens_formula_by_these_labels_gives_the_same_arm_by_arm() -> None:
    counted = tally(both_passed=900, harm=40, benefit=35, both_failed=25)
    table = {
        (BOTH_PASSED, BOTH_PASSED): 95,
        (BOTH_PASSED, HARM): 2,
        (BOTH_PASSED, BENEFIT): 1,
        (BOTH_PASSED, BOTH_FAILED): 2,
        (HARM, HARM): 30,
        (HARM, BOTH_PASSED): 10,
        (BENEFIT, BENEFIT): 20,
        (BENEFIT, BOTH_FAILED): 15,
        (BOTH_FAILED, BOTH_FAILED): 20,
        (BOTH_FAILED, HARM): 5,
    }
    labelled = Counter[Cell]()
    for (said, _), count in table.items():
        labelled[said] += count
    weight = {cell: pairs_by_cell(counted)[cell] / labelled[cell] for cell in CELLS}

    def share(arm: str) -> float:
        def mass(says: bool, is_so: bool) -> float:
            return sum(
                count * weight[said]
                for (said, truth), count in table.items()
                if (getattr(said, arm), getattr(truth, arm)) == (says, is_so)
            )

        seen = Seen(
            caught=mass(True, True),
            missed=mass(False, True),
            cleared=mass(False, False),
            blamed=mass(True, False),
        )
        failing = counted.both_failed + (counted.harm if arm == "candidate" else counted.benefit)
        found = corrected_share(failing, counted.n, seen, level=0.9)
        assert found is not None
        return found.estimate

    found = rectify(counted, Labels(table=table), level=0.9)
    assert found is not None
    assert found.estimate == pytest.approx(share("candidate") - share("baseline"), abs=1e-12)


SCENARIOS = {
    # What the evaluator says, and what is so there: P(cell), then P(truth | cell), in CELLS order.
    "blind to one arm": (
        (0.95, 0.02, 0.02, 0.01),
        ((0.97, 0.03, 0, 0), (0.3, 0.7, 0, 0), (0.3, 0, 0.7, 0), (0, 0, 0, 1)),
    ),
    "nearly right": (
        (0.96, 0.02, 0.015, 0.005),
        ((0.998, 0.001, 0.001, 0), (0.1, 0.9, 0, 0), (0.1, 0, 0.9, 0), (0, 0, 0, 1)),
    ),
    "sees what is not": (
        (0.9, 0.06, 0.02, 0.02),
        ((1, 0, 0, 0), (0.9, 0.1, 0, 0), (0.5, 0, 0.5, 0), (0.2, 0.2, 0.2, 0.4)),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_sampling_by_score_does_not_bias_and_the_limits_cover(name: str) -> None:
    """Discordant pairs are all labelled and concordant ones one in ten: means and limits hit the truth."""
    said, truths = SCENARIOS[name]
    truth = sum(p * (row[1] - row[2]) for p, row in zip(said, truths, strict=True))
    rng = np.random.default_rng(20260101)
    runs, n, level = 160, 2000, 0.90
    below = above = 0
    estimates = []
    for _ in range(runs):
        counts = rng.multinomial(n, said)
        table: Counter[tuple[Cell, Cell]] = Counter()
        for cell, pairs, row in zip(CELLS, counts, truths, strict=True):
            labelled = int(pairs) if cell.difference else int(rng.binomial(pairs, 0.1))
            for what, count in zip(CELLS, rng.multinomial(labelled, row), strict=True):
                table[cell, what] += int(count)
        passed, harm, benefit, failed = (int(count) for count in counts)
        found = rectify(
            tally(both_passed=passed, harm=harm, benefit=benefit, both_failed=failed),
            Labels(table=table),
            level=level,
        )
        assert found is not None
        estimates.append(found.estimate)
        below += truth < found.interval.lower
        above += truth > found.interval.upper
    error = np.std(estimates) / np.sqrt(runs)
    assert abs(np.mean(estimates) - truth) < 4 * error
    # Each limit may fail in 5 % of the runs; 4 standard errors of 160 runs above that are 12 %.
    assert below / runs <= 0.12
    assert above / runs <= 0.12


def test_knowing_every_pair_of_a_sample_is_not_knowing_the_traffic() -> None:
    """With all labelled, what is left is what the sample itself leaves open: the raw limits, at least."""
    counted = tally(both_passed=900, harm=60, benefit=40)
    every = Labels(table={(cell, cell): pairs for cell, pairs in pairs_by_cell(counted).items() if pairs})
    found = rectify(counted, every, level=0.9)
    low, high = tango.interval(60, 40, 1000, 0.9)
    assert found is not None
    assert found.interval.lower <= low
    assert found.interval.upper >= high


def test_where_people_see_far_more_differences_the_sample_leaves_more_open_than_the_evaluator_says() -> None:
    """Cells whose true means lie far apart: the spread between them counts, not the evaluator's own."""
    counted = tally(both_passed=500, both_failed=500)
    labels = Labels(table={(BOTH_PASSED, HARM): 500, (BOTH_FAILED, BENEFIT): 500})
    found = rectify(counted, labels, level=0.9)
    assert found is not None
    assert found.estimate == 0
    assert found.interval.upper > 1.6 * (1 / 1000) ** 0.5
    assert found.interval.lower < -1.6 * (1 / 1000) ** 0.5


def test_a_sample_without_a_difference_leaves_the_traffic_open_besides_the_labels() -> None:
    counted = tally(both_passed=1000)
    found = rectify(counted, Labels(table={(BOTH_PASSED, BOTH_PASSED): 1000}), level=0.9)
    low, high = tango.interval(0, 0, 1000, 0.9)
    assert found is not None
    assert found.interval.upper == pytest.approx(2**0.5 * high)
    assert found.interval.lower == pytest.approx(2**0.5 * low)
