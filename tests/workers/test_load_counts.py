"""What a load worker tells Prometheus of the blocks it ran."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from service.fleet import Slo
from service.load.block import Block as Run
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.reckoning import reckon
from service.load.timed import Timed
from service.store.load.jobs import BlockState
from service.store.load.load_blocks import Block
from workers.load_counts import counted, ended
from workers.metrics import page

SLO = Slo(ttft_seconds=0.5, tpot_seconds=0.1)
OPEN = BlockPlan(
    tier="w8a8", part=Part.SLO, arrivals=Arrivals.CONSTANT, rate=10, warm_up_seconds=1, window_seconds=10
)
CLOSED = BlockPlan(
    tier="w8a8",
    part=Part.CONCURRENCY,
    arrivals=Arrivals.CLOSED,
    concurrency=2,
    warm_up_seconds=1,
    window_seconds=10,
)


def run(plan: BlockPlan, *, lag: float = 0.004) -> Run:
    """Eleven seconds of ten requests each."""
    requests = tuple(
        Timed(
            ordinal=number,
            request=number,
            scheduled=number / 10,
            begun=number / 10 + lag,
            first_token=number / 10 + 0.2,
            last_token=number / 10 + 0.3,
            ended=number / 10 + 0.3,
            tokens=5,
            counted=5,
            prompt_tokens=100,
        )
        for number in range(110)
    )
    return Run(figures=reckon(plan, requests, slo=SLO, ticks=[0.0]), timed=requests)


def test_rates_asked_and_achieved_and_the_lag_are_counted() -> None:
    found = counted("m", run(OPEN))
    where = 'model="m",tier="w8a8"'
    assert found[f'tiergate_load_requests_total{{count="due",{where}}}'] == 100
    assert found[f'tiergate_load_requests_total{{count="taken_up",{where}}}'] == 100
    assert found[f'tiergate_load_requests_total{{count="met",{where}}}'] == 100
    assert found[f'tiergate_load_tokens_total{{kind="prompt",{where}}}'] == 11_000
    assert found[f'tiergate_load_tokens_total{{kind="output",{where}}}'] == 550
    assert found['tiergate_load_lag_seconds_bucket{le="0.002"}'] == 0
    assert found['tiergate_load_lag_seconds_bucket{le="0.005"}'] == 110
    assert found['tiergate_load_lag_seconds_bucket{le="+Inf"}'] == 110
    assert not any("invalid" in each for each in found)


def test_a_block_that_must_not_be_used_is_told_with_its_reason() -> None:
    found = counted("m", run(OPEN, lag=1.05))
    assert found['tiergate_load_invalid_blocks_total{model="m",reason="generator_lag",tier="w8a8"}'] == 1
    assert found['tiergate_load_lag_seconds_bucket{le="0.5"}'] == 0
    assert found['tiergate_load_lag_seconds_bucket{le="2"}'] == 110


def test_a_closed_loop_has_no_schedule_to_be_late_for() -> None:
    found = counted("m", run(CLOSED))
    assert {each.partition("{")[0] for each in found} == {"tiergate_load_tokens_total"}


def test_blocks_are_counted_by_how_they_ended() -> None:
    blocks = [
        Block(job_id="j", number=number, tier=tier, part="slo", plan={}, state=BlockState.LEASED)
        for number, tier in enumerate(("bf16", "w8a8"))
    ]
    assert ended("m", blocks, "given_back") == {
        f'tiergate_load_blocks_total{{ending="given_back",model="m",part="slo",tier="{tier}"}}': 1
        for tier in ("bf16", "w8a8")
    }


def test_prometheus_reads_the_lag_as_a_histogram_of_seconds() -> None:
    families = {each.name: each for each in text_string_to_metric_families(page(counted("m", run(OPEN))))}
    lag = families["tiergate_load_lag_seconds"]
    assert lag.type == "histogram"
    samples = {(sample.name, sample.labels.get("le", "")): sample.value for sample in lag.samples}
    assert samples["tiergate_load_lag_seconds_count", ""] == 110
    assert abs(samples["tiergate_load_lag_seconds_sum", ""] - 110 * 0.004) < 1e-6
    bounds = [sample.labels["le"] for sample in lag.samples if sample.name.endswith("_bucket")]
    assert bounds == sorted(bounds, key=float)
    assert bounds[-1] == "+Inf"
