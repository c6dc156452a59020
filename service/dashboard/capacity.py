"""`/capacity`: what each tier of a ladder can take, what its prefix cache saves, what hurts and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.tier_capacity import LadderCapacity
from service.capacity.patterns import State
from service.capacity.prefix_gate import Advice
from service.dashboard.chosen import chosen
from service.dashboard.site import Site
from service.dashboard.visit import Visit
from service.engines.settling import Word
from service.report import writing
from service.report.words import Words, words
from service.store.load.tier_capacity import BatchAdvice, TierCapacity

PATTERN_TONES = {State.FOUND: "bad", State.ABSENT: "good", State.NOT_TOLD: ""}
PREFIX_TONES = {
    Advice.LINEAR: "good",
    Advice.OWN_POOL: "good",
    Advice.DIMINISHING: "good",
    Advice.SWITCH_OFF: "bad",
    Advice.THRASHING: "bad",
}
"""The others wait."""
GIB = float(1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of a table: its name, its figure, and its reason in the words of the advice."""

    name: str
    figure: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one backend's KV cache holds, as texts with their units."""

    backend: str
    engine: str
    dtype: str
    tokens: str
    size: str
    sequences: str
    told_at: float


def capacity_routes(site: Site) -> Sequence[BaseRoute]:
    """One page for a ladder."""
    ladder = LadderCapacity(site.desk)

    def capacity(visit: Visit) -> Response:
        model = chosen(site, visit) or (visit.models[0] if visit.models else None)
        told = [] if model is None else ladder.read(model)
        report = words(visit.language)
        return site.page(
            visit,
            "capacity.html",
            model=model,
            model_path="/capacity",
            tiers=[
                {
                    "told": each,
                    "held": [held(word) for word in each.engines],
                    "lines": lines(each.batch, report),
                    "prefix_tone": "wait"
                    if each.prefix is None
                    else PREFIX_TONES.get(each.prefix.advice, "wait"),
                    "window": window_facts(each),
                    "patterns": [
                        (
                            report(f"pattern.{sight.pattern.replace(' ', '_')}"),
                            PATTERN_TONES[sight.state],
                            sight,
                        )
                        for sight in each.patterns
                    ],
                    "not_judged": report("punctuation.list").join(
                        report(f"stage.{stage}") for stage in each.not_judged
                    ),
                }
                for each in told
            ],
            report=report,
        )

    return [site.get("/capacity", capacity)]


def held(word: Word) -> Held:
    """A dash for what the engine does not tell."""
    facts = word.facts
    tokens, longest = facts.kv_tokens, facts.max_model_len
    return Held(
        backend=word.backend,
        engine=str(facts),
        dtype=facts.kv_dtype or writing.NONE,
        tokens=writing.NONE if tokens is None else f"{writing.count(tokens)} tok",
        size=writing.NONE if facts.kv_bytes is None else f"{facts.kv_bytes / GIB:,.2f} GiB",
        sequences=writing.count(tokens // longest) if tokens and longest else writing.NONE,
        told_at=word.at,
    )


def lines(batch: BatchAdvice | None, report: Words) -> list[Line]:
    """Where to begin with the batch, as reports name it; nothing before a load run searched for it."""
    if batch is None:
        return []

    def line(name: str, figure: str, reason: str) -> Line:
        return Line(name=report(f"capacity.{name}"), figure=figure, reason=reason)

    def at_once(concurrency: int | None) -> str:
        return writing.NONE if concurrency is None else writing.count(concurrency)

    found = [line("start", at_once(batch.start.concurrency), batch.start.reason)]
    if batch.costs is not None:
        cheapest, turn = batch.costs.cheapest, batch.costs.turn
        found += [
            line("cheapest", at_once(cheapest.concurrency), cheapest.reason),
            line("turn", at_once(turn.concurrency), turn.reason),
        ]
    return [
        *found,
        line("pool", writing.or_none(batch.pool.gain, writing.per_cent), batch.pool.reason),
        line("chunk", report(f"chunk.{batch.chunk.advice}"), batch.chunk.reason),
    ]


def window_facts(told: TierCapacity) -> list[tuple[str, str]]:
    """Name of a sentence and figure, of the prefix caches' last day."""
    window = told.window
    if window is None:
        return []
    return [
        ("hours", f"{window.hours:.1f} h"),
        ("rate", writing.or_none(window.rate, writing.per_cent)),
        ("prefill_share", writing.or_none(window.prefill_share, writing.per_cent)),
        ("speed_up", writing.or_none(window.speed_up, writing.factor)),
        ("prefixes", writing.NONE if window.prefixes is None else writing.count(window.prefixes)),
        ("concurrency", writing.NONE if window.concurrency is None else f"{window.concurrency:.1f}"),
    ]
