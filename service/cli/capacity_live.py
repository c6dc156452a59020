"""What `tiergate capacity diagnose MODEL TIER` reads: the last load run, or engines as they serve."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from service.cli.configuration import fail, load_or_exit
from service.cli.configuration import stored as database_of
from service.cli.named import ladder_of, tier_of
from service.cli.quantities import duration

if TYPE_CHECKING:
    from service.capacity.patterns import Traffic
    from service.capacity.symptoms import Signals
    from service.engines.histograms import Latencies
    from service.engines.load import EngineLoad
    from service.fleet import Backend
    from service.settings import Settings
    from service.store.load.tier_capacity import TierCapacity

WRONG = 2
NOTHING = 3
LOOK_SECONDS, LEAST_LOOKS = 5.0, 6
"""Between two looks, and how many there are at least besides the first."""
PAGE_SECONDS = 5.0
LONGEST_PAGE = 4 * 1024 * 1024
FEW = 20
"""Requests, with fewer of which a P95 is one of them."""
_OTHERWISE = "and that is where load runs are kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a diagnosis rests on."""

    source: str
    """In a sentence."""
    signals: Signals
    traffic: Traffic
    best_rate: float | None
    """Requests a second, of the last load run."""


@dataclass(slots=True, kw_only=True)
class _Look:
    at: float
    backend: str
    load: EngineLoad | None


@dataclass(slots=True, kw_only=True)
class _Watched:
    """What came of all looks so far."""

    looks: list[_Look] = field(default_factory=list)
    pages: list[tuple[str, Latencies]] = field(default_factory=list)


def stored(config: Path | None, model: str, tier: str) -> Known:
    """Of the last load run that measured the tier; ends the command where none did."""
    _, found = _capacity(config, model, tier)
    if found.run is None:
        raise fail(
            f"tiergate capacity diagnose: no load run of {model} that is done measured {tier}: `tiergate "
            f"shadow run {model}` begins one, and --live 60s watches its engines as they serve",
            NOTHING,
        )
    ended = "" if found.run.ended_at is None else f", ended {_utc(found.run.ended_at)}"
    return Known(
        source=f"load run {found.run.job_id}{ended}",
        signals=found.signals,
        traffic=found.traffic,
        best_rate=found.run.best_rate,
    )


def watched(config: Path | None, model: str, tier: str, written: str) -> Known:
    """Of the tier's serving backends from now on; ends the command where none tells anything."""
    from service.capacity.symptoms import Signals
    from service.engines.histograms import spell
    from service.engines.signals import with_engine, with_latencies

    seconds = duration(written, "--live")
    if not seconds > 0:
        raise typer.BadParameter("--live: a while is longer than 0 s")
    settings, kept = _capacity(config, model, tier)
    backends = settings.ladders[model].tier(tier).backends
    typer.echo(f"watching {len(backends)} backends of {tier} for {seconds:g} s ...", err=True)
    seen = asyncio.run(_watch(backends, seconds))
    if not any(each.load for each in seen.looks):
        raise fail(
            f"tiergate capacity diagnose: no backend of {model}/{tier} tells anything at /metrics: vLLM "
            "does, SGLang with --enable-metrics, llama.cpp with --metrics",
            NOTHING,
        )
    came = spell(seen.pages)
    slo = settings.slo.get(model)
    best_rate = None if kept.run is None else kept.run.best_rate
    rate = came.requests / seconds if came.requests else None
    signals = with_engine(
        Signals(
            ttft_limit=None if slo is None else slo.ttft_seconds,
            tpot_limit=None if slo is None else slo.tpot_seconds,
            tpot_alone=kept.signals.tpot_alone,
            utilisation=rate / best_rate if rate is not None and best_rate else None,
        ),
        [seen.looks],
    )
    few = (
        f", too few for a P95 of them: watch longer (--live {4 * seconds:g}s)" if came.requests < FEW else ""
    )
    return Known(
        source=f"live, {seconds:g} s: {came.requests:,.0f} requests had a first token{few}",
        signals=with_latencies(signals, came) if came.requests >= FEW else signals,
        traffic=replace(
            kept.traffic,
            prefix_rate=kept.traffic.prefix_rate if signals.prefix_rate is None else signals.prefix_rate,
        ),
        best_rate=best_rate,
    )


async def _watch(backends: Sequence[Backend], seconds: float) -> _Watched:
    every = min(LOOK_SECONDS, seconds / LEAST_LOOKS)
    seen = _Watched()
    begun = time.monotonic()
    while True:
        at = time.monotonic() - begun
        pages = await asyncio.gather(*(_page(each) for each in backends))
        for backend, page in zip(backends, pages, strict=True):
            _take(seen, backend.url, page, at)
        if at >= seconds:
            return seen
        await asyncio.sleep(max(0.0, min(every, seconds - (time.monotonic() - begun))))


def _take(seen: _Watched, backend: str, page: str | None, at: float) -> None:
    from service.engines.histograms import latencies
    from service.engines.load import engine_load

    seen.looks.append(_Look(at=at, backend=backend, load=None if page is None else engine_load(page)))
    if page is not None:
        seen.pages.append((backend, latencies(page)))


async def _page(backend: Backend) -> str | None:
    """Its metrics; None where it does not tell them."""
    import httpx

    from service.reach import client_of, read_page

    try:
        async with asyncio.timeout(PAGE_SECONDS), client_of(backend, timeout=PAGE_SECONDS) as client:
            page = await read_page(client, "/metrics", longest=LONGEST_PAGE)
    except (httpx.HTTPError, OSError):
        return None
    return page.text if page.status == 200 else None


def _capacity(config: Path | None, model: str, tier: str) -> tuple[Settings, TierCapacity]:
    from service.decision.verdict import Decision
    from service.settings.questions import question_of
    from service.store.load.tier_capacity import read_capacity
    from service.store.verdicts.standing import read_standing
    from service.wire.prompt_blocks import UNIT_TOKENS

    settings = load_or_exit(config, make_key=False)
    ladder = ladder_of(settings, model, before="tiergate capacity diagnose: no file and ")
    tier_of(ladder, tier, before="tiergate capacity diagnose: ")
    with database_of(settings, otherwise=_OTHERWISE) as db:
        now = time.time()
        verdict = read_standing(db, ladder, question_of(settings, db), now=now).rung(tier).verdict
        decision = None if verdict is None else verdict.decision
        accepted = {Decision.ACCEPT: True, Decision.REJECT: False}.get(decision) if decision else None
        return settings, read_capacity(db, ladder, tier, accepted=accepted, unit=UNIT_TOKENS, now=now)


def _utc(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
