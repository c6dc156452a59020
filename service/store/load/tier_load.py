"""What the last load run showed of one tier, as advice about capacity reads it: steps, signals, a price."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.capacity.batch import Step
from service.capacity.symptoms import Signals
from service.engines.load import EngineLoad
from service.engines.signals import with_engine
from service.store.load.jobs import Job, JobState, list_jobs
from service.store.load.load_blocks import Block, read_blocks
from service.store.sql.database import Database

Json = Mapping[str, Any]
LAST_JOBS = 20
"""Of the model, that are looked through for one that measured the tier."""
COULD_NOT_KEEP_UP = "over_saturated"
"""How the reason of a block begins whose tier was too slow: that is what it shows, and no fault of its."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    at: float
    backend: str
    load: EngineLoad | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLoad:
    """One tier in one job."""

    job_id: str
    began_at: float
    ended_at: float | None
    """Unix seconds; `None` while it runs."""
    ttft_seconds: float
    """Of the SLO."""
    tpot_seconds: float
    price_per_hour: float | None
    """Of all backends that were loaded; `None` when nobody told it."""
    currency: str
    best_rate: float | None
    """Requests a second at the most goodput; `None` where it was not reached."""
    blocks: tuple[Json, ...] = field(repr=False)
    """Figures of its blocks, in order."""

    def steps(self) -> tuple[Step, ...]:
        """Of the part that searches for the most at once; none of blocks that may not be used."""
        return tuple(
            Step(
                concurrency=int(each["plan"]["concurrency"]),
                tpot_p95=_block_p95(each, "tpot"),
                throughput=float(each["throughput"]),
                goodput=float(each["goodput"]),
            )
            for each in self.blocks
            if each["plan"]["concurrency"] is not None and not each["invalid"]
        )

    def quantiles(self, name: str) -> tuple[float | None, float | None]:
        """Median and P95 of `ttft` or `tpot` in the SLO part; infinite where too many never came so far."""
        return _quantile(self._slo(), name, 0.5), _quantile(self._slo(), name, 0.95)

    def signals(self, *, rate: float | None = None) -> Signals:
        """Of the SLO part, as a diagnosis has them; `rate` is what clients send, in requests a second."""
        slo = self._slo()
        alone = [
            each.tpot_p95 for each in self.steps() if each.concurrency == 1 and each.tpot_p95 is not None
        ]
        offered = sum(int(each["offered"]) for each in slo)
        failed = sum(sum(each["failed"].values()) for each in slo)
        told = Signals(
            ttft_p95=_quantile(slo, "ttft", 0.95),
            ttft_limit=self.ttft_seconds,
            tpot_p95=_quantile(slo, "tpot", 0.95),
            tpot_limit=self.tpot_seconds,
            tpot_alone=max(alone, default=None),
            utilisation=rate / self.best_rate if rate is not None and self.best_rate else None,
            failed_share=min(1.0, failed / offered) if offered else None,
        )
        return with_engine(told, [list(_looks(each)) for each in slo])

    def _slo(self) -> list[Json]:
        return [
            each
            for each in self.blocks
            if each["plan"]["part"] == "slo"
            and all(str(reason).startswith(COULD_NOT_KEEP_UP) for reason in each["invalid"])
        ]


def tier_load(db: Database, job: Job, tier: str) -> TierLoad | None:
    """Of one job; `None` when it measured nothing of the tier."""
    return load_of(job, read_blocks(db, job.job_id, columns=True), tier)


def load_of(job: Job, blocks: Sequence[Block], tier: str) -> TierLoad | None:
    """The same from the job's blocks, with their columns."""
    if tier not in job.manifest.tiers:
        return None
    figures = tuple(each.figures for each in blocks if each.tier == tier and each.figures is not None)
    if not figures:
        return None
    arm = job.manifest.tier(tier)
    price, backends = arm.get("price_per_hour"), arm.get("backends") or ()
    best = next((each for each in (job.findings or {}).get("best", ()) if each["tier"] == tier), None)
    return TierLoad(
        job_id=job.job_id,
        began_at=job.created_at if job.started_at is None else job.started_at,
        ended_at=job.ended_at,
        ttft_seconds=job.manifest.ttft_seconds,
        tpot_seconds=job.manifest.tpot_seconds,
        price_per_hour=float(price) * max(1, len(backends)) if price else None,
        currency=str(job.manifest.document.get("money", {}).get("currency", "")),
        best_rate=float(best["rate"]) if best and best["reached"] and best["rate"] else None,
        blocks=figures,
    )


def last_load(db: Database, model: str, tier: str) -> TierLoad | None:
    """Of the last job that is done and measured the tier; `None` when there is none."""
    for job in list_jobs(db, model, limit=LAST_JOBS):
        if job.state is JobState.DONE and (found := tier_load(db, job, tier)) is not None:
            return found
    return None


def _looks(block: Json) -> Iterator[_Look]:
    """In the window, warm-up and cool-down left out."""
    plan = block["plan"]
    begin = float(plan["warm_up_seconds"])
    end = begin + float(plan["window_seconds"])
    for each in block.get("engine", ()):
        if begin <= float(each["at"]) <= end:
            load = None if each["load"] is None else EngineLoad(**each["load"])
            yield _Look(at=float(each["at"]), backend=str(each["backend"]), load=load)


def _block_p95(block: Json, name: str) -> float | None:
    found = block[name]
    return None if found is None or found["p95"] is None else float(found["p95"])


def _quantile(blocks: Sequence[Json], name: str, share: float) -> float | None:
    """Over all requests where they are kept; else the worst block's, since all must keep the limit."""
    values = [value for each in blocks for value in _values(each.get("columns") or {}, name)]
    if values:
        return sorted(values)[math.ceil(share * len(values)) - 1]
    told = [each[name]["p95" if share == 0.95 else "p50"] for each in blocks if each[name]["n"]]
    if not told:
        return None
    return math.inf if None in told else max(float(each) for each in told)


def _values(columns: Json, name: str) -> Iterator[float]:
    """Infinite for a request that failed; one with fewer than two tokens has no TPOT."""
    for number, tokens in zip(columns.get(name, ()), columns.get("tokens", ()), strict=True):
        if number is not None:
            yield float(number)
        elif not tokens:
            yield math.inf
