"""One run's report with numbers that belong together: W8A8 is accepted, W4A16 breaks JSON and is rejected."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from service.decision.policy import Gate, Role
from service.decision.verdict import Decision, GateState
from service.report.advised import Batch, Begin, Capacity, CauseTold, PatternTold, Prefix
from service.report.changes import as_earlier
from service.report.conclusion import concluded
from service.report.document import (
    Finding,
    Ledger,
    PairLine,
    Report,
    Run,
    SingleLook,
    TierReport,
    VerdictFigures,
)
from service.report.measured import (
    Concurrency,
    ConcurrencyPoint,
    EngineSeries,
    Figure,
    Latency,
    Load,
    Metric,
    Money,
    RatePoint,
    Sweep,
)

BEGAN = 1_796_007_600.0
DAY = 86_400.0
SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995)
PASSED = dict.fromkeys(Gate, GateState.PASSED)
MANIFEST: dict[str, Any] = {
    "format": 1,
    "model": "qwen3-32b",
    "seed": 20_261_130,
    "slo": {"ttft_seconds": 1.5, "tpot_seconds": 0.08},
    "tiers": [
        {"tier": "bf16", "engine": "vllm 0.32.0", "price_per_hour": 60.0, "weights": "bf16"},
        {"tier": "w8a8", "engine": "vllm 0.32.0", "price_per_hour": 60.0, "weights": "int8"},
        {"tier": "w4a16-fp8kv", "engine": "vllm 0.32.0", "price_per_hour": 30.0, "weights": "int4"},
    ],
    "corpus": {"digest": "6b1f", "requests": 2_400},
    "policy": {"digest": "a3c9"},
}


CAPACITY = Capacity(
    batch=Batch(
        start=Begin(concurrency=16, reason="16 at once keeps P95 of TPOT at most 64 ms; 32 does not"),
        cheapest=Begin(concurrency=16, reason="27.41 a million at 16; 33.33 a million at 32"),
        turn=Begin(concurrency=None, reason="not reached: no step past the cheapest has more tokens"),
        pool="34.0% more tokens at 32 at once than at 16: as said, 30% to 50%",
        pool_gain=0.34,
        chunk="keep",
        chunk_reason="P95 is 1.9 times the median of TTFT, 1.4 times of TPOT",
    ),
    prefix=Prefix(
        advice="linear",
        reason="41.0% of prefill tokens are reused: what is reused is gained, in proportion",
        hours=24.0,
        rate=Figure(value=0.41),
        speed_up=1.23,
        doubts=("6 at once: below 8 prefill hardly queues",),
    ),
    causes=(
        CauseTold(
            stage="ttft",
            cause="queue",
            hurts="P95 of TTFT is 784.7 ms, its limit 600 ms",
            evidence="4.0 requests wait on average",
            remedies=("more backends",),
            experiment="the same prompts at half the rate",
        ),
    ),
    not_judged=("memory",),
    patterns=(
        PatternTold(pattern="idle cache", state="absent", reason="each prefix is asked for 40 times an hour"),
        PatternTold(pattern="empty batch", state="found", reason="up to 256 may run at once, and 6 did"),
        PatternTold(pattern="blunt weights", state="not_told", reason="needs the bits"),
    ),
)


def finding(
    criterion: str, decision: Decision, *, n: int, harm: int, benefit: int, half: float, **more: Any
) -> Finding:
    """One criterion with limits around its estimate."""
    estimate = (harm - benefit) / n
    told: dict[str, Any] = {
        "criterion": criterion,
        "role": Role.DECISIVE,
        "decision": decision,
        "reason": "shown within the margin of 0.01: e-value 41.2 >= 20",
        "n": n,
        "conversations": n - 13,
        "harm": harm,
        "benefit": benefit,
        "estimate": estimate,
        "lower": estimate - half,
        "upper": estimate + half,
        "level": 0.9,
        "margin": 0.01,
        "single_look": SingleLook(
            difference=Figure(
                value=estimate, lower=estimate - half / 2, upper=estimate + half / 2, level=0.9
            ),
            p_value=0.0132,
            exact_p=0.0141,
            design_effect=1.27,
        ),
        "control": Figure(value=0.004, n=2_000),
    }
    return Finding(**(told | more))


def latency(
    metric: Metric,
    median: float,
    spread: float,
    limit: float | None,
    n: int,
    difference: Figure | None = None,
) -> Latency:
    """Log-normal, by its quantiles."""
    normal = (
        -2.326,
        -1.645,
        -1.282,
        -0.842,
        -0.524,
        -0.253,
        0,
        0.253,
        0.524,
        0.842,
        1.282,
        1.645,
        1.881,
        2.326,
        2.576,
    )
    points = tuple((share, median * math.exp(spread * z)) for share, z in zip(SHARES, normal, strict=True))
    known = dict(points)
    return Latency(
        metric=metric,
        n=n,
        never=3,
        limit_seconds=limit,
        p95_difference=difference,
        distribution=points,
        quantiles={
            f"{share:g}": Figure(
                value=known[share], lower=0.96 * known[share], upper=1.05 * known[share], level=0.95, n=n
            )
            for share in (0.5, 0.95, 0.99)
        },
    )


def load(scale: float, passed: int, rise: Figure | None, shown: str = "") -> Load:
    """The SLO part of a tier whose times are `scale` times the baseline's."""
    return Load(
        blocks=8,
        offered=2_400,
        passed=passed,
        failed={"timeout": 3},
        pass_rate=Figure(
            value=passed / 2_400, lower=passed / 2_400 - 0.004, upper=passed / 2_400 + 0.003, level=0.95
        ),
        rise=rise,
        margin=0.01,
        shown=shown,
        arrivals="poisson",
        asked_rate=4.0,
        achieved_rate=3.998,
        lag_p99_seconds=0.0009,
        identity_error_seconds=0.00002,
        latencies=(
            latency(Metric.TTFT, 0.42 * scale, 0.38, 1.5, 2_400, faster(0.785, scale)),
            latency(Metric.TPOT, 0.041 * scale, 0.22, 0.08, 2_391, faster(0.0589, scale)),
            latency(Metric.E2E, 9.1 * scale, 0.5, None, 2_400, faster(20.7, scale)),
        ),
    )


