"""Advice about a tier's capacity: from the run's own blocks, and what is kept of traffic and engines."""

from __future__ import annotations

from collections.abc import Sequence

from service.capacity.batch import Found
from service.capacity.prefix_gate import Judged, Window
from service.decision.verdict import Decision, Verdict
from service.fleet import Ladder
from service.report.advised import Batch, Begin, Capacity, CauseTold, PatternTold, Prefix
from service.report.measured import Figure
from service.store.load.jobs import Job
from service.store.load.load_blocks import Block
from service.store.load.tier_capacity import BatchAdvice, read_capacity
from service.store.load.tier_load import load_of
from service.store.sql.database import Database
from service.wire.prompt_blocks import UNIT_TOKENS

ACCEPTED = {Decision.ACCEPT: True, Decision.REJECT: False}


def advised(
    db: Database,
    ladder: Ladder,
    job: Job,
    blocks: Sequence[Block],
    tier: str,
    *,
    verdict: Verdict | None,
    now: float,
) -> Capacity | None:
    """None where the run measured nothing of the tier, or the ladder has it no more."""
    run = load_of(job, blocks, tier)
    if run is None or tier not in {each.name for each in ladder.tiers}:
        return None
    told = read_capacity(
        db,
        ladder,
        tier,
        accepted=None if verdict is None else ACCEPTED.get(verdict.decision),
        unit=UNIT_TOKENS,
        now=now,
        run=run,
    )
    return Capacity(
        batch=None if told.batch is None else _batch(told.batch),
        prefix=None if told.window is None or told.prefix is None else _prefix(told.window, told.prefix),
        causes=tuple(
            CauseTold(
                stage=each.stage.value,
                cause=each.cause.value,
                hurts=each.hurts,
                evidence=each.evidence,
                remedies=tuple(remedy.value for remedy in each.remedies),
                experiment=each.experiment,
            )
            for each in told.causes
        ),
        not_judged=tuple(stage.value for stage in told.not_judged),
        patterns=tuple(
            PatternTold(pattern=each.pattern.value, state=each.state.value, reason=each.reason)
            for each in told.patterns
        ),
    )


def _batch(told: BatchAdvice) -> Batch:
    return Batch(
        start=_begin(told.start),
        cheapest=None if told.costs is None else _begin(told.costs.cheapest),
        turn=None if told.costs is None else _begin(told.costs.turn),
        pool=told.pool.reason,
        pool_gain=told.pool.gain,
        chunk=told.chunk.advice.value,
        chunk_reason=told.chunk.reason,
    )


def _begin(told: Found) -> Begin:
    return Begin(concurrency=told.concurrency, reason=told.reason)


def _prefix(window: Window, judged: Judged) -> Prefix:
    return Prefix(
        advice=judged.advice.value,
        reason=judged.reason,
        hours=window.hours,
        rate=None if window.rate is None else Figure(value=window.rate),
        speed_up=window.speed_up,
        doubts=judged.doubts,
    )
