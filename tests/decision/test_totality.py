"""Every function of the decision has an answer for every valid input: never NaN, never an exception.

Counts up to ten million pairs, none at all, all of them one way, error rates next to 0 and next to 1. What a
function answers is tested elsewhere; here only that it answers, within bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.decision import clusters, exact, mcnemar, newcombe, tango
from service.decision.bootstrap import Block, quantile_difference
from service.decision.detector import Stretch
from service.decision.economics import Estimate, mean_of_blocks, money_shown, net_benefit, ratio_of_blocks
from service.decision.ending import planned_max_pairs
from service.decision.energy import Repeats, energy_distance, noise_share_of
from service.decision.eprocess import (
    Differences,
    confidence_sequence,
    log_e_harm,
    log_e_noninferiority,
    log_mean,
)
from service.decision.evidence import Attribution, Evidence, Measured, Shown
from service.decision.explain import explain
from service.decision.ladder import decide_ladder
from service.decision.multiplicity import attempt_alpha, holm, log_e_holm, log_harm_threshold
from service.decision.planning import (
    discordance_limit,
    fixed_pairs,
    max_pairs,
    pairs_to_pass,
)
from service.decision.policy import (
    AlphaSpending,
    Asked,
    BaselineAfterApproval,
    Criterion,
    Gate,
    Hypothesis,
    LadderRule,
    Policy,
    Role,
)
from service.decision.quantile import fewest_values, limit_ranks
from service.decision.strata import worst_strata
from service.decision.tally import Tally, Triple
from service.decision.tenants import read_tenants
from service.decision.thresholds import thresholds
from service.decision.unscored import log_e_uneven
from service.decision.verdict import Decision

MOST = 10**7


@st.composite
def tables(draw: st.DrawFn, most: int = MOST) -> tuple[int, int, int]:
    """(n, harm, benefit): edges as often as anything between them."""
    n = draw(st.sampled_from([0, 1, 2, most]) | st.integers(0, most))
    harm = draw(st.sampled_from([0, n]) | st.integers(0, n))
    benefit = draw(st.sampled_from([0, n - harm]) | st.integers(0, n - harm))
    return n, harm, benefit


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    """Conversations of up to six pairs, many or none of each."""
    units = {}
    for _ in range(draw(st.integers(0, 4))):
        pairs = draw(st.integers(1, 6))
        harm = draw(st.integers(0, pairs))
        benefit = draw(st.integers(0, pairs - harm))
        units[Triple(pairs, harm, benefit)] = draw(st.sampled_from([1, MOST]) | st.integers(1, MOST))
    concordant = sum((t.pairs - t.harm - t.benefit) * count for t, count in units.items())
    return Tally(
        units=units,
        both_failed=draw(st.sampled_from([0, concordant]) | st.integers(0, concordant)),
        unscored={"timeout": draw(st.sampled_from([0, MOST]) | st.integers(0, MOST))},
    )


margins = st.sampled_from([1e-6, 0.01, 0.999]) | st.floats(1e-6, 0.999)
error_rates = st.sampled_from([1e-12, 0.05, 1 - 1e-9]) | st.floats(1e-12, 1 - 1e-9)
levels = st.sampled_from([1e-9, 0.9, 1 - 1e-12]) | st.floats(1e-9, 1 - 1e-12)
differences = st.dictionaries(
    st.sampled_from([-1.0, 0.0, 1.0]) | st.floats(-1, 1), st.integers(0, MOST), max_size=6
)


def is_ordered(limits: tuple[float, float]) -> bool:
    return -1 <= limits[0] <= limits[1] <= 1


@given(differences, margins, error_rates)
@example({1.0: MOST}, 0.999, 1e-12)
@example({-1.0: MOST}, 1e-6, 1 - 1e-9)
def test_e_values_and_limits_of_fractional_differences(
    histogram: dict[float, int], margin: float, alpha: float
) -> None:
    given_ = Differences.of(histogram)
    for log_e in (
        log_e_noninferiority(given_, margin),
        log_e_harm(given_, margin),
        log_e_harm(given_, 0.0),
        log_e_noninferiority(given_, -margin),
    ):
        assert math.isfinite(log_e)
        assert math.isfinite(log_mean(log_e, 0.0))
    assert is_ordered(confidence_sequence(given_, alpha))


@given(tables(), margins, levels, st.floats(1, 1e4))
@example((1, 1, 0), 0.999, 1 - 1e-12, 1.0)
def test_tangos_score(table: tuple[int, int, int], margin: float, level: float, effect: float) -> None:
    n, harm, benefit = table
    assert math.isfinite(tango.z(harm, benefit, n, margin, design_effect=effect))
    assert math.isfinite(tango.z(harm, benefit, n, -margin, design_effect=effect))
    assert math.isfinite(tango.z(harm, benefit, n, 0.0, design_effect=effect))
    assert 0 <= tango.noninferiority_p(harm, benefit, n, margin, design_effect=effect) <= 1
    assert 0 <= tango.harm_p(harm, benefit, n, margin, design_effect=effect) <= 1
    assert is_ordered(tango.interval(harm, benefit, n, level, design_effect=effect))


@settings(max_examples=25)
@given(tables(most=5000) | st.tuples(st.integers(100, MOST), st.integers(0, 50), st.integers(0, 50)), margins)
@example((MOST, 0, 0), 0.01)
@example((MOST, 50, 50), 0.999)
@example((1, 0, 1), 0.999)
@example((5000, 0, 5000), 1e-6)
@example((5000, 5000, 0), 0.999)
def test_the_exact_p_where_it_is_cheap(table: tuple[int, int, int], margin: float) -> None:
    n, harm, benefit = table
    assert exact.is_cheap(harm, benefit, n)
    assert 0 <= exact.exact_p(harm, benefit, n, margin) <= 1


@given(tables(), st.data(), levels)
def test_newcombes_interval(table: tuple[int, int, int], data: st.DataObject, level: float) -> None:
    n, harm, benefit = table
    rest = n - harm - benefit
    both_failed = data.draw(st.sampled_from([0, rest]) | st.integers(0, rest))
    limits = newcombe.interval(both_failed=both_failed, harm=harm, benefit=benefit, n=n, level=level)
    assert is_ordered(limits)


@given(tables())
def test_mcnemars_p_values(table: tuple[int, int, int]) -> None:
    _, harm, benefit = table
    for p_value in (mcnemar.exact_p, mcnemar.mid_p, mcnemar.harm_p):
        assert 0 <= p_value(harm, benefit) <= 1


@given(tallies())
@pytest.mark.parametrize("statistic", [clusters.obuchowski, clusters.durkalski, clusters.yang])
def test_chi_squared_of_conversations(statistic: Callable[[Tally], float], tally: Tally) -> None:
    found = statistic(tally)
    assert math.isfinite(found)
    assert found >= 0


@given(tallies())
def test_the_design_effect(tally: Tally) -> None:
    assert 1 <= clusters.design_effect(tally) < math.inf
    variance = clusters.cluster_variance(tally)
    assert variance is None or 0 <= variance < math.inf


@given(tables(), margins, error_rates, st.floats(0.001, 0.999), st.floats(0, 1))
def test_planned_pairs(
    table: tuple[int, int, int], margin: float, alpha: float, power: float, noise: float
) -> None:
    n, harm, benefit = table
    psi = discordance_limit(harm + benefit, n)
    assert 0 <= psi <= 1
    assert 0 <= fixed_pairs(margin=margin, discordance=psi, alpha=alpha, power=power) < math.inf
    planned = max_pairs(
        margin=margin, alpha=alpha, discordant=harm + benefit, pairs=n, control_discordance=noise
    )
    assert planned >= 0


@given(tallies(), margins, error_rates)
def test_the_forecast(tally: Tally, margin: float, alpha: float) -> None:
    needed = pairs_to_pass(Differences.of_tally(tally), margin, -math.log(alpha))
    assert needed is None or needed >= 0


@given(tallies(), tallies())
def test_losses_of_two_arms(tally: Tally, control: Tally) -> None:
    assert math.isfinite(log_e_uneven(tally, control))
    noise = noise_share_of(control, tally)
    assert noise is None or noise >= 0


@given(
    st.lists(st.floats(0, 1), max_size=8),
    st.lists(st.floats(-1e6, 1e6) | st.just(-math.inf), max_size=12),
    st.integers(1, 10**9),
    st.integers(1, 10**6),
)
def test_shared_error_rates(p_values: list[float], log_e: list[float], many: int, attempt: int) -> None:
    assert all(0 <= adjusted <= 1 for adjusted in holm(p_values))
    adjusted = log_e_holm(log_e)
    assert not any(math.isnan(each) for each in adjusted)
    assert all(
        each <= own + 1e-9 or own == each == -math.inf for each, own in zip(adjusted, log_e, strict=True)
    )
    assert math.isfinite(log_harm_threshold(criteria=many, tiers=many, strata=many, alpha=1e-12))
    assert 0 < attempt_alpha(0.05, attempt) < 0.05


@given(st.integers(0, MOST), st.floats(0.001, 0.999), levels)
def test_ranks_of_a_quantile(n: int, share: float, level: float) -> None:
    lower, upper = limit_ranks(n, share, level=level)
    assert lower is None or 1 <= lower <= n
    assert upper is None or 1 <= upper <= n
    assert lower is None or upper is None or lower <= upper
    assert fewest_values(share, level=level) >= 1


@given(st.lists(st.floats(-1, 1), max_size=20), st.sampled_from([0.0, 0.01, 0.999]))
def test_the_detector(units: list[float], margin: float) -> None:
    stretch = Stretch(margin=margin).after(units)
    assert not math.isnan(stretch.log_statistic)
    assert stretch.alarm in (True, False)


@given(
    st.lists(
        st.builds(
            Repeats,
            conversation=st.sampled_from("abc"),
            baseline=st.tuples(st.floats(0, 1), st.floats(0, 1)),
            candidate=st.tuples(st.floats(0, 1), st.floats(0, 1)),
        ),
        max_size=8,
    )
)
def test_the_energy_distance(repeats: list[Repeats]) -> None:
    found = energy_distance(repeats)
    assert (found.value is None) == (not repeats)
    assert found.value is None or math.isfinite(found.value)
    assert found.p_value is None or 0 <= found.p_value <= 1


costs = st.lists(st.sampled_from([0.1, 0.3]) | st.floats(1e-6, 1e6), min_size=2, max_size=6)


@given(costs, costs, levels, st.floats(-1, 1), st.floats(0, 1), st.floats(0, 100))
@example([0.1, 0.1], [0.3, 0.3], 0.9, 0.0, 0.0, 4.0)
@example([0.1, 0.1], [0.3, 0.3], 1 - 1e-16, 0.0, 0.0, 4.0)
def test_money(
    baseline: list[float], candidate: list[float], level: float, rise: float, half: float, weight: float
) -> None:
    means = [mean_of_blocks(costs, level=level) for costs in (baseline, candidate)]
    failures = Estimate(value=rise, lower=rise - half, upper=rise + half)
    benefit = net_benefit(baseline=means[0], candidate=means[1], failure_rise=failures, weight=weight)
    assert math.isfinite(benefit.lower)
    assert math.isfinite(benefit.upper)
    assert money_shown(benefit).reason
    # With equal degrees of freedom Fieller's limits exist exactly where the denominator's exclude 0.
    if len(baseline) == len(candidate) and means[1].upper - means[1].value < 0.999 * means[1].value:
        ratio = ratio_of_blocks(baseline, candidate, level=level)
        assert math.isfinite(ratio.upper - ratio.lower)


@given(
    st.lists(st.builds(Block, baseline=costs, candidate=costs), min_size=2, max_size=3),
    st.floats(0.001, 0.999),
    levels,
)
@settings(max_examples=30)
def test_the_block_bootstrap(blocks: list[Block], share: float, level: float) -> None:
    found = quantile_difference(blocks, share, seed=1, level=level, repeats=100)
    assert math.isfinite(found.value)
    assert math.isfinite(found.upper - found.lower)


@given(
    st.dictionaries(st.sampled_from("abcdef"), tallies(), max_size=4),
    margins,
    st.sampled_from(Hypothesis),
    st.booleans(),
    error_rates,
    st.sampled_from(AlphaSpending),
    st.sampled_from(LadderRule),
    st.sampled_from(BaselineAfterApproval),
    st.integers(1, 1000),
)
def test_strata_tenants_and_the_last_pair(
    parts: dict[str, Tally],
    margin: float,
    hypothesis: Hypothesis,
    withheld: bool,
    alpha: float,
    spending: AlphaSpending,
    rule: LadderRule,
    baseline: BaselineAfterApproval,
    attempt: int,
) -> None:
    criterion = Criterion(evaluator="x", margin=margin, hypothesis=hypothesis)
    policy = Policy(
        criteria=(criterion,),
        alpha_accept=alpha,
        alpha_strata=alpha,
        alpha_warn=alpha,
        alpha_spending=spending,
        ladder_rule=rule,
        baseline_after_approval=baseline,
    )
    limits = thresholds(policy, tiers=3, attempt=attempt, strata=len(parts) + 1)
    assert 0 <= limits.alpha_accept < 1
    assert math.isfinite(limits.strata)
    worst = worst_strata(policy, criterion, parts, withheld=withheld)
    assert all(math.isfinite(each.log_e_harm) for each in worst)
    readings = read_tenants(policy, criterion, parts, limits)
    assert len(readings) == sum(tally.n > 0 for tally in parts.values())
    assert all(math.isfinite(each.log_e_without) for each in readings)
    assert math.fsum(each.share for each in readings) == pytest.approx(1 if readings else 0)
    for tally in parts.values():
        planned = planned_max_pairs(policy, criterion, tally, limits, control=tally)
        assert (planned is None) == (tally.n < criterion.min_pairs)
        assert planned is None or planned >= criterion.min_pairs


of_criteria = st.dictionaries(st.sampled_from(["x", "y", "z"]), tallies(), max_size=3)
parts_of_criteria = st.dictionaries(
    st.sampled_from(["x", "y", "z"]),
    st.dictionaries(st.sampled_from("abc"), tallies(), max_size=2),
    max_size=2,
)
measured = st.none() | st.builds(Measured, shown=st.sampled_from(Shown), reason=st.just("measured"))


@settings(max_examples=40)
@given(st.data())
def test_every_evidence_under_every_policy_has_a_verdict_and_its_explanation(data: st.DataObject) -> None:
    roles = data.draw(st.permutations([Role.DECISIVE, *data.draw(st.tuples(*[st.sampled_from(Role)] * 2))]))
    policy = Policy(
        criteria=tuple(
            Criterion(
                evaluator=name,
                role=role,
                margin=data.draw(margins),
                hypothesis=data.draw(st.sampled_from(Hypothesis)),
                max_pairs=data.draw(st.none() | st.integers(300, MOST)),
            )
            for name, role in zip("xyz", roles, strict=True)
        ),
        alpha_accept=data.draw(error_rates),
        alpha_strata=data.draw(error_rates),
        gates={gate: data.draw(st.sampled_from(Asked)) for gate in Gate} | {Gate.QUALITY: Asked.REQUIRED},
        alpha_spending=data.draw(st.sampled_from(AlphaSpending)),
        ladder_rule=data.draw(st.sampled_from(LadderRule)),
        tenant_share_cap=data.draw(st.none() | st.floats(0.01, 1)),
        longest_seconds=data.draw(st.none() | st.floats(0, 1e9)),
    )
    candidates = [
        Evidence(
            model="m",
            tier=tier,
            epoch="e",
            attempt=data.draw(st.integers(1, 1000)),
            tiers_under_test=2,
            tallies=data.draw(of_criteria),
            control=data.draw(st.none() | of_criteria),
            strata=data.draw(parts_of_criteria),
            strata_under_test=3,
            tenants=data.draw(parts_of_criteria),
            attribution=data.draw(st.none() | st.just(Attribution(unsettled="replicas disagree"))),
            slo=data.draw(measured),
            money=data.draw(measured),
            max_pairs=data.draw(st.dictionaries(st.sampled_from("xyz"), st.integers(1, MOST))),
            age_seconds=data.draw(st.none() | st.floats(0, 1e9)),
        )
        for tier in ("a", "b")
    ]
    for evidence, verdict in zip(candidates, decide_ladder(policy, candidates), strict=True):
        assert verdict.reasons
        assert verdict.not_shown <= (verdict.decision is Decision.UNDECIDED)
        if verdict.decision is Decision.ACCEPT:
            assert {finding.decision for finding in verdict.decisive} == {Decision.ACCEPT}
        if any(finding.decision is Decision.REJECT for finding in verdict.decisive):
            assert verdict.decision is not Decision.ACCEPT
        for finding in verdict.decisive:
            assert finding.log_e_holm is not None
            assert finding.log_e_holm <= finding.log_e.harm + 1e-9
        assert explain(policy, evidence, verdict)[-1].title == "decision"