def faster(p95: float, scale: float) -> Figure | None:
    """The difference of P95; None for the baseline itself."""
    value = (scale - 1) * p95
    return Figure(value=value, lower=1.1 * value, upper=0.9 * value, level=0.95, n=8) if value else None


def sweep(best: float, most: float, *, reached: bool = True) -> Sweep:
    """Goodput that rises to `most` at `best` and falls behind it."""
    shares = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25)
    points = [
        RatePoint(
            rate=round(best * share, 2),
            goodput=most * (share if share <= 1 else 1 - 2.4 * (share - 1)),
            pass_rate=0.995 if share <= 1 else 0.8,
            ttft_p95_seconds=0.6 * (1 + share**4),
            tpot_p95_seconds=0.05 * (1 + 0.4 * share**3),
            invalid=("over-saturated: concurrency grows by 0.4 a second",) if share > 1.2 else (),
        )
        for share in shares
    ]
    fresh = [RatePoint(rate=best, goodput=most * 0.98, fresh=True, pass_rate=0.99) for _ in range(2)]
    return Sweep(
        points=(*points, *fresh), best_rate=best if reached else None, note="" if reached else "budget spent"
    )


def concurrency(step: float) -> Concurrency:
    """TPOT that grows by `step` with each doubling."""
    points = tuple(
        ConcurrencyPoint(
            concurrency=2**power, tpot_p95_seconds=0.02 + step * 2**power / 64, throughput=38.0 * 2**power
        )
        for power in range(8)
    )
    within = [each.concurrency for each in points if (each.tpot_p95_seconds or 1) <= 0.064]
    return Concurrency(points=points, limit_seconds=0.064, largest=within[-1])


