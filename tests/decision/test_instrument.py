"""How wrong evaluator and judge are against people, each pair weighted by those it stands for."""

from __future__ import annotations

import pytest

from service.decision.correction import BENEFIT, BOTH_PASSED, HARM, Cell
from service.decision.instrument import Reading, corrected_by_errors, errors_of
from service.decision.tally import Tally

COUNTED = Tally.of_pairs(n=1000, harm=20, benefit=0)


def readings(*told: tuple[Cell, Cell, Cell | None, int]) -> list[Reading]:
    return [
        Reading(scored=scored, said=said, truth=truth)
        for scored, said, truth, count in told
        for _ in range(count)
    ]


def test_pairs_that_were_drawn_seldom_weigh_more() -> None:
    # Of 20 discordant pairs all are labelled, half wrongly scored; of 980 others 98, one wrongly.
    found = errors_of(
        COUNTED,
        readings(
            (HARM, HARM, HARM, 10),
            (HARM, HARM, BOTH_PASSED, 10),
            (BOTH_PASSED, BOTH_PASSED, BOTH_PASSED, 97),
            (BOTH_PASSED, BOTH_PASSED, HARM, 1),
        ),
    )
    assert found.pairs == 118
    # In truth 10 + 10 candidates failed, of which 10 were caught; 10 of 980 passes were blamed.
    assert found.candidate.sensitivity == pytest.approx(10 / 20)
    assert found.candidate.specificity == pytest.approx(970 / 980)
    assert found.baseline.sensitivity is None
    assert found.baseline.specificity == 1


def test_readings_without_a_truth_are_no_errors() -> None:
    found = errors_of(COUNTED, readings((HARM, HARM, None, 20)))
    assert found.pairs == 0
    assert found.candidate.sensitivity is None


def test_the_judges_difference_is_corrected_for_its_own_errors_of_each_arm() -> None:
    counted = Tally.of_pairs(n=1000, harm=100, benefit=100)
    told = readings(
        *((cell, cell, cell, 100) for cell in (HARM, BENEFIT)),
        (BOTH_PASSED, BOTH_PASSED, BOTH_PASSED, 60),
        # It blames the candidate in a fifth of what people find right, also where nobody looked.
        (BOTH_PASSED, HARM, BOTH_PASSED, 20),
        (BOTH_PASSED, BOTH_PASSED, None, 60),
        (BOTH_PASSED, HARM, None, 20),
    )
    found = corrected_by_errors(counted, told, level=0.9)
    assert found is not None
    assert found.estimate == pytest.approx(0.0, abs=0.02)
    assert found.lower < found.estimate < found.upper
    assert corrected_by_errors(counted, [], level=0.9) is None
    assert corrected_by_errors(counted, readings((HARM, HARM, None, 3)), level=0.9) is None


def test_unequal_weights_leave_fewer_effective_pairs() -> None:
    """Kish: 20 pairs that stand for 1 and 98 that stand for 10 tell as much as (20 + 980)^2/(20 + 9800)."""
    found = errors_of(COUNTED, readings((HARM, HARM, HARM, 20), (BOTH_PASSED, BOTH_PASSED, BOTH_PASSED, 98)))
    seen = found.candidate
    assert seen.caught + seen.missed + seen.cleared + seen.blamed == pytest.approx(1000**2 / (20 + 9800))
    assert seen.caught / seen.cleared == pytest.approx(20 / 980)
