"""All that is advised about one tier's capacity, from what is stored: the API's answer and the report's part.

Nothing is asked of an engine here: its memory and its counters are as the guard last heard them, and what
hurts is as the last load run measured it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.capacity.batch import ChunkAdvice, Costs, Found, Offline, chunk, costs, offline, start
from service.capacity.diagnosis import Diagnosis, diagnose
from service.capacity.patterns import Sighting, Traffic, sightings
from service.capacity.prefix_gate import WINDOW_HOURS, Judged, Window, judge
from service.capacity.prefix_window import HOUR, LATE_SECONDS, window_until
from service.capacity.symptoms import Signals, Stage, not_judged
from service.engines.settling import Word
from service.fleet import Ladder
from service.store.kept.prompt_prefixes import read_prefixes
from service.store.load.engine_readings import read_looks
from service.store.load.tier_load import TierLoad, last_load
from service.store.load.tier_traffic import DAY, Prompts, request_rate, shared_of, traffic_of
from service.store.sql.database import Database
from service.store.traffic.ledger import account
from service.store.verdicts.observations import read_words
from service.store.verdicts.standing import route_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAdvice:
    """From the curve by concurrency of a load run."""

    start: Found
    """`max-num-seqs` to begin with."""
    costs: Costs | None
    """`None` where nobody told a price."""
    pool: Offline
    """What work that waits for nobody gains."""
    chunk: ChunkAdvice


@dataclass(frozen=True, slots=True, kw_only=True)
class TierCapacity:
    """One tier."""

    model: str
    tier: str
    engines: tuple[Word, ...]
    """The latest that each backend told of itself."""
    window: Window | None
    """Of the prefix caches; `None` while no backend that serves told of one twice."""
    prefix: Judged | None
    run: TierLoad | None
    """The load run that the rest comes from; `None` before the first."""
    batch: BatchAdvice | None
    """`None` where the run has no curve by concurrency."""
    signals: Signals
    """Of the load run; nothing is known before the first."""
    traffic: Traffic
    causes: tuple[Diagnosis, ...]
    not_judged: tuple[Stage, ...]
    patterns: tuple[Sighting, ...]


def read_prompts(db: Database, model: str, *, unit: int, now: float) -> Prompts:
    """What captured prompts of the last day tell, of all tiers alike. Reads every one: some thousands."""
    prefixes = read_prefixes(db, model, since=now - DAY)
    return Prompts(shared=shared_of(prefixes, unit=unit, now=now), rate=request_rate(prefixes, now=now))


def read_capacity(
    db: Database,
    ladder: Ladder,
    tier: str,
    *,
    accepted: bool | None,
    unit: int,
    now: float,
    run: TierLoad | None = None,
    prompts: Prompts | None = None,
) -> TierCapacity:
    """As of now; KeyError for an unknown tier.

    `accepted` is what the verdict says, `None` while it is undecided; `unit` is how many tokens one hash of a
    captured prompt stands for. `run` stands in for the last load run, `prompts` for what is read of them.
    """
    found = ladder.tier(tier)
    weight = route_of(db, ladder).weights.get(tier, 0)
    looks = read_looks(db, ladder.model, tier, since=now - WINDOW_HOURS * HOUR - LATE_SECONDS)
    window = window_until(looks, now=now)
    prompts = prompts or read_prompts(db, ladder.model, unit=unit, now=now)
    shared, rate = prompts.shared, prompts.rate
    if window is not None and shared is not None and weight:
        window = replace(window, prefix_tokens=shared.prefix_tokens or 0.0, prefixes=shared.prefixes)
    run = run or last_load(db, ladder.model, tier)
    served = rate * weight / 100 if rate is not None and weight else None
    signals = Signals() if run is None else run.signals(rate=served)
    traffic = traffic_of(
        ladder,
        found,
        ledger=account(db, None, ladder.model, now=now),
        weight=weight,
        rate=rate,
        shared=shared,
        looks=looks,
        window=window,
        accepted=accepted,
    )
    return TierCapacity(
        model=ladder.model,
        tier=tier,
        engines=tuple(read_words(db, ladder.model, tier)),
        window=window,
        prefix=None if window is None else judge(window),
        run=run,
        batch=None if run is None else _batch(run),
        signals=signals,
        traffic=traffic,
        causes=diagnose(signals),
        not_judged=not_judged(signals),
        patterns=sightings(traffic),
    )


def _batch(run: TierLoad) -> BatchAdvice | None:
    steps = run.steps()
    if not steps:
        return None
    began = start(steps, tpot_seconds=run.tpot_seconds)
    (ttft_p50, ttft_p95), (tpot_p50, tpot_p95) = run.quantiles("ttft"), run.quantiles("tpot")
    return BatchAdvice(
        start=began,
        costs=None if run.price_per_hour is None else costs(steps, price_per_hour=run.price_per_hour),
        pool=offline(steps, online=began.concurrency),
        chunk=chunk(ttft_p50=ttft_p50, ttft_p95=ttft_p95, tpot_p50=tpot_p50, tpot_p95=tpot_p95),
    )