def money(price: float, speed: float, *, base: float | None = None, rise: float = 0.0) -> Money:
    """The costs of a tier; against the baseline's request cost where one is given."""
    unit = price * 1e6 / (speed * 3600)
    request = unit * 210 / 1e6

    def about(value: float, share: float) -> Figure:
        half = abs(value) * share
        return Figure(value=value, lower=value - half, upper=value + half, level=0.9)

    told = Money(
        price_per_hour=price,
        tokens_per_second=Figure(value=speed, lower=0.98 * speed, upper=1.02 * speed, level=0.9, n=8),
        mean_output_tokens=210.0,
        unit_cost=about(unit, 0.02),
        retry_rate=Figure(value=0.012, lower=0.008, upper=0.017, level=0.95),
        effective_cost=about(unit / 0.988, 0.02),
        request_cost=about(request, 0.02),
    )
    if base is None:
        return told
    net = base - request - 4 * base * rise
    half = 0.03 * base + 0.01 * base
    return replace(
        told,
        failure_rise=Figure(value=rise, lower=rise - 0.002, upper=rise + 0.003, level=0.9, n=1_840),
        failure_weight=4.0,
        net_benefit=Figure(value=net, lower=net - half, upper=net + half, level=0.9),
        net_benefit_per_million=Figure(
            value=net * 1e6 / 210, lower=(net - half) * 1e6 / 210, upper=(net + half) * 1e6 / 210, level=0.9
        ),
        shown=f"net benefit per request {net:.4g}: lower limit > 0",
    )


def engine(level: float) -> tuple[EngineSeries, ...]:
    """Two numbers over twenty minutes, with a hole."""
    usage = tuple(
        (30.0 * look, None if look in (11, 12) else level * (1 - math.exp(-look / 6)) + 0.02 * math.sin(look))
        for look in range(40)
    )
    running = tuple((30.0 * look, float(round(18 * level + 3 * math.sin(look / 2)))) for look in range(40))
    return EngineSeries(metric="kv_usage", points=usage), EngineSeries(metric="running", points=running)


