"""Tiers by arithmetic: what a block shows of one that keeps its SLO up to so many requests a second."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.load.figures import BlockFigures, Columns, Quantiles
from service.load.plan import Arrivals, BlockPlan
from service.store.load.manifest import FORMAT, JobPlan, Manifest, plan_document

TTFT, TPOT = 1.0, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTier:
    """What a tier is like."""

    capacity: float = 10.0
    """Requests a second."""
    tokens: int = 100
    """Of an answer."""
    at_once: int = 20
    """Requests that keep 80 % of TPOT."""
    misses: float = 0.0
    """Share of requests that miss the SLO below its capacity."""
    dead: bool = False
    bytes_per_token: float | None = None

    def block(self, plan: BlockPlan) -> BlockFigures:
        """What this plan shows of it; the same plan, the same figures."""
        if plan.arrivals is Arrivals.CLOSED:
            assert plan.concurrency is not None
            tpot = 0.8 * TPOT * (plan.concurrency - 0.5) / self.at_once
            return BlockFigures(
                plan=plan,
                offered=50,
                passed=50,
                tpot=Quantiles(n=50, p95=tpot),
                throughput=plan.concurrency / tpot,
            )
        assert plan.rate is not None
        offered = max(1, round(plan.rate * plan.window_seconds))
        if self.dead:
            return BlockFigures(
                plan=plan,
                offered=offered,
                passed=0,
                failed={"unreachable": offered},
                invalid=("nothing answered",),
            )
        # Apart from the schedule's seed, which is the same for all arms of a round.
        chance = random.Random(f"{plan.seed}:{self.capacity}")
        keeps_up = plan.rate <= self.capacity
        met = tuple(keeps_up and chance.random() >= self.misses for _ in range(offered))
        distance = plan.window_seconds / offered
        scheduled = tuple(plan.warm_up_seconds + number * distance for number in range(offered))
        ttft = tuple(0.1 + 0.1 * chance.random() if good else 2.0 for good in met)
        spent = self.tokens * round(plan.rate * plan.seconds)
        return BlockFigures(
            plan=plan,
            offered=offered,
            passed=sum(met),
            goodput=sum(met) * self.tokens / plan.window_seconds,
            throughput=offered * self.tokens / plan.window_seconds,
            mean_output_tokens=float(self.tokens),
            bytes_per_token=self.bytes_per_token,
            spent_output_tokens=spent,
            invalid=()
            if keeps_up
            else (
                "over_saturated: requests in flight grew by 0.5 (0.4 to 0.6) a second around a mean of 12",
            ),
            columns=Columns(
                scheduled=scheduled,
                request=tuple(range(offered)),
                ttft=ttft,
                tpot=(0.01,) * offered,
                e2e=ttft,
                tokens=(self.tokens,) * offered,
                met=met,
            ),
        )


def manifest_of(tiers: Sequence[str], plan: JobPlan, **changes: Any) -> Manifest:
    told: dict[str, Any] = {
        "format": FORMAT,
        "model": "m",
        "tiers": [
            {
                "tier": name,
                "backends": [f"http://{name}:1"],
                "price_per_hour": 60.0,
                "epoch": f"epoch of {name}",
            }
            for name in tiers
        ],
        "corpus": {"digest": "c", "requests": 3},
        "seed": 7,
        "plan": plan_document(plan),
        "slo": {"ttft_seconds": TTFT, "tpot_seconds": TPOT},
    }
    return Manifest.of({**told, **changes})


def lagged(figures: BlockFigures) -> BlockFigures:
    """The same, spoiled by the generator."""
    return replace(figures, invalid=("generator_lag: 50 ms",))


def tiers(**given: ModelTier) -> Mapping[str, ModelTier]:
    return given
