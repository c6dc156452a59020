"""Tiers in order: each waits for the one below, and a rollback goes to the nearest that can serve."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from service.decision.decide import limits_of
from service.decision.eprocess import G10, log_factors, log_mixtures
from service.decision.evidence import Evidence
from service.decision.ladder import (
    counts_as_reject,
    decide_ladder,
    next_lower_rung,
    with_holm,
    with_skips,
)
from service.decision.multiplicity import attempt_alpha, log_e_holm
from service.decision.policy import AlphaSpending, Asked, Criterion, Gate, LadderRule, Policy, Role
from service.decision.tally import Tally
from service.decision.verdict import Decision

POLICY = Policy(
    criteria=(Criterion(evaluator="x"),),
    gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED},
)
CLEAN = Tally.of_pairs(n=1000, harm=0, benefit=0)
HARM = Tally.of_pairs(n=1000, harm=100, benefit=0)
NOISY = Tally.of_pairs(n=1000, harm=12, benefit=10)
RUNGS = ("bf16", "fp8kv", "w8a8", "w4a16")


def candidate(tier: str, tally: Tally, **limits: int) -> Evidence:
    return Evidence(model="m", tier=tier, epoch="e", tallies={"x": tally}, max_pairs=limits)


def test_a_ladder_is_climbed_one_accepted_rung_at_a_time() -> None:
    tallies = (CLEAN, NOISY, CLEAN)
    verdicts = decide_ladder(
        POLICY, [candidate(t, tally) for t, tally in zip(RUNGS[1:], tallies, strict=True)]
    )
    assert [verdict.decision for verdict in verdicts] == [
        Decision.ACCEPT,
        Decision.UNDECIDED,
        Decision.UNDECIDED,
    ]
    assert verdicts[2].reasons == ("rung_below_not_accepted",)
    assert decide_ladder(POLICY, []) == ()


def test_a_tier_is_given_up_when_rejected_or_not_shown_in_time() -> None:
    harmed, open_, exhausted = decide_ladder(
        POLICY, [candidate("a", HARM), candidate("b", NOISY), candidate("c", NOISY, x=900)]
    )
    assert [counts_as_reject(verdict) for verdict in (harmed, open_, exhausted)] == [True, False, True]


def test_a_tier_is_given_up_when_its_time_is_over() -> None:
    late = replace(candidate("a", NOISY), age_seconds=86_400.0)
    (verdict,) = decide_ladder(replace(POLICY, longest_seconds=86_400.0), [late])
    assert counts_as_reject(verdict)
    assert not counts_as_reject(decide_ladder(POLICY, [late])[0])


TWO = replace(
    POLICY,
    criteria=(
        Criterion(evaluator="x"),
        Criterion(evaluator="seen", role=Role.SHOWN),
        Criterion(evaluator="y"),
    ),
)


def on_ladder(tier: str, *, tiers: int, **tallies: Tally) -> Evidence:
    return Evidence(model="m", tier=tier, epoch="e", tiers_under_test=tiers, tallies=tallies)


def test_harm_over_the_whole_ladder_is_sharpened_by_e_holm_and_shown() -> None:
    weak = Tally.of_pairs(n=200, harm=11, benefit=0)
    evidence = [on_ladder(tier, tiers=2, x=HARM, y=weak, seen=HARM) for tier in ("a", "b")]
    verdicts = decide_ladder(TWO, evidence)
    decisive = [finding for verdict in verdicts for finding in verdict.decisive]
    assert [finding.log_e_holm for finding in decisive] == pytest.approx(
        log_e_holm([finding.log_e.harm for finding in decisive])
    )
    assert [verdict.findings[1].log_e_holm for verdict in verdicts] == [None, None]
    held_to = math.log(4 / TWO.alpha_harm)
    for verdict in verdicts:
        strong, weaker = verdict.decisive
        assert strong.log_e.harm >= held_to > weaker.log_e.harm
        # e / M, which decides, is never sharper; here e-Holm alone would reject.
        assert weaker.log_e_holm is not None
        assert weaker.log_e_holm >= -math.log(TWO.alpha_harm)
        assert weaker.decision is Decision.UNDECIDED


def test_tiers_without_a_verdict_only_weaken_the_others() -> None:
    evidence = [on_ladder("a", tiers=3, x=HARM, y=CLEAN)]
    (alone,) = decide_ladder(TWO, evidence)
    (of_one,) = with_holm([alone], tiers_under_test=1)
    strong, strong_of_one = alone.decisive[0], of_one.decisive[0]
    assert strong.log_e_holm == pytest.approx(strong.log_e.harm - math.log(6))
    assert strong_of_one.log_e_holm is not None
    assert strong_of_one.log_e_holm > strong.log_e_holm
    assert with_holm([], tiers_under_test=3) == ()


@pytest.mark.parametrize(
    ("tier", "usable", "target"),
    [
        ("w4a16", set(RUNGS), "w8a8"),
        ("w4a16", {"bf16", "fp8kv", "w4a16"}, "fp8kv"),
        ("fp8kv", {"w8a8", "w4a16"}, None),
        ("bf16", set(RUNGS), None),
    ],
)
def test_a_rollback_goes_to_the_nearest_usable_rung_below(
    tier: str, usable: set[str], target: str | None
) -> None:
    assert next_lower_rung(RUNGS, tier, usable) == target


def test_a_tier_off_the_ladder_has_no_rung_below() -> None:
    with pytest.raises(ValueError, match="int4"):
        next_lower_rung(RUNGS, "int4", RUNGS)


def of_ladder(*tallies: Tally, skipped: str | None = None) -> list[Evidence]:
    tiers = RUNGS[1 : 1 + len(tallies)]
    return [
        replace(
            candidate(tier, tally),
            tiers_under_test=len(tallies),
            skipped="by ops: known to be worse" if tier == skipped else None,
        )
        for tier, tally in zip(tiers, tallies, strict=True)
    ]


def test_tiers_above_a_skipped_one_do_without_it_and_share_alpha() -> None:
    before = decide_ladder(POLICY, of_ladder(CLEAN, HARM, CLEAN))
    assert [verdict.decision.value for verdict in before] == ["accept", "reject", "undecided"]
    verdicts = decide_ladder(POLICY, of_ladder(CLEAN, HARM, CLEAN, skipped="w8a8"))
    assert [verdict.decision.value for verdict in verdicts] == ["accept", "reject", "accept"]
    assert [verdict.alpha_accept for verdict in verdicts] == pytest.approx(
        [attempt_alpha(0.05, 1), attempt_alpha(0.05, 1), attempt_alpha(0.05 / 3, 1)]
    )
    assert "skipped: by ops: known to be worse" in verdicts[1].reasons
    assert verdicts[2].reasons[-1] == "after_skipped: w8a8, so alpha_accept is shared by 3 tiers"


def test_tiers_above_a_skipped_one_wait_for_those_below_it_and_not_for_one_another() -> None:
    waiting = decide_ladder(POLICY, of_ladder(NOISY, HARM, CLEAN, skipped="w8a8"))
    assert waiting[2].decision is Decision.UNDECIDED
    assert waiting[2].reasons[0] == "rung_below_not_accepted"
    apart = decide_ladder(POLICY, of_ladder(HARM, NOISY, CLEAN, skipped="fp8kv"))
    assert [verdict.decision.value for verdict in apart] == ["reject", "undecided", "accept"]
    assert "rung_below_not_accepted" not in apart[1].reasons


def test_evidence_that_is_enough_at_full_alpha_may_not_be_after_a_skip() -> None:
    barely = Tally.of_pairs(n=600, harm=0, benefit=0)
    assert decide_ladder(POLICY, of_ladder(CLEAN, CLEAN, barely))[2].decision is Decision.ACCEPT
    skipped = decide_ladder(POLICY, of_ladder(CLEAN, HARM, barely, skipped="w8a8"))[2]
    assert skipped.decision is Decision.UNDECIDED


def test_where_no_tier_waits_none_is_skipped() -> None:
    independent = replace(POLICY, ladder_rule=LadderRule.INDEPENDENT)
    plain = decide_ladder(independent, of_ladder(CLEAN, HARM, CLEAN))
    assert decide_ladder(independent, of_ladder(CLEAN, HARM, CLEAN, skipped="w8a8")) == plain


def test_the_tiers_above_a_skipped_one_are_wrongly_accepted_at_most_at_alpha() -> None:
    """Six tiers exactly at the margin above one that is skipped; a look after every pair."""
    margin, tiers, ladders, pairs = 0.1, 7, 600, 600
    policy = replace(
        POLICY, alpha_accept=0.2, alpha_spending=AlphaSpending.FIRST_ATTEMPT
    )  # the first attempt has all of alpha: more to err with
    evidence = [
        replace(candidate(f"t{n}", CLEAN), tiers_under_test=tiers, skipped="known" if n == 0 else None)
        for n in range(tiers)
    ]
    full, *above = (limits_of(policy, each).accept for each in with_skips(policy, evidence))
    shares = [math.exp(-each) for each in above]
    assert shares == pytest.approx([policy.alpha_accept / tiers] * 6)
    draw = np.random.default_rng(4)
    highest = np.empty((ladders, len(above)))
    factors = log_factors(np.array([0.0, 1.0, -1.0]), margin, G10)
    for ladder in range(ladders):
        seen = draw.choice(3, size=(len(above), pairs), p=(1 - margin - 0.02, margin + 0.01, 0.01))
        capitals = np.cumsum(factors[:, seen], axis=2)
        highest[ladder] = log_mixtures(np.moveaxis(capitals, 0, -1), G10).max(axis=1)
    allowed = binom.ppf(0.999, ladders, policy.alpha_accept)
    assert 0 < np.any(highest >= above, axis=1).sum() <= allowed
    assert np.any(highest >= full, axis=1).sum() > allowed, "at full alpha each, they would be too many"
