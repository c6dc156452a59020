"""What comes after what, over whole jobs of tiers whose figures are arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from service.load.figures import BlockFigures
from service.load.plan import Part
from service.store.load.manifest import JobPlan, Manifest
from tests.workers.load_tiers import ModelTier, lagged, manifest_of, tiers
from workers.load_plan import Next, Opening, Spent, next_block
from workers.load_reading import best_of, cost_blocks, cost_rate, of_part, rounds_of, steps_of

PLAN = JobPlan(warm_up_seconds=6.0, settle_seconds=2.0, window_seconds=80.0, blocks=8, rate=4.0)
OPENING = Opening(slo_block_seconds=10.0)
TWO = tiers(bf16=ModelTier(capacity=10.0), w8a8=ModelTier(capacity=20.0))
Damage = Callable[[int, BlockFigures], BlockFigures]


def whole(
    known: Mapping[str, ModelTier] = TWO,
    plan: JobPlan = PLAN,
    opening: Opening = OPENING,
    damage: Damage = lambda number, figures: figures,
) -> tuple[Manifest, list[BlockFigures], Next]:
    """A job from its first block to its end."""
    manifest = manifest_of(list(known), plan)
    blocks: list[BlockFigures] = []
    while True:
        spent = Spent(
            seconds=sum(each.plan.seconds for each in blocks),
            tokens=sum(each.spent_output_tokens for each in blocks),
        )
        following = next_block(manifest, opening, blocks, spent)
        if following.plan is None:
            return manifest, blocks, following
        for each in (following.plan, *following.beside):
            blocks.append(damage(len(blocks), known[each.tier].block(each)))
        assert len(blocks) < 500, "it never ends"


def test_parts_follow_one_another_and_gates_get_their_eight_blocks() -> None:
    manifest, blocks, end = whole()
    parts = [each.plan.part for each in blocks]
    assert parts == sorted(parts, key=list(Part).index)
    assert set(parts) == set(Part)
    assert Counter(each.plan.tier for each in of_part(blocks, Part.SLO)) == {"bf16": 8, "w8a8": 8}
    assert len(rounds_of(manifest, blocks)) == 8
    for tier in manifest.tiers:
        assert len(cost_blocks(manifest, blocks, tier)) == 8
    assert (end.failed, end.remarks) == ("", ())


@pytest.mark.parametrize("arms", [2, 3])
def test_rounds_that_run_together_have_one_turn_and_the_blocks_that_they_have_apart(arms: int) -> None:
    more = tiers(**TWO, **({"w4a16": ModelTier(capacity=15.0)} if arms == 3 else {}))
    together = replace(PLAN, arms="together")
    manifest = manifest_of(list(more), together)
    blocks: list[BlockFigures] = []
    turns: list[tuple[Part, int]] = []
    while (following := next_block(manifest, OPENING, blocks, Spent())).plan is not None:
        plans = (following.plan, *following.beside)
        assert len({(each.part, each.seed) for each in plans}) == 1
        assert len({each.tier for each in plans}) == len(plans)
        turns.append((following.plan.part, len(plans)))
        blocks += [more[each.tier].block(each) for each in plans]
        assert len(blocks) < 500, "it never ends"
    sizes = {part: {size for each, size in turns if each is part} for part in Part}
    assert sizes == {Part.SLO: {arms}, Part.SWEEP: {1}, Part.COST: {arms}, Part.CONCURRENCY: {1}}
    _, apart, _ = whole(more)
    assert [each.plan for each in blocks] == [each.plan for each in apart]


def test_a_tier_that_needs_further_blocks_of_the_cost_gets_them_alone() -> None:
    spoiled: list[int] = []

    def saturate(number: int, figures: BlockFigures) -> BlockFigures:
        if figures.plan.part is Part.COST and figures.plan.tier == "bf16" and not spoiled:
            spoiled.append(number)
            return replace(figures, invalid=("over_saturated: at its best rate",))
        return figures

    manifest, blocks, end = whole(plan=replace(PLAN, arms="together"), damage=saturate)
    assert {tier: len(of_part(blocks, Part.COST, tier)) for tier in manifest.tiers} == {"bf16": 9, "w8a8": 8}
    assert (end.failed, end.remarks) == ("", ())


def test_a_round_that_the_budget_affords_in_part_is_not_begun() -> None:
    """A first round takes 16 s of each arm, every further one 12 s."""
    affords = replace(PLAN, arms="together", budget_seconds=32.0 + 24.0 + 12.0)
    _, blocks, end = whole(plan=affords)
    assert len(blocks) == 4
    assert any("the budget of 68 s of load is spent" in each for each in end.remarks)
    _, blocks, _ = whole(plan=replace(affords, arms="interleaved"))
    assert len(blocks) == 5


def test_both_arms_of_a_round_get_the_same_arrivals_in_an_order_that_changes() -> None:
    _, blocks, _ = whole()
    slo = of_part(blocks, Part.SLO)
    rounds = [slo[place : place + 2] for place in range(0, 16, 2)]
    for one, other in rounds:
        assert replace(one.plan, tier="") == replace(other.plan, tier="")
    assert len({one.plan.seed for one, _ in rounds}) == 8
    assert len({one.plan.tier for one, _ in rounds}) == 2, "no arm always comes first"


def test_an_arm_is_warmed_up_once_and_settles_before_each_further_block() -> None:
    _, blocks, _ = whole()
    first = {blocks[0].plan.tier: blocks[0], blocks[1].plan.tier: blocks[1]}
    assert {each.plan.warm_up_seconds for each in first.values()} == {6.0}
    assert {each.plan.warm_up_seconds for each in blocks[2:]} == {2.0}


def test_cost_is_measured_at_each_tiers_own_best_rate_and_never_by_the_sweeps_blocks() -> None:
    manifest, blocks, _ = whole()
    rates = {tier: cost_rate(manifest, blocks, tier) for tier in manifest.tiers}
    assert 8.5 < (rates["bf16"] or 0) <= 10.0
    assert 17.5 < (rates["w8a8"] or 0) <= 20.0
    for tier in manifest.tiers:
        assert {each.plan.part for each in cost_blocks(manifest, blocks, tier)} == {Part.COST}
    seeds = [{each.plan.seed for each in of_part(blocks, part)} for part in (Part.SWEEP, Part.COST)]
    assert not seeds[0] & seeds[1]


def test_the_most_requests_at_once_that_keep_tpot_are_found() -> None:
    manifest, blocks, _ = whole(tiers(bf16=ModelTier(at_once=6), w8a8=ModelTier(at_once=13)))
    kept = {
        tier: max(step.concurrency for step in steps_of(blocks, tier) if (step.tpot_p95 or 1) <= 0.04)
        for tier in manifest.tiers
    }
    assert kept["bf16"] == 6
    assert kept["w8a8"] in (12, 13)


def test_what_is_next_depends_on_the_blocks_alone_so_a_job_goes_on_where_it_was() -> None:
    manifest, blocks, _ = whole()
    for number in range(len(blocks)):
        known = [BlockFigures.of(each.document()) for each in blocks[:number]]
        following = next_block(manifest, OPENING, known, Spent())
        assert following.plan == blocks[number].plan


def test_a_round_that_the_generator_spoiled_is_made_up_for() -> None:
    def spoil(number: int, figures: BlockFigures) -> BlockFigures:
        return lagged(figures) if number in (2, 7) else figures

    manifest, blocks, _ = whole(damage=spoil)
    assert len(of_part(blocks, Part.SLO)) == 20
    assert len(rounds_of(manifest, blocks)) == 8


def test_a_candidate_that_cannot_keep_up_shows_something_and_a_baseline_that_cannot_does_not() -> None:
    slow = tiers(bf16=ModelTier(), w8a8=ModelTier(capacity=3.0))
    manifest, blocks, _ = whole(slow)
    assert len(rounds_of(manifest, blocks)) == 8
    assert len(of_part(blocks, Part.SLO)) == 16
    both = tiers(bf16=ModelTier(capacity=3.0), w8a8=ModelTier())
    manifest, blocks, end = whole(both)
    assert len(of_part(blocks, Part.SLO)) == 4, "given up early"
    assert any("4 requests/s are more than the baseline keeps up with" in remark for remark in end.remarks)


def test_a_tier_that_answers_nobody_ends_the_job() -> None:
    _, blocks, end = whole(tiers(bf16=ModelTier(), w8a8=ModelTier(dead=True)))
    assert len(blocks) <= 4
    assert "w8a8 answered nothing in 2 blocks in a row (unreachable 40)" in end.failed


def given_up(figures: BlockFigures, *, answered: int = 0) -> BlockFigures:
    """The block as it is where nobody of its window was answered, and nobody waited any longer."""
    return replace(
        figures,
        passed=0,
        failed={"given_up": figures.offered},
        answered=answered,
        goodput=0.0,
        throughput=0.0,
        mean_output_tokens=None,
        invalid=(f"nothing_answered: given_up {figures.offered}",),
    )


def test_a_sweep_that_asks_for_far_too_much_goes_down_and_ends_no_job() -> None:
    """At a start of 64 times its capacity, with nobody answered in the first three blocks."""

    def drown(number: int, figures: BlockFigures) -> BlockFigures:
        plan = figures.plan
        return given_up(figures) if plan.part is Part.SWEEP and (plan.rate or 0) > 1.5 else figures

    slow = tiers(bf16=ModelTier(capacity=10.0), w8a8=ModelTier(capacity=20.0))
    manifest, blocks, end = whole(slow, damage=drown)
    assert end.failed == ""
    rates = [each.plan.rate or 0 for each in of_part(blocks, Part.SWEEP, "bf16")]
    assert sum(rate > 1.5 for rate in rates) >= 3
    for tier in manifest.tiers:
        assert best_of(manifest, blocks, tier).reached
        assert len(cost_blocks(manifest, blocks, tier)) == 8


def test_a_tier_that_hangs_in_its_sweep_ends_the_job_soon_after_it() -> None:
    def hang(number: int, figures: BlockFigures) -> BlockFigures:
        hangs = figures.plan.tier == "w8a8" and figures.plan.part is not Part.SLO
        return given_up(figures) if hangs else figures

    manifest, blocks, end = whole(damage=hang)
    assert "w8a8 answered nothing in 2 blocks in a row (given_up" in end.failed
    assert len(of_part(blocks, Part.SWEEP, "w8a8")) == 6
    assert len(of_part(blocks, Part.CONCURRENCY, "w8a8")) == 2
    assert not best_of(manifest, blocks, "w8a8").reached
    _, blocks, end = whole(damage=hang, plan=replace(PLAN, parts=("slo", "sweep", "cost")))
    assert end.failed == ""
    assert any(remark.startswith("cost of w8a8: not reached: no token met the SLO") for remark in end.remarks)


def test_a_tier_that_never_answered_anybody_ends_the_job_in_its_sweep() -> None:
    def hang(number: int, figures: BlockFigures) -> BlockFigures:
        return given_up(figures) if figures.plan.tier == "w8a8" else figures

    _, blocks, end = whole(damage=hang, plan=replace(PLAN, parts=("sweep", "cost")))
    assert "w8a8 answered nothing in 2 blocks in a row" in end.failed
    assert len(of_part(blocks, Part.SWEEP, "w8a8")) == 2


def test_a_tier_that_answered_beside_the_window_is_not_silent() -> None:
    def drown(number: int, figures: BlockFigures) -> BlockFigures:
        return given_up(figures, answered=1) if figures.plan.tier == "w8a8" else figures

    _, blocks, end = whole(damage=drown, plan=replace(PLAN, parts=("slo",)))
    assert end.failed == ""
    assert Counter(each.plan.tier for each in blocks)["w8a8"] > 2


def test_blocks_that_began_on_a_busy_engine_are_said() -> None:
    def busy(number: int, figures: BlockFigures) -> BlockFigures:
        chosen = figures.plan.tier == "w8a8" and number < 6
        return replace(figures, busy_before=("http://w8a8:1",)) if chosen else figures

    _, blocks, end = whole(damage=busy)
    own = sum(each.plan.tier == "w8a8" for each in blocks)
    [remark] = [each for each in end.remarks if "at work for others" in each]
    assert remark.startswith(f"w8a8: 3 of {own} blocks began while http://w8a8:1 was at work")


def test_the_outlook_expects_no_blocks_of_a_cost_that_will_not_be_measured() -> None:
    def saturate(number: int, figures: BlockFigures) -> BlockFigures:
        fresh = figures.plan.part is Part.COST and figures.plan.tier == "bf16"
        return replace(figures, invalid=("over_saturated: always",)) if fresh else figures

    _, blocks, end = whole(damage=saturate)
    assert end.outlook.blocks == len(blocks)
    _, blocks, end = whole(tiers(bf16=ModelTier(), w8a8=ModelTier(capacity=1e9)))
    assert of_part(blocks, Part.COST) == []
    assert end.outlook.blocks == len(blocks)


def test_a_best_rate_that_was_not_reached_is_said_and_costs_nothing() -> None:
    limitless = tiers(bf16=ModelTier(), w8a8=ModelTier(capacity=1e9))
    manifest, blocks, end = whole(limitless)
    assert not best_of(manifest, blocks, "w8a8").reached
    assert of_part(blocks, Part.COST) == []
    assert any(remark.startswith("cost of w8a8: not reached: still rising") for remark in end.remarks)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"count_ratio": 0.14}, "w8a8: 7.1 tokens for each event with output, where bf16 tells 1"),
        ({"contradicted": 40}, "w8a8: its usage tells fewer tokens than came"),
        ({"without_usage": 40}, "w8a8: it tells no usage"),
    ],
)
def test_tokens_that_the_cross_check_does_not_bear_out_are_said(told: dict[str, Any], words: str) -> None:
    def lie(number: int, figures: BlockFigures) -> BlockFigures:
        honest = replace(figures, count_ratio=1.0)
        return replace(honest, **told) if figures.plan.tier == "w8a8" else honest

    _, _, end = whole(damage=lie)
    assert [remark for remark in end.remarks if remark.startswith(f"tokens of {words}")]


@pytest.mark.parametrize(("times", "share"), [(1, 0.9), (2, 0.81), (8, 0.9**8)])
def test_a_tier_that_turns_out_not_to_keep_up_is_measured_a_tenth_below(times: int, share: float) -> None:
    spoiled: list[int] = []

    def saturate(number: int, figures: BlockFigures) -> BlockFigures:
        if figures.plan.part is Part.COST and figures.plan.tier == "bf16" and len(spoiled) < times:
            spoiled.append(number)
            return replace(figures, invalid=("over_saturated: at its best rate",))
        return figures

    manifest, blocks, _ = whole(damage=saturate)
    best = best_of(manifest, blocks, "bf16").rate
    assert cost_rate(manifest, blocks, "bf16") == pytest.approx(share * (best or 0))
    assert len(cost_blocks(manifest, blocks, "bf16")) == 8


def test_a_block_of_the_cost_that_the_generator_spoiled_says_nothing_of_the_tier() -> None:
    def spoil(number: int, figures: BlockFigures) -> BlockFigures:
        both = ("generator_lag: 50 ms", "over_saturated: for want of the generator")
        chosen = figures.plan.part is Part.COST and number % 8 == 0
        return replace(figures, invalid=both) if chosen else figures

    manifest, blocks, _ = whole(damage=spoil)
    assert any(each.lagged for each in of_part(blocks, Part.COST))
    for tier in manifest.tiers:
        assert cost_rate(manifest, blocks, tier) == best_of(manifest, blocks, tier).rate
        assert len(cost_blocks(manifest, blocks, tier)) == 8


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"budget_seconds": 250.0}, "the budget of 250 s of load is spent"),
        ({"budget_tokens": 100_000}, "the budget of 100,000 tokens is spent"),
    ],
)
def test_what_the_budget_does_not_afford_is_not_begun_and_said(budget: dict[str, Any], words: str) -> None:
    _, blocks, end = whole(plan=replace(PLAN, **budget))
    [remark] = [each for each in end.remarks if "budget" in each]
    assert words in remark
    assert "not measured to the end: " in remark
    assert end.failed == ""
    spent = sum(each.plan.seconds for each in blocks), sum(each.spent_output_tokens for each in blocks)
    assert spent[0] <= 250.0 or "budget_tokens" in budget
    assert spent[1] <= 100_000 or "budget_seconds" in budget


def test_without_power_there_is_no_slo_part_and_the_rest_goes_on() -> None:
    _, blocks, end = whole(opening=Opening(without_power="slo_power: affordable requests (9) < 1,500"))
    assert of_part(blocks, Part.SLO) == []
    assert of_part(blocks, Part.COST) != []
    assert "slo: slo_power: affordable requests (9) < 1,500" in end.remarks
    assert blocks[0].plan.warm_up_seconds == 6.0


def test_only_the_parts_that_were_asked_for_are_measured() -> None:
    _, blocks, _ = whole(plan=replace(PLAN, parts=("slo",)))
    assert {each.plan.part for each in blocks} == {Part.SLO}
    _, blocks, _ = whole(plan=replace(PLAN, parts=("concurrency",)))
    assert {each.plan.part for each in blocks} == {Part.CONCURRENCY}


def test_the_outlook_is_right_at_the_end_and_never_less_than_what_is_done() -> None:
    manifest, blocks, end = whole()
    assert end.outlook.blocks == len(blocks)
    assert end.outlook.seconds == pytest.approx(sum(each.plan.seconds for each in blocks))
    for number in range(len(blocks)):
        seen = next_block(manifest, OPENING, blocks[:number], Spent()).outlook
        assert seen.blocks > number
        assert seen.seconds > sum(each.plan.seconds for each in blocks[:number])
    assert next_block(manifest, OPENING, [], Spent()).outlook.blocks > 40
