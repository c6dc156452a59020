from __future__ import annotations

import math
import random

import pytest

from service.decision.intraclass import block_correlation


def test_requests_that_share_nothing_are_not_alike() -> None:
    chance = random.Random(1)
    blocks = [[chance.random() for _ in range(200)] for _ in range(40)]
    found = block_correlation(blocks)
    assert found is not None
    assert found < 0.01


def test_blocks_in_which_everything_is_slow_at_once_are_alike() -> None:
    blocks = [[2.0 + i / 1000 for i in range(50)] if number == 7 else [1.0] * 50 for number in range(20)]
    assert block_correlation(blocks) == pytest.approx(1.0, abs=1e-9)


def test_the_value_is_that_of_the_analysis_of_variance() -> None:
    # 8 blocks of 10, the worst 5 % above the limit: 4 of the first block, none elsewhere.
    # MSB = (10 (.4 - .05)^2 + 7 x 10 x .05^2) / 7 = .2, MSW = 4 x .6 / 72 = .0333, m0 = 10:
    # rho = (.2 - .0333) / (.2 + 9 x .0333) = 1/3
    blocks = [[1.0] * 10 for _ in range(8)]
    blocks[0][:4] = [3.0, 3.1, 3.2, 3.3]
    assert block_correlation(blocks) == pytest.approx(1 / 3)


def test_failures_are_the_worst_there_is() -> None:
    blocks = [[1.0] * 20 for _ in range(8)]
    blocks[3] = [math.inf] * 20
    assert block_correlation(blocks) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [[1.0, 2.0]] * 7,
        [[1.0] * 10] * 8,
        [[math.inf] * 10] * 8,
        [[1.0]] * 7 + [[2.0]],
        [[]] * 20,
    ],
)
def test_what_cannot_be_told_is_none(blocks: list[list[float]]) -> None:
    assert block_correlation(blocks) is None


def test_what_is_compared_is_the_worst_twentieth_of_all_requests() -> None:
    """By hand: 8 of 160 requests are marked, all in one of 8 blocks: MSB .4, MSW 4.8/152, m0 20."""
    even = [[0.1 * number for number in range(20)] for _ in range(7)]
    found = block_correlation([*even, [0.1] * 12 + [10.0] * 8])
    assert found == pytest.approx((0.4 - 4.8 / 152) / (0.4 + 19 * 4.8 / 152))