def sample() -> Report:
    """The whole report, its conclusion included; the run before had W8A8 undecided and slower."""
    base = money(60.0, 1_450.0)
    assert base.request_cost is not None
    cost = base.request_cost.value
    tiers = (
        TierReport(
            name="bf16",
            baseline=True,
            load=load(1.0, 2_385, None),
            sweep=sweep(7.0, 1_450.0),
            concurrency=concurrency(0.09),
            money=base,
            engine=engine(0.82),
            engine_not_told=("prefix_hit_rate",),
            capacity=CAPACITY,
        ),
        TierReport(
            name="w8a8",
            verdict=VerdictFigures(
                decision=Decision.ACCEPT,
                findings=(
                    finding("structured_output", Decision.ACCEPT, n=1_840, harm=5, benefit=6, half=0.006),
                    finding("long_context_recall", Decision.ACCEPT, n=1_212, harm=4, benefit=2, half=0.0071),
                    finding(
                        "refusal", Decision.ACCEPT, n=2_260, harm=2, benefit=3, half=0.0049, both_ways=True
                    ),
                    finding(
                        "tool_use", Decision.UNDECIDED, n=410, harm=3, benefit=1, half=0.021, role=Role.SHOWN
                    ),
                ),
                gates=PASSED,
                epoch="5d0c",
            ),
            load=load(0.78, 2_391, Figure(value=-0.0025, lower=-0.0061, upper=0.0012, level=0.9, n=2_400)),
            sweep=sweep(10.5, 2_190.0),
            concurrency=concurrency(0.05),
            money=money(60.0, 2_190.0, base=cost, rise=0.0005),
            engine=engine(0.61),
        ),
        TierReport(
            name="w4a16-fp8kv",
            verdict=VerdictFigures(
                decision=Decision.REJECT,
                reasons=("structured_output: harm beyond the margin of 0.01 shown: e-value 8.1e+06 >= 120",),
                findings=(
                    finding(
                        "structured_output",
                        Decision.REJECT,
                        n=1_840,
                        harm=84,
                        benefit=9,
                        half=0.013,
                        warn=True,
                        reason="harm beyond the margin of 0.01 shown: e-value 8.1e+06 >= 120",
                    ),
                    finding(
                        "long_context_recall",
                        Decision.UNDECIDED,
                        n=1_212,
                        harm=14,
                        benefit=6,
                        half=0.012,
                        more_pairs=2_400,
                    ),
                    finding(
                        "refusal", Decision.ACCEPT, n=2_260, harm=4, benefit=3, half=0.0062, both_ways=True
                    ),
                ),
                gates=PASSED
                | {
                    Gate.QUALITY: GateState.FAILED,
                    Gate.MONEY: GateState.UNDECIDED,
                    Gate.COVERAGE: GateState.NOT_ASKED,
                },
                epoch="77ab",
            ),
            load=load(0.71, 2_389, Figure(value=-0.0017, lower=-0.0052, upper=0.0019, level=0.9, n=2_400)),
            sweep=sweep(14.0, 3_045.0, reached=False),
            concurrency=concurrency(0.035),
            money=money(30.0, 3_045.0, base=cost, rise=0.041),
            engine=engine(0.33),
        ),
    )
    report = Report(
        run=Run(
            id="20261130-030000-a1b2c3",
            model="qwen3-32b",
            state="done",
            began_at=BEGAN,
            ended_at=BEGAN + 3 * 3_600 + 12 * 60,
            begun_by="schedule",
            blocks=94,
            blocks_done=94,
            tokens=5_214_800,
        ),
        made_at=BEGAN + 4 * 3_600,
        slo_ttft_seconds=1.5,
        slo_tpot_seconds=0.08,
        tiers=tiers,
        ledger=ledger(),
        manifest=MANIFEST,
    )
    return concluded(replace(report, earlier=as_earlier(week_before(report))))


def ledger() -> Ledger:
    """A week's requests; 41 captures went missing."""
    return Ledger(
        seen=1_204_310,
        skipped={"not_sampled": 1_122_004, "not_generation": 20_118, "too_large": 1_400, "opted_out": 310},
        sampled=60_478,
        shipped=60_012,
        dropped={"buffer_full": 402, "store_down": 64},
        processed=59_640,
        expired=311,
        lost=41,
        waiting=20,
        pairs=(
            PairLine(
                tier="w8a8",
                arm="candidate",
                evaluator="structured_output",
                due=1_862,
                scored=1_840,
                unscored={"shadow": 12, "unsupported_schema": 10},
            ),
            PairLine(tier="bf16", arm="control", evaluator="structured_output", due=2_000, scored=2_000),
        ),
    )


def week_before(report: Report) -> Report:
    """The same model a week earlier: W8A8 undecided, its cost higher, another engine, no W4A16."""
    bf16, w8a8, _ = report.tiers
    assert w8a8.verdict is not None
    older = replace(
        w8a8,
        verdict=replace(w8a8.verdict, decision=Decision.UNDECIDED),
        money=money(60.0, 1_900.0, base=0.0024, rise=0.0005),
    )
    manifest = {**MANIFEST, "policy": {"digest": "9f00"}, "corpus": {"digest": "11aa", "requests": 2_400}}
    return replace(
        report,
        run=replace(
            report.run,
            id="20261123-030000-0f0f0f",
            began_at=BEGAN - 7 * DAY,
            ended_at=BEGAN - 7 * DAY + 9_000,
        ),
        made_at=BEGAN - 7 * DAY + 9_100,
        tiers=(bf16, older),
        manifest=manifest,
        earlier=None,
    )
