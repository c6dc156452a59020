"""The curve of one pass, held to an LRU cache that is run size by size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from service.capacity.prefix_replay import (
    Prompt,
    of_all_traffic,
    replay,
    sizes,
    split_of_all_traffic,
    split_pools,
)
from service.traces import read_trace
from tests.evaluators.conftest import suites as suites


def run_lru(prompts: Sequence[Prompt], *, unit: int, block: int, size: int) -> int:
    """Blocks that a cache of `size` finds: looked up from the beginning, kept from the end."""
    kept: OrderedDict[tuple[object, ...], None] = OrderedDict()
    found = 0
    for prompt in prompts:
        chain: tuple[object, ...] = (prompt.tenant,)
        names = []
        left = prompt.tokens
        for name in prompt.named:
            for part in range(min(left, unit) // block):
                chain = (*chain, (name, part))
                names.append(chain)
            left -= unit
            if left <= 0:
                break
        for each in names[: (prompt.tokens - 1) // block]:
            if each not in kept:
                break
            found += 1
        for each in reversed(names):
            kept[each] = None
            kept.move_to_end(each)
        while len(kept) > size:
            kept.popitem(last=False)
    return found


prompts_of_whole_units = some.lists(
    some.builds(
        lambda names, tenant: Prompt(tokens=8 * len(names), named=tuple(names), tenant=tenant),
        some.lists(some.integers(0, 3), min_size=1, max_size=5),
        some.sampled_from(("a", "b")),
    ),
    min_size=1,
    max_size=20,
)


@given(prompts=prompts_of_whole_units, block=some.sampled_from((2, 4, 8)), size=some.integers(1, 60))
def test_it_is_what_an_lru_cache_of_that_size_finds(prompts: list[Prompt], block: int, size: int) -> None:
    found = replay(prompts, unit=8, block=block, capacities=(size,))
    assert found.points[0].reused == block * run_lru(prompts, unit=8, block=block, size=size)


def _ended(names: list[int], part: int, tenant: str) -> Prompt:
    """A last name for fewer tokens is another name, as in Mooncake's traces."""
    named = (*names[:-1], names[-1] if part == 8 else 100 + part)
    return Prompt(tokens=8 * (len(names) - 1) + part, named=named, tenant=tenant)


prompts_with_ends = some.lists(
    some.builds(
        _ended,
        some.lists(some.integers(0, 2), min_size=1, max_size=4),
        some.integers(1, 8),
        some.sampled_from(("a", "b")),
    ),
    min_size=1,
    max_size=20,
)


@given(prompts=prompts_with_ends, block=some.sampled_from((1, 2, 4, 8)), size=some.integers(1, 60))
def test_prompts_that_end_within_a_name_are_replayed_as_exactly(
    prompts: list[Prompt], block: int, size: int
) -> None:
    found = replay(prompts, unit=8, block=block, capacities=(size,))
    assert found.points[0].reused == block * run_lru(prompts, unit=8, block=block, size=size)


@given(prompts=prompts_of_whole_units)
def test_a_larger_cache_never_reuses_less_and_the_largest_forgets_nothing(prompts: list[Prompt]) -> None:
    found = replay(prompts, unit=8, block=8)
    rates = [point.rate for point in found.points]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(found.unlimited)
    assert found.points[-1].blocks == found.distinct


def test_only_whole_blocks_are_kept_and_the_last_token_is_computed() -> None:
    same = Prompt(tokens=30, named=(1, 2))
    found = replay([same, same], unit=16, block=8, capacities=(100,))
    assert found.points[0].reused == 24
    exact = Prompt(tokens=16, named=(1,))
    assert replay([exact, exact], unit=16, block=8, capacities=(100,)).points[0].reused == 8


def test_the_same_name_after_another_beginning_is_another_block() -> None:
    found = replay(
        [Prompt(tokens=16, named=(1, 9)), Prompt(tokens=16, named=(2, 9))], unit=8, block=8, capacities=(9,)
    )
    assert found.points[0].reused == 0
    assert found.knee is None


def test_hits_per_request_say_more_than_is_saved() -> None:
    one = [Prompt(tokens=80, named=(1, *range(10 * n, 10 * n + 9))) for n in range(1, 11)]
    found = replay(one, unit=8, block=8)
    assert found.requests_hit == pytest.approx(0.9)
    assert found.unlimited == pytest.approx(0.09)


def test_the_knee_is_where_more_cache_gains_little() -> None:
    """Three prompts of 4 blocks take turns: 12 blocks find all; one that comes back late asks for 92 more."""
    turns = [Prompt(tokens=33, named=(n, n, n, n)) for n in (1, 2, 3)] * 50
    late = [Prompt(tokens=81, named=tuple(range(100 * n, 100 * n + 10))) for n in range(1, 10)]
    found = replay([*turns, *late, turns[0]], unit=8, block=8)
    assert found.knee is not None
    assert 12 <= found.knee.blocks <= 16
    assert found.points[-1].blocks == 102


