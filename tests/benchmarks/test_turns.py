"""Open conversations, closed ones and first sampled turns count as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.decision.eprocess import Differences, log_e_noninferiority
from tests.benchmarks import turns
from tests.benchmarks.rows import MARGIN


def test_open_conversations_count_by_the_turns_they_had() -> None:
    """Walked through round by round: the mean of every conversation begun, as it stands."""
    pairs = turns.turn_pairs(np.random.default_rng(4), 40)
    pairs[::5, -1] = 1.0
    open_at_once, peak = 8, -math.inf
    rounds = {
        number: number // open_at_once * turns.TURNS + number % open_at_once * turns.TURNS // open_at_once
        for number in range(len(pairs))
    }
    had = dict.fromkeys(rounds, 0)
    for now in range(max(rounds.values()) + turns.TURNS):
        for number, start in rounds.items():
            if start <= now < start + turns.TURNS:
                had[number] += 1
                means = [pairs[each, :taken].mean() for each, taken in had.items() if taken]
                units = Differences(values=np.array(means), counts=np.ones(len(means)))
                peak = max(peak, log_e_noninferiority(units, MARGIN))
    assert turns.open_peak(pairs, open_at_once) == pytest.approx(peak, rel=1e-9)


def test_turns_together_are_exactly_at_the_margin() -> None:
    rises = [harm - benefit for harm, benefit in (turns.EARLY, turns.LATE)]
    assert sum(rises) / 2 == pytest.approx(MARGIN)
    assert rises[0] < 0 < MARGIN < rises[1]


def test_the_first_sampled_turn_of_each_conversation_counts() -> None:
    pairs = np.tile(np.array([-1.0, *[0.0] * (turns.TURNS - 2), 1.0]), (50, 1))
    units, late = turns.first_sampled(np.random.default_rng(4), pairs, 1.0)
    assert units.tolist() == [-1.0] * 50
    assert late == 0
    units, late = turns.first_sampled(np.random.default_rng(4), pairs, 0.05)
    assert 0 < units.size < 50
    assert 0 < late < 1
