"""The vectorised procedure is `decide_ladder`, at every look."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.decision.evidence import Evidence, Measured
from service.decision.ladder import decide_ladder
from service.decision.policy import Gate, LadderRule, Policy
from service.decision.tally import Tally
from service.decision.verdict import Decision
from tests.benchmarks.crossings import Numbers
from tests.benchmarks.procedure import (
    ACCEPT,
    CODE_OF,
    GATED,
    MISSING,
    POLICY,
    REJECT,
    UNDECIDED,
    Codes,
    Rates,
    decide_looks,
    drawn_counts,
)

CODE = {Decision.UNDECIDED: UNDECIDED, Decision.ACCEPT: ACCEPT, Decision.REJECT: REJECT}
EQUAL = (Rates(harm=0.002, benefit=0.002),) * 3
WORSE = (EQUAL[0], Rates(harm=0.05, benefit=0.002), EQUAL[2])
SLIGHTLY_WORSE = (EQUAL[0], Rates(harm=0.02, benefit=0.002), EQUAL[2])
FEWER_REFUSALS = (*EQUAL[:2], Rates(harm=0.002, benefit=0.06))
SLIGHTLY_FEWER = (*EQUAL[:2], Rates(harm=0.0, benefit=0.01))
QUIET = (Rates(harm=0.001, benefit=0.001),) * 3
FAILING_BASELINE = (Rates(harm=0.0, benefit=0.6), *EQUAL[1:])


def tally(table: Numbers) -> Tally:
    harm, benefit, equal = (int(count) for count in table)
    return Tally.of_pairs(n=harm + benefit + equal, harm=harm, benefit=benefit)


def by_look(tables: Numbers, look: int) -> dict[str, Tally]:
    return {
        criterion.evaluator: tally(table[look])
        for criterion, table in zip(POLICY.criteria, tables, strict=True)
    }


@pytest.mark.parametrize(
    ("tiers", "control", "seen"),
    [
        ((EQUAL, WORSE, EQUAL), EQUAL, {UNDECIDED, ACCEPT, REJECT}),
        ((FEWER_REFUSALS, FAILING_BASELINE), EQUAL, {UNDECIDED, REJECT}),
        ((SLIGHTLY_FEWER, EQUAL), QUIET, {UNDECIDED}),
        ((EQUAL,), QUIET, {UNDECIDED, ACCEPT}),
        ((FAILING_BASELINE, EQUAL), EQUAL, {UNDECIDED}),
        ((EQUAL, WORSE), WORSE, {UNDECIDED}),
        ((WORSE, EQUAL), SLIGHTLY_WORSE, {UNDECIDED, REJECT}),
    ],
    ids=[
        "one tier worse",
        "refusals lost",
        "refusals slightly fewer",
        "quick",
        "baseline failing",
        "control worse too",
        "control worse later",
    ],
)
def test_every_look_decides_as_the_ladder_does(
    tiers: tuple[tuple[Rates, ...], ...], control: tuple[Rates, ...], seen: set[int]
) -> None:
    generator = np.random.default_rng(5)
    looks, step = 60, 50
    counts = np.stack([drawn_counts(generator, rates, looks=looks, step=step) for rates in tiers])
    # A quiet control gets few pairs, so that it is what acceptance waits for at first.
    controls = drawn_counts(generator, control, looks=looks, step=10 if control is EQUAL else step)
    found = decide_looks(POLICY, counts, controls)
    for look in range(looks):
        verdicts = decide_ladder(
            POLICY,
            [
                Evidence(
                    model="m",
                    tier=str(number),
                    epoch="e",
                    tiers_under_test=len(tiers),
                    tallies=by_look(tier, look),
                    control=by_look(controls, look),
                )
                for number, tier in enumerate(counts)
            ],
        )
        assert [CODE[verdict.decision] for verdict in verdicts] == found[:, look].tolist(), look
    assert set(found.ravel().tolist()) == seen


def measured(code: int) -> Measured | None:
    return next((Measured(shown=shown, reason="r") for shown, each in CODE_OF.items() if each == code), None)


def test_every_look_decides_as_the_ladder_does_with_load_runs() -> None:
    """Three equal tiers whose gates change every few looks, each combination of states met."""
    generator = np.random.default_rng(5)
    looks, step, tiers = 60, 50, 3
    counts = np.stack([drawn_counts(generator, EQUAL, looks=looks, step=step) for _ in range(tiers)])
    controls = drawn_counts(generator, QUIET, looks=looks, step=step)
    held = generator.choice([MISSING, UNDECIDED, ACCEPT, ACCEPT, REJECT], size=(2, tiers, looks // 3))
    states: Codes = np.repeat(held, 3, axis=2).astype(np.int8)
    found = decide_looks(GATED, counts, controls, {Gate.SLO: states[0], Gate.MONEY: states[1]})
    for look in range(looks):
        verdicts = decide_ladder(
            GATED,
            [
                Evidence(
                    model="m",
                    tier=str(number),
                    epoch="e",
                    tiers_under_test=tiers,
                    tallies=by_look(tier, look),
                    control=by_look(controls, look),
                    slo=measured(states[0, number, look]),
                    money=measured(states[1, number, look]),
                )
                for number, tier in enumerate(counts)
            ],
        )
        assert [CODE[verdict.decision] for verdict in verdicts] == found[:, look].tolist(), look
    assert set(found.ravel().tolist()) == {UNDECIDED, ACCEPT, REJECT}
    assert len({tuple(pair) for pair in states[:, :, -30:].reshape(2, -1).T.tolist()}) > 10


def test_acceptance_waits_for_the_pairs_that_a_criterion_asks_for() -> None:
    patient = replace(POLICY, criteria=(*POLICY.criteria[:2], replace(POLICY.criteria[2], min_pairs=2500)))
    generator = np.random.default_rng(5)
    counts = drawn_counts(generator, EQUAL, looks=60, step=50)
    controls = drawn_counts(generator, QUIET, looks=60, step=100)
    found = decide_looks(patient, counts[None], controls)[0]
    assert found.tolist() == [UNDECIDED] * 49 + [ACCEPT] * 11


def test_an_independent_ladder_is_not_what_it_simulates() -> None:
    policy = Policy(criteria=POLICY.criteria, ladder_rule=LadderRule.INDEPENDENT)
    with pytest.raises(ValueError, match="fixed sequence"):
        decide_looks(policy, np.zeros((1, 3, 1, 3)), np.zeros((3, 1, 3)))
