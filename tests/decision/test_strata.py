"""The worst stratum: fine on average is not fine, and looking at many strata does not reject by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.decide import decide
from service.decision.directions import log_e_least_harm, log_e_values
from service.decision.eprocess import H5, log_factors, log_mixtures
from service.decision.evidence import Evidence
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, Policy, Role
from service.decision.strata import MOST_SHOWN, worst_strata
from service.decision.tally import Tally, Triple
from service.decision.thresholds import thresholds
from service.decision.unscored import unscored_share
from service.decision.verdict import Decision, Verdict

JSON = Criterion(evaluator="structured_output")
POLICY = Policy(
    criteria=(JSON, Criterion(evaluator="refusal")),
    gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED},
)
STRATA = 32
CLEAN = Tally.of_pairs(n=20_000, harm=0, benefit=0)


def verdict_of(
    overall: Tally,
    strata: dict[str, Tally],
    *,
    policy: Policy = POLICY,
    control: dict[str, Tally] | None = None,
    tiers: int = 1,
) -> Verdict:
    evidence = Evidence(
        model="m",
        tier="w4a16",
        epoch="e",
        tiers_under_test=tiers,
        tallies={"structured_output": overall, "refusal": CLEAN},
        control=control,
        strata={"structured_output": strata},
        strata_under_test=STRATA,
    )
    return decide(policy, evidence, rung_below=None)


def test_a_tier_that_is_fine_on_average_and_breaks_at_32k_is_rejected() -> None:
    # 4 % of the traffic is that long and fails 12 points more often: half a point on average.
    long = Tally.of_pairs(n=800, harm=100, benefit=4)
    overall = long + Tally.of_pairs(n=19_200, harm=20, benefit=20)
    alone = verdict_of(overall, {})
    assert alone.decision is Decision.ACCEPT
    verdict = verdict_of(overall, {"32k+": long})
    assert verdict.decision is Decision.REJECT
    assert verdict.reasons == (
        "structured_output: harm beyond the margin of 0.01 shown in stratum 32k+: e-value 1.15e+20 >= 6400",
    )
    worst = verdict.findings[0].worst_strata[0]
    assert (worst.stratum, worst.n, worst.harm, worst.benefit) == ("32k+", 800, 100, 4)
    assert worst.estimate == pytest.approx(0.12)


def test_harm_in_a_stratum_is_held_to_all_criteria_tiers_and_strata() -> None:
    assert math.exp(thresholds(POLICY, tiers=3, attempt=1, strata=STRATA).strata) == pytest.approx(
        2 * 3 * STRATA / 0.01
    )
    # Enough for one tier among few strata, not for three among many.
    strata = {"32k+": Tally.of_pairs(n=14, harm=13, benefit=0)}
    found = worst_strata(POLICY, JSON, strata)[0].log_e_harm
    assert thresholds(POLICY, tiers=1, attempt=1, strata=1).strata < found
    assert found < thresholds(POLICY, tiers=1, attempt=1, strata=STRATA).strata
    assert verdict_of(CLEAN, strata).decision is Decision.ACCEPT
    more = {"32k+": Tally.of_pairs(n=30, harm=30, benefit=0)}
    assert verdict_of(CLEAN, more, tiers=3).decision is Decision.REJECT


def test_the_worst_strata_are_listed_when_none_is_decisive() -> None:
    strata = {f"s{k}": Tally.of_pairs(n=100, harm=k, benefit=0) for k in range(8)}
    verdict = verdict_of(CLEAN, strata)
    assert verdict.decision is Decision.ACCEPT
    listed = verdict.findings[0].worst_strata
    assert [each.stratum for each in listed] == ["s7", "s6", "s5", "s4", "s3"]
    assert len(listed) == MOST_SHOWN
    assert verdict.findings[1].worst_strata == ()


def test_a_stratum_of_a_criterion_that_is_only_shown_rejects_nothing() -> None:
    shown = Policy(
        criteria=(Criterion(evaluator="structured_output", role=Role.SHOWN), Criterion(evaluator="refusal")),
        gates=POLICY.gates,
    )
    verdict = verdict_of(CLEAN, {"32k+": Tally.of_pairs(n=100, harm=90, benefit=0)}, policy=shown)
    assert verdict.decision is Decision.ACCEPT
    assert verdict.findings[0].decision is Decision.REJECT
    assert verdict.findings[0].role is Role.SHOWN


def test_where_scores_are_missing_harm_in_a_stratum_stands_only_if_they_could_not_undo_it() -> None:
    harmed = Tally.of_pairs(n=100, harm=30, benefit=0)
    lost = harmed + Tally(unscored={"timeout": 25})
    assert verdict_of(CLEAN, {"32k+": harmed}).decision is Decision.REJECT
    verdict = verdict_of(CLEAN, {"32k+": lost})
    assert verdict.decision is Decision.ACCEPT
    assert verdict.findings[0].worst_strata[0].log_e_harm == pytest.approx(log_e_least_harm(JSON, lost))
    # Few are missing in the stratum; but over all too many, so that none of them is believed.
    few = Tally.of_pairs(n=1000, harm=80, benefit=0) + Tally(unscored={"timeout": 5})
    overall = CLEAN + Tally(unscored={"timeout": 1000})
    found = verdict_of(overall, {"32k+": few}).findings[0].worst_strata[0]
    assert found.log_e_harm == pytest.approx(log_e_least_harm(JSON, few))


def test_more_strata_than_there_can_be_are_refused() -> None:
    strata = {str(k): Tally.of_pairs(n=1, harm=0, benefit=0) for k in range(STRATA + 1)}
    with pytest.raises(ValueError, match="33 strata, more than the 32 under test"):
        verdict_of(CLEAN, strata)
    with pytest.raises(ValueError, match="counts from 1"):
        Evidence(model="m", tier="t", epoch="e", strata_under_test=0)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    units = {}
    for _ in range(draw(st.integers(1, 4))):
        pairs = draw(st.integers(1, 5))
        harm = draw(st.integers(0, pairs))
        units[Triple(pairs, harm, draw(st.integers(0, pairs - harm)))] = draw(st.integers(1, 10**6))
    return Tally(units=units, unscored={"timeout": draw(st.integers(0, 10**4))})


def mean_difference(tally: Tally) -> float:
    units = tally.units.items()
    return math.fsum((t.harm - t.benefit) / t.pairs * count for t, count in units) / tally.conversations


@given(tallies(), st.floats(0.001, 0.9), st.sampled_from(Hypothesis), st.booleans())
def test_a_stratum_within_the_margin_is_never_evidence_of_harm(
    tally: Tally, margin: float, hypothesis: Hypothesis, withheld: bool
) -> None:
    criterion = Criterion(evaluator="structured_output", margin=margin, hypothesis=hypothesis)
    (found,) = worst_strata(POLICY, criterion, {"s": tally}, withheld=withheld)
    mean = mean_difference(tally)
    if (abs(mean) if hypothesis is Hypothesis.EQUIVALENT else mean) <= margin:
        assert found.log_e_harm <= 1e-6


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), tallies(), max_size=5),
    st.sampled_from(Hypothesis),
    st.booleans(),
)
def test_every_stratum_is_judged_as_it_would_be_alone(
    strata: dict[str, Tally], hypothesis: Hypothesis, withheld: bool
) -> None:
    criterion = Criterion(evaluator="structured_output", hypothesis=hypothesis)
    found = worst_strata(POLICY, criterion, strata, withheld=withheld)
    assert [each.log_e_harm for each in found] == sorted((each.log_e_harm for each in found), reverse=True)
    for each in found:
        tally = strata[each.stratum]
        doubted = withheld or unscored_share(tally) > POLICY.max_unscored
        expected = log_e_least_harm(criterion, tally) if doubted else log_e_values(criterion, tally).harm
        assert each.log_e_harm == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_looking_at_every_stratum_after_every_pair_errs_at_most_alpha() -> None:
    """All strata exactly at the margin, the worst of them looked at after every pair; seeded.

    Without the number of strata in the threshold the same tiers are rejected several times as often as alpha
    allows, so the test can tell.
    """
    generator = np.random.default_rng(17)
    epochs, strata, pairs, margin, discordance, alpha = 300, 16, 600, 0.1, 0.14, 0.1
    drawn = generator.random((epochs, strata, pairs))
    harm, benefit = (discordance + margin) / 2, (discordance - margin) / 2
    harms = (drawn < harm).cumsum(axis=-1, dtype=np.int32)
    benefits = (drawn > 1 - benefit).cumsum(axis=-1, dtype=np.int32)
    equal = np.arange(1, pairs + 1, dtype=np.int32) - harms - benefits
    factors = log_factors(-np.array([1.0, -1.0, 0.0]), -margin, H5)
    highest = np.empty((epochs, strata))
    for epoch in range(epochs):
        capital = np.stack([harms[epoch], benefits[epoch], equal[epoch]], axis=-1) @ factors.T
        highest[epoch] = log_mixtures(capital, H5).max(axis=-1)
    policy = Policy(criteria=(Criterion(evaluator="x", margin=margin),), alpha_strata=alpha)
    corrected = thresholds(policy, tiers=1, attempt=1, strata=strata).strata
    worst = highest.max(axis=1)
    assert (worst >= corrected).mean() <= alpha
    assert (worst >= thresholds(policy, tiers=1, attempt=1, strata=1).strata).mean() > 3 * alpha
    # What was simulated is what the function says.
    last = Tally.of_pairs(n=pairs, harm=int(harms[0, 0, -1]), benefit=int(benefits[0, 0, -1]))
    (found,) = worst_strata(policy, policy.criteria[0], {"s": last})
    assert found.log_e_harm <= highest[0, 0] + 1e-9