def test_tenants_share_nothing_and_a_noisy_one_dilutes_the_pool() -> None:
    steady = [Prompt(tokens=33, named=(1, 2, 3, 4), tenant="steady")] * 10
    noisy = [Prompt(tokens=161, named=tuple(range(20 * n, 20 * n + 20)), tenant="noisy") for n in range(10)]
    mixed = [each for both in zip(steady, noisy, strict=True) for each in both]
    by = {each.tenant: each for each in split_pools(mixed, unit=8, block=8, blocks=20)}
    assert by["steady"].shared == 0, "20 blocks of the noisy tenant push out all of it each time"
    assert by["steady"].blocks == 3
    assert by["steady"].own == pytest.approx(9 * 24 / 330)
    assert by["noisy"].own == by["noisy"].shared == 0


def test_sizes_double_and_end_where_nothing_is_forgotten() -> None:
    assert sizes(20) == (1, 2, 3, 4, 6, 8, 11, 16, 20)
    assert sizes(0) == (1,)


@pytest.mark.parametrize(
    ("unit", "block", "capacities", "told"),
    [
        (512, 48, (), "no whole number of blocks of 48"),
        (16, 32, (), "no whole number"),
        (16, 16, (0,), "at least 1 block"),
    ],
)
def test_impossible_sizes_are_refused(unit: int, block: int, capacities: tuple[int, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        replay([Prompt(tokens=1, named=())], unit=unit, block=block, capacities=capacities)
    with pytest.raises(ValueError, match="no requests"):
        replay([], unit=16, block=16)


def test_a_prompt_of_nothing_is_none_and_one_request_reuses_nothing() -> None:
    with pytest.raises(ValueError, match="at least 1 token"):
        Prompt(tokens=0, named=(1,))
    alone = replay([Prompt(tokens=40, named=(1, 2, 3))], unit=16, block=16)
    assert (alone.prompts, alone.unlimited, alone.requests_hit, alone.knee) == (1, 0.0, 0.0, None)
    nameless = replay([Prompt(tokens=7, named=())] * 2, unit=16, block=16)
    assert (nameless.distinct, nameless.unlimited, nameless.knee) == (0, 0.0, None)
    (split,) = split_pools([Prompt(tokens=7, named=())], unit=16, block=16, blocks=1)
    assert (split.shared, split.own, split.blocks) == (0.0, 0.0, 1)


def test_mooncake_s_conversations_are_what_a_cache_run_size_by_size_finds(suites: Path) -> None:
    """Whole named blocks, and the engine's own of 16 tokens, where the last of a prompt is in part."""
    with (suites / "traces/mooncake/conversation_trace.jsonl").open() as file:
        trace = read_trace([next(file) for _ in range(400)])
    prompts = [Prompt(tokens=each.prompt_tokens, named=each.prefix) for each in trace.requests]
    for block, asked in ((512, (16, 256, 2048, 8192)), (128, (64, 1024, 16_384))):
        found = replay(prompts, unit=512, block=block, capacities=asked)
        for point in found.points:
            assert point.reused == block * run_lru(prompts, unit=512, block=block, size=point.blocks)
        assert found.points[0].rate < found.points[-1].rate


def test_the_page_s_figures_of_mooncake_s_conversations_hold(suites: Path) -> None:
    with (suites / "traces/mooncake/conversation_trace.jsonl").open() as file:
        trace = read_trace(file)
    prompts = [Prompt(tokens=each.prompt_tokens, named=each.prefix) for each in trace.requests]
    found = replay(prompts, unit=512, block=16, capacities=(32, 16_384, 1_048_576))
    assert [f"{point.rate:.1%}" for point in found.points] == ["4.3%", "4.3%", "34.4%"]
    assert f"{found.unlimited:.1%}" == "37.4%"
    assert found.requests_hit > 0.999
    curve = replay(prompts, unit=512, block=16)
    top = max(point.rate for point in curve.points)
    end = min(point.blocks for point in curve.points if point.rate > top - 1e-9)
    above = {point.blocks: point.rate / top - point.blocks / end for point in curve.points}
    assert curve.knee is not None
    assert curve.knee.blocks == max(above, key=lambda blocks: above[blocks]) == 1_048_576


def test_of_a_sample_sizes_are_told_for_all_traffic_and_rates_are_its_own() -> None:
    """A hundred conversations of five turns, in turns; of every fifth, a fifth of the cache finds as much."""
    turns = [
        Prompt(tokens=16 * (turn + 1), named=tuple(100 * talk + block for block in range(turn + 1)))
        for turn in range(5)
        for talk in range(100)
    ]
    sampled = [prompt for prompt in turns if (prompt.named[0] // 100) % 5 == 0]
    sizes_of_all = (50, 100, 250, 500)
    whole = replay(turns, unit=16, block=16, capacities=sizes_of_all)
    part = replay(sampled, unit=16, block=16, capacities=[size // 5 for size in sizes_of_all])
    told = of_all_traffic(part, 0.2)
    assert [point.blocks for point in told.points] == list(sizes_of_all)
    assert [point.rate for point in told.points] == pytest.approx(
        [point.rate for point in whole.points], abs=0.02
    )
    assert told.distinct == whole.distinct
    assert 0 < told.points[-1].rate == told.unlimited


def test_pools_of_tenants_are_told_for_all_traffic_as_well() -> None:
    prompts = [Prompt(tokens=32, named=(1, 2), tenant=tenant) for tenant in "aabb"]
    split = split_pools(prompts, unit=16, block=16, blocks=4)
    told = split_of_all_traffic(split, 0.5)
    assert [each.blocks for each in told] == [2 * each.blocks for each in split]
    assert [(each.shared, each.own) for each in told] == [(each.shared, each.own) for each in split]
