"""`GET .../capacity`: memory, prefix cache, batch, what hurts and why, of one tier, from what is stored."""

from __future__ import annotations

import math
from threading import Lock

from fastapi import APIRouter

from service.approval.capacity_schemas import (
    BatchOut,
    CapacityOut,
    CauseOut,
    ChunkOut,
    CostOut,
    CostsOut,
    EngineOut,
    FoundOut,
    LoadRunOut,
    PatternOut,
    PoolOut,
    PrefixOut,
)
from service.approval.desk import Desk
from service.approval.kept import PATIENCE_SECONDS
from service.approval.names import find_ladder, find_tier
from service.capacity.batch import Found
from service.capacity.prefix_gate import Judged, Window
from service.decision.verdict import Decision, Verdict
from service.engines.settling import Word
from service.moments import moment
from service.store.load.tier_capacity import BatchAdvice, TierCapacity, read_capacity, read_prompts
from service.store.load.tier_load import TierLoad
from service.store.load.tier_traffic import Prompts
from service.store.verdicts.standing import Standing
from service.wire.prompt_blocks import UNIT_TOKENS

PROMPTS_SECONDS = 60.0
"""How long a page of a ladder goes by what it read of captured prompts."""


def capacity_routes(desk: Desk) -> APIRouter:
    """Advice, which decides nothing: no verdict reads it."""
    router = APIRouter(tags=["capacity"])

    @router.get(
        "/models/{model:path}/tiers/{tier:path}/capacity", summary="What a tier can take, and what hurts"
    )
    def capacity(model: str, tier: str) -> CapacityOut:
        """Its KV caches, the prefix cache's worth, where to begin with the batch, causes, costly patterns.

        From what the guard heard of engines, what captured prompts share and what the last load run measured:
        no engine is asked now, and nothing decides anything. The baseline has one too.
        """
        return capacity_out(tier_capacity(desk, model, tier))

    return router


def tier_capacity(desk: Desk, model: str, tier: str) -> TierCapacity:
    """What the route tells of a tier; 404 for an unknown one, 403 for a model not allowed."""
    ladder = find_ladder(desk.config.ladders, model)
    find_tier(ladder, tier)
    return _read(desk, desk.standing(model), tier)


class LadderCapacity:
    """The same of every tier of a ladder, for a page that asks again and again.

    What captured prompts tell is read once for all tiers and kept for a minute: it is of a day's prompts.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: dict[str, tuple[float, Prompts]] = {}
        self._reading = Lock()
        """Several pages that ask at once wait for one reading, unless it hangs."""

    def read(self, model: str) -> list[TierCapacity]:
        """In the ladder's order."""
        standing, prompts = self._desk.standing(model), self._prompts(model)
        return [_read(self._desk, standing, tier.name, prompts) for tier in standing.ladder.tiers]

    def _prompts(self, model: str) -> Prompts:
        held = self._reading.acquire(timeout=PATIENCE_SECONDS)
        try:
            now = self._desk.now()
            at, prompts = self._known.get(model, (-math.inf, None))
            if prompts is None or not 0 <= now - at < PROMPTS_SECONDS:
                prompts = read_prompts(self._desk.db, model, unit=UNIT_TOKENS, now=now)
                self._known[model] = now, prompts
            return prompts
        finally:
            if held:
                self._reading.release()


def _read(desk: Desk, standing: Standing, tier: str, prompts: Prompts | None = None) -> TierCapacity:
    return read_capacity(
        desk.db,
        standing.ladder,
        tier,
        accepted=accepted_by(standing.rung(tier).verdict),
        unit=UNIT_TOKENS,
        now=desk.now(),
        prompts=prompts,
    )


def accepted_by(verdict: Verdict | None) -> bool | None:
    """Whether a verdict accepts; None while it decides nothing."""
    if verdict is None or verdict.decision is Decision.UNDECIDED:
        return None
    return verdict.decision is Decision.ACCEPT


def capacity_out(told: TierCapacity) -> CapacityOut:
    """As JSON has it."""
    prefix = None if told.window is None or told.prefix is None else _prefix(told.window, told.prefix)
    return CapacityOut(
        model=told.model,
        tier=told.tier,
        engines=[_engine(each) for each in told.engines],
        prefix=prefix,
        load_run=None if told.run is None else _run(told.run),
        batch=None if told.batch is None or told.run is None else _batch(told.batch, told.run),
        causes=[
            CauseOut(
                stage=each.stage,
                cause=each.cause,
                hurts=each.hurts,
                evidence=each.evidence,
                remedies=[str(remedy) for remedy in each.remedies],
                experiment=each.experiment,
            )
            for each in told.causes
        ],
        not_judged=[str(stage) for stage in told.not_judged],
        patterns=[
            PatternOut(pattern=each.pattern, state=each.state, reason=each.reason) for each in told.patterns
        ],
    )


def _engine(word: Word) -> EngineOut:
    facts = word.facts
    tokens, size, longest = facts.kv_tokens, facts.kv_bytes, facts.max_model_len
    return EngineOut(
        backend=word.backend,
        engine=facts.engine,
        version=facts.version,
        told_at=moment(word.at),
        kv_dtype=facts.kv_dtype,
        kv_tokens=tokens,
        kv_bytes=size,
        token_bytes=size / tokens if size and tokens else None,
        max_model_len=longest,
        sequences=tokens // longest if tokens and longest else None,
    )


def _prefix(window: Window, judged: Judged) -> PrefixOut:
    return PrefixOut(
        advice=judged.advice,
        reason=judged.reason,
        doubts=list(judged.doubts),
        hours=window.hours,
        prefill_tokens=window.prefill_tokens,
        reused_tokens=window.reused_tokens,
        rate=window.rate,
        prefill_share=window.prefill_share,
        speed_up=window.speed_up,
        jitter=window.jitter,
        evictions=window.evictions,
        prefixes=window.prefixes,
        prefix_tokens=window.prefix_tokens,
        concurrency=window.concurrency,
    )


def _run(run: TierLoad) -> LoadRunOut:
    ended = None if run.ended_at is None else moment(run.ended_at)
    return LoadRunOut(job=run.job_id, began_at=moment(run.began_at), ended_at=ended)


def _batch(told: BatchAdvice, run: TierLoad) -> BatchOut:
    costs = None
    if told.costs is not None:
        costs = CostsOut(
            currency=run.currency,
            curve=[
                CostOut(concurrency=each.concurrency, throughput=each.throughput, million=each.million)
                for each in told.costs.curve
            ],
            cheapest=_found(told.costs.cheapest),
            turn=_found(told.costs.turn),
        )
    pool = told.pool
    return BatchOut(
        start=_found(told.start),
        costs=costs,
        pool=PoolOut(verdict=pool.verdict, gain=pool.gain, concurrency=pool.concurrency, reason=pool.reason),
        chunk=ChunkOut(advice=told.chunk.advice, reason=told.chunk.reason),
    )


def _found(told: Found) -> FoundOut:
    return FoundOut(concurrency=told.concurrency, reason=told.reason)
