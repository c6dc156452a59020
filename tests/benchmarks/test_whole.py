"""Load runs of the simulation are those of the decision, and speak from one run to the next."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from service.decision.evidence import Shown
from service.decision.money import money_gate
from service.decision.policy import Gate
from service.decision.tally import Tally
from tests.benchmarks.load_runs import MONEY_PAIRS, SLO_MARGIN, arm, misses_at, money_run, slo_run
from tests.benchmarks.procedure import ACCEPT, MISSING, REJECT, UNDECIDED, Rates
from tests.benchmarks.rows import Sizes
from tests.benchmarks.whole import FINE, FIRST_RUN, WEEK, load_runs, tier, whole_ladders


@pytest.mark.parametrize("ratio", [0.95, 1.0, 1.05])
def test_the_money_of_a_run_is_the_gates(ratio: float) -> None:
    rates = Rates(harm=0.0125, benefit=0.0075)
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for alpha in (0.05, 0.01):
        harm, benefit, _ = theirs.multinomial(MONEY_PAIRS, [rates.harm, rates.benefit, 0.98]).tolist()
        baseline, candidate = arm(theirs, 1.0), arm(theirs, ratio)
        failures = Tally.of_pairs(n=MONEY_PAIRS, harm=harm, benefit=benefit)
        expected = money_gate(baseline, candidate, failures, alpha=alpha)
        found = money_run(ours, ratio, rates, alpha)
        assert (found.shown, found.reason) == (expected.shown, expected.reason)


def test_misses_rise_by_what_was_asked() -> None:
    for rise in (0.0, SLO_MARGIN, 0.03):
        misses = misses_at(rise)
        assert misses.harm - misses.benefit == pytest.approx(rise)
        assert misses.benefit >= 0


@pytest.mark.parametrize("correlation", [0.0, 0.005])
def test_a_load_run_shows_what_is_far_from_its_margin(correlation: float) -> None:
    generator = np.random.default_rng(3)
    fine = [slo_run(generator, misses_at(0.0), 0.05, correlation).shown for _ in range(20)]
    lost = [slo_run(generator, misses_at(0.04), 0.05, correlation).shown for _ in range(20)]
    assert fine.count(Shown.PASSED) >= 15
    assert set(lost) == {Shown.FAILED}


def test_a_run_speaks_until_the_next() -> None:
    step, looks = 100, (FIRST_RUN + 2 * WEEK) // 100
    found = load_runs(np.random.default_rng(3), (FINE, tier(ratio=0.5), tier(misses=0.05)), looks, step)
    first, second = FIRST_RUN // step, (FIRST_RUN + WEEK) // step
    for states in found.values():
        assert set(states[:, :first].ravel().tolist()) == {MISSING}
        for start, end in ((first, second), (second, looks)):
            assert np.all(states[:, start:end] == states[:, start, None])
    assert set(found[Gate.MONEY][1, first:].tolist()) == {REJECT}
    assert set(found[Gate.SLO][2, first:].tolist()) == {REJECT}
    assert found[Gate.MONEY][0, first] == ACCEPT


def test_no_tier_is_accepted_before_its_first_load_run() -> None:
    sizes = replace(Sizes(), gated=5, ladder_horizon=6000, ladder_step=100)
    ended = whole_ladders(np.random.default_rng(3), sizes, (FINE, tier(ratio=0.5)))
    assert set(ended.first[:, 0].tolist()) <= {ACCEPT, UNDECIDED}
    assert ended.pairs[:, 0].min() > FIRST_RUN
    assert ended.first[:, 1].tolist() == [REJECT] * 5
    assert ended.pairs[:, 1].tolist() == [FIRST_RUN + 100] * 5
    assert not math.isinf(ended.pairs[:, 0].min())
