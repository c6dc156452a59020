"""A sweep against tiers whose goodput is known at every rate."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from service.decision.economics import unit_cost
from service.load.figures import BlockFigures
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.sweep import Best, Search, Tried, best, next_rate, tries
from tests.load import queues

Tier = Callable[[float], Tried]


def tier(capacity: float, *, steep: float = 2.0, collapse: float = 1.3) -> Tier:
    """Passes everything up to its capacity, then ever less; beyond `collapse` times that, its queue grows."""

    def block(rate: float) -> Tried:
        passing = 1.0 if rate <= capacity else (capacity / rate) ** (1 + steep)
        return Tried(rate=rate, goodput=100 * rate * passing, over_saturated=rate > collapse * capacity)

    return block


def sweep(search: Search, asked: Tier) -> tuple[Best, list[Tried]]:
    tried: list[Tried] = []
    while (rate := next_rate(search, tried)) is not None:
        tried.append(asked(rate))
        assert len(tried) <= search.blocks
    return best(search, tried), tried


@pytest.mark.parametrize("capacity", [0.3, 1.0, 4.7, 20.0, 333.0])
def test_the_best_rate_is_found_within_the_precision(capacity: float) -> None:
    search = Search(start=4.0, blocks=40)
    found, tried = sweep(search, tier(capacity))
    assert found.reached, found.reason
    assert found.rate is not None
    assert capacity / 1.1 <= found.rate <= capacity * 1.1
    assert found.goodput == max(each.goodput for each in tried if not each.over_saturated)
    assert len(tried) < 30


def test_a_tier_twice_as_fast_has_twice_the_goodput() -> None:
    one, _ = sweep(Search(start=4.0, precision=1.05), tier(6.0))
    two, _ = sweep(Search(start=4.0, precision=1.05), tier(12.0))
    assert two.goodput / one.goodput == pytest.approx(2.0, rel=0.06)


def test_a_tier_twice_as_fast_costs_half_at_its_own_best_rate_and_the_same_under_equal_arrivals() -> None:
    price, search = 60.0, Search(start=4.0, precision=1.05)

    def cost(rate: float, served_in: float) -> float:
        fresh = [queues.block(rate, served_in=served_in, part=Part.COST, seed=seed) for seed in range(8)]
        assert all(each.valid for each in fresh)
        goodput = sum(each.goodput for each in fresh) / len(fresh)
        return unit_cost(price_per_hour=price, tokens_per_second=goodput)

    one, _ = sweep(search, lambda rate: tries([queues.block(rate, served_in=0.2)])[0])
    two, _ = sweep(search, lambda rate: tries([queues.block(rate, served_in=0.1)])[0])
    assert one.reached
    assert two.reached
    assert one.rate == pytest.approx(5.0, rel=0.06)
    assert two.rate == pytest.approx(10.0, rel=0.06)
    assert one.rate is not None
    assert two.rate is not None
    assert cost(two.rate, 0.1) / cost(one.rate, 0.2) == pytest.approx(0.5, rel=0.1)
    assert cost(4.0, 0.1) == pytest.approx(cost(4.0, 0.2))


@pytest.mark.parametrize("seed", range(20))
def test_few_requests_that_came_by_chance_or_were_short_do_not_look_like_a_tier_that_gives_way(
    seed: int,
) -> None:
    chance = random.Random(seed)
    search = Search(start=4.0, blocks=40)
    blocks: list[BlockFigures] = []

    def short(rate: float) -> BlockFigures:
        plan = BlockPlan(
            tier="w8a8", part=Part.SWEEP, arrivals=Arrivals.POISSON, rate=rate, seed=1, window_seconds=2.0
        )
        offered = max(1, round(2 * rate * chance.uniform(0.4, 1.6)))
        tokens = chance.uniform(50, 150)
        met = offered if rate <= 100 else int(offered * (100 / rate) ** 3)
        return BlockFigures(
            plan=plan,
            offered=offered,
            passed=met,
            goodput=met * tokens / 2,
            throughput=offered * tokens / 2,
            mean_output_tokens=tokens,
        )

    while (rate := next_rate(search, tries(blocks))) is not None:
        blocks.append(short(rate))
    found = best(search, tries(blocks))
    assert found.reached, found.reason
    assert found.rate == pytest.approx(100, rel=0.1)


def test_what_still_rises_at_the_highest_rate_was_not_reached() -> None:
    found, tried = sweep(Search(start=1.0, most=10.0), tier(50.0))
    assert not found.reached
    assert found.rate == max(each.rate for each in tried) == 10.0
    assert found.reason.startswith("not reached: still rising at 10 requests/s")


def test_a_tier_that_never_keeps_up_has_no_best_rate() -> None:
    found, tried = sweep(Search(start=4.0, least=0.5), tier(0.01))
    assert (found.rate, found.reached) == (None, False)
    assert min(each.rate for each in tried) == 0.5
    assert "over-saturated at every rate" in found.reason


def test_a_tier_that_never_meets_the_slo_has_no_best_rate_either() -> None:
    found, _ = sweep(Search(start=4.0, least=1.0), lambda rate: Tried(rate=rate, goodput=0.0))
    assert not found.reached
    assert "no token met the SLO" in found.reason


def test_a_start_that_is_too_high_goes_down() -> None:
    found, tried = sweep(Search(start=100.0), tier(3.0))
    assert tried[0].rate == 100.0
    assert found.reached
    assert found.rate == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("saturated", [False, True])
def test_a_tier_that_answers_nobody_in_time_is_asked_for_ever_less_by_ever_longer_steps(
    saturated: bool,
) -> None:
    found, tried = sweep(
        Search(start=64.0, least=1.0), lambda rate: Tried(rate=rate, goodput=0.0, over_saturated=saturated)
    )
    rates = [each.rate for each in tried]
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[-1]) == (64.0, 1.0)
    assert len(rates) == 6
    assert not found.reached


def test_a_start_far_beyond_the_tier_costs_few_blocks_and_the_best_is_found_all_the_same() -> None:
    """Nothing of it met the SLO there, though its queue did not grow: that is no reason to ask for more."""

    def cliff(rate: float) -> Tried:
        return Tried(rate=rate, goodput=rate if rate <= 3.0 else 0.0)

    found, tried = sweep(Search(start=100.0), cliff)
    assert tried[1].rate < tried[0].rate
    assert found.reached
    assert found.rate == pytest.approx(3.0, rel=0.1)
    assert len(tried) <= 13


def test_a_start_that_is_the_best_looks_to_both_sides() -> None:
    found, tried = sweep(Search(start=5.0), tier(5.0))
    assert found.rate == 5.0
    assert min(each.rate for each in tried) < 5.0 < max(each.rate for each in tried)


def test_of_rates_with_one_goodput_the_lowest_is_the_best() -> None:
    tried = [Tried(rate=rate, goodput=goodput) for rate, goodput in ((1, 50), (2, 99.5), (3, 100), (4, 60))]
    assert best(Search(start=1.0), tried).rate == 2


def test_a_rate_that_the_generator_spoiled_is_tried_once_more_and_then_is_the_limit() -> None:
    def limited(rate: float) -> Tried:
        return Tried(rate=rate, goodput=0.0, lagged=True) if rate > 20 else tier(100.0)(rate)

    found, tried = sweep(Search(start=8.0), limited)
    spoiled = [each.rate for each in tried if each.lagged]
    assert len(spoiled) == 2
    assert len(set(spoiled)) == 1
    assert not found.reached
    assert "the generator was too slow at 27/s" in found.reason
    assert found.rate == 18.0


def test_a_generator_that_cannot_keep_the_first_rate_says_so() -> None:
    found, tried = sweep(Search(start=8.0), lambda rate: Tried(rate=rate, goodput=0.0, lagged=True))
    assert len(tried) == 2
    assert found.reason == "not reached: the generator was too slow at 8/s"


def test_the_blocks_that_may_be_spent_bound_the_sweep() -> None:
    found, tried = sweep(Search(start=0.01, blocks=3), tier(50.0))
    assert len(tried) == 3
    assert not found.reached


def test_nothing_tried_is_nothing_known() -> None:
    assert best(Search(start=1.0), []) == Best(
        rate=None, goodput=0.0, reached=False, reason="not reached: no block tells anything"
    )


@pytest.mark.parametrize("more", [{"start": 0}, {"start": 9, "most": 8}, {"start": 1, "precision": 1}])
def test_bounds_that_cannot_be_are_refused(more: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="<"):
        Search(**more)  # type: ignore[arg-type]
