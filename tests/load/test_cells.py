"""A cell of a matrix: the block that measures it, and what the block tells."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from service.capacity.matrix import Spot
from service.capacity.matrix_cells import PromptClass, Row
from service.engines.load import EngineLoad
from service.load.block import Block, measure
from service.load.cells import MOST_PROMPTS, cell_of, plan_of, prompts_for
from service.load.figures import BlockFigures, EngineSample, Quantiles
from service.load.plan import Arrivals
from tests.load.scripted import chat, load_of, scripted
from tests.patience import PATIENCE

SPOT = Spot(row=Row(prompt=PromptClass(name="512", tokens=512), batch_tokens=2048), concurrency=2)


async def test_a_block_of_a_cell_tells_its_figures() -> None:
    plan = plan_of("w8a8", SPOT, seed=3, warm_up_seconds=0.1, window_seconds=0.3)
    assert (plan.arrivals, plan.concurrency, plan.seed) == (Arrivals.CLOSED, 2, 3)
    async with scripted(chat) as backend:
        backend.page = (
            'vllm:num_requests_running{engine="0"} 2\nvllm:num_requests_waiting{engine="0"} 1\n'
            'vllm:kv_cache_usage_perc{engine="0"} 0.25\nvllm:num_preemptions_total{engine="0"} 3\n'
            "process_resident_memory_bytes 5e8\n"
        )
        async with asyncio.timeout(PATIENCE):
            block = await measure(plan, load_of(backend, engine_seconds=0.05))
    cell = cell_of(SPOT, block, kv_bytes=1e9)
    assert cell.row == SPOT.row
    assert (cell.concurrency, cell.batch_tokens, cell.invalid) == (2, 2048, ())
    assert cell.passed == cell.offered > 0
    assert (cell.prompt_tokens, cell.output_tokens) == (7.0, 3.0)
    assert cell.goodput == cell.throughput > 0
    assert (cell.running, cell.waiting, cell.kv_usage, cell.kv_bytes) == (2.0, 1.0, 0.25, 2.5e8)
    assert (cell.preemptions, cell.memory, cell.prefix_rate, cell.evictions) == (0.0, 5e8, None, None)


def block_of(*samples: EngineSample) -> Block:
    plan = plan_of("w8a8", SPOT, seed=1, warm_up_seconds=10.0, window_seconds=10.0)
    figures = BlockFigures(plan=plan, offered=5, passed=5, ttft=Quantiles(n=5, p50=0.1, p95=0.2))
    return Block(figures=replace(figures, engine=samples), timed=())


def sample(at: float, backend: str, **load: float) -> EngineSample:
    return EngineSample(at=at, backend=backend, load=EngineLoad(**load) if load else None)


def test_counters_are_told_by_what_they_added_over_all_backends() -> None:
    cell = cell_of(
        SPOT,
        block_of(
            sample(-0.1, "a", preemptions=5, prefix_queries=100, prefix_hits=10, evicted_tokens=0),
            sample(-0.1, "b", preemptions=1, prefix_queries=0, prefix_hits=0, evicted_tokens=64),
            sample(15.0, "a", preemptions=7, prefix_queries=300, prefix_hits=60, evicted_tokens=16),
            sample(15.0, "b", preemptions=1, prefix_queries=100, prefix_hits=25, evicted_tokens=64),
            sample(21.0, "a", preemptions=1, prefix_queries=50, prefix_hits=0, evicted_tokens=0),
        ),
    )
    # Of `a` 2, and after its restart 1 more.
    assert cell.preemptions == 3
    assert cell.evictions == 16
    assert cell.prefix_rate == (50 + 25) / (200 + 100 + 50)


def test_gauges_are_those_of_the_window_and_of_all_backends_together() -> None:
    cell = cell_of(
        SPOT,
        block_of(
            sample(1.0, "a", running=90, kv_usage=1.0),  # of the warm-up
            sample(11.0, "a", running=2, kv_usage=0.5),
            sample(11.0, "b", running=3, kv_usage=0.7),
            sample(16.0, "a", running=4, kv_usage=0.6),
            sample(16.0, "b"),  # silent: nobody knows the sum
            sample(19.0, "a", running=50, kv_usage=0.65),
        ),
    )
    assert cell.running == ((2 + 3) + (4 + 3)) / 2
    assert cell.kv_usage == 0.7
    assert cell.kv_bytes is None, "no engine said how many bytes it has"


def test_an_engine_that_tells_nothing_leaves_nothing_known() -> None:
    cell = cell_of(SPOT, block_of(sample(11.0, "a")), kv_bytes=1e9)
    known = (cell.running, cell.waiting, cell.kv_usage, cell.kv_bytes, cell.preemptions, cell.memory)
    assert known == (None,) * 6
    assert cell.prompt_tokens is None


def test_a_cell_has_enough_prompts_and_none_has_more_than_memory_takes() -> None:
    assert prompts_for(1, characters=3000) == 64
    assert prompts_for(16, characters=3000) == 256
    assert prompts_for(500, characters=3000) == MOST_PROMPTS
    assert prompts_for(500, characters=1 << 20) == 64
    assert prompts_for(1, characters=1 << 30) == 1
