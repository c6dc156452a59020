"""What each tier can take and what hurts: advice about batch, prefix cache, patterns. No verdict reads it."""

from __future__ import annotations

from collections.abc import Iterator

from service.report import writing
from service.report.advised import Batch, Begin, Capacity, Prefix
from service.report.blocks import Block, Bullets, Paragraph, Section, beside
from service.report.document import Report
from service.report.shared import named, reasons_of
from service.report.words import Words

Advised = list[tuple[str, Capacity]]
"""Tier as it is named, and its advice."""


def capacity(report: Report, say: Words) -> Section | None:
    """None where nothing is advised."""
    told = [(named(say, each), each.capacity) for each in report.tiers if each.capacity is not None]
    if not told:
        return None
    blocks = [Paragraph(text=say("capacity.about")), *_start(told, say), *_causes(told, say)]
    return Section(anchor="capacity", title=say("capacity.title"), blocks=(*blocks, *_patterns(told, say)))


def _start(told: Advised, say: Words) -> Iterator[Block]:
    lines = [
        (say(f"capacity.{name}"), [_batch_cell(each.batch, name, say) for _, each in told])
        for name in ("start", "cheapest", "turn", "pool", "chunk")
    ]
    lines += [
        (say(f"capacity.{name}"), [_prefix_cell(each.prefix, name, say) for _, each in told])
        for name in ("prefix", "rate", "speed_up")
    ]
    tiers = tuple(name for name, _ in told)
    yield beside(say("capacity.caption"), say("capacity.advice"), tiers, lines)
    yield Paragraph(text=say("capacity.not_reached"))
    reasons = tuple((name, reason) for name, each in told for reason in _reasons(each))
    if reasons:
        yield reasons_of(say, reasons)


def _batch_cell(batch: Batch | None, name: str, say: Words) -> str:
    if batch is None:
        return writing.NONE
    if name == "pool":
        return writing.or_none(batch.pool_gain, writing.per_cent)
    if name == "chunk":
        return say(f"chunk.{batch.chunk}")
    begin: Begin | None = {"start": batch.start, "cheapest": batch.cheapest, "turn": batch.turn}[name]
    return writing.NONE if begin is None or begin.concurrency is None else writing.count(begin.concurrency)


def _prefix_cell(prefix: Prefix | None, name: str, say: Words) -> str:
    if prefix is None:
        return writing.NONE
    if name == "rate":
        return writing.figure(prefix.rate, writing.per_cent)
    if name == "speed_up":
        return writing.or_none(prefix.speed_up, writing.factor)
    return say(f"prefix.{prefix.advice}")


def _reasons(told: Capacity) -> Iterator[str]:
    batch, prefix = told.batch, told.prefix
    if batch is not None:
        yield f"max-num-seqs: {batch.start.reason}"
        if batch.cheapest is not None:
            yield f"cheapest: {batch.cheapest.reason}"
        if batch.turn is not None:
            yield f"cost turns up: {batch.turn.reason}"
        yield f"offline pool: {batch.pool}"
        yield f"chunks of prefill: {batch.chunk_reason}"
    if prefix is not None:
        yield f"prefix cache: {prefix.reason}"
        yield from (f"prefix cache, doubt: {doubt}" for doubt in prefix.doubts)


def _causes(told: Advised, say: Words) -> Iterator[Block]:
    hurting = tuple(
        f"{name}: {cause.stage}: {cause.hurts}. {cause.cause}: {cause.evidence}. May help: "
        f"{'; '.join(cause.remedies) or '-'}. To confirm: {cause.experiment}."
        for name, each in told
        for cause in each.causes
    )
    if hurting:
        yield Paragraph(text=say("capacity.hurts"), tone="wait")
        yield reasons_of(say, hurting)
    else:
        yield Paragraph(text=say("capacity.nothing_hurts"))
    unknown = tuple(
        say(
            "capacity.not_judged",
            tier=name,
            stages=say("punctuation.list").join(say(f"stage.{stage}") for stage in each.not_judged),
        )
        for name, each in told
        if each.not_judged
    )
    if unknown:
        yield Bullets(items=unknown)


def _patterns(told: Advised, say: Words) -> Iterator[Block]:
    names = list(dict.fromkeys(each.pattern for _, advice in told for each in advice.patterns))
    if not names:
        return
    states = [{each.pattern: each.state for each in advice.patterns} for _, advice in told]
    lines = [
        (
            say(f"pattern.{name.replace(' ', '_')}"),
            [say(f"pattern_state.{known[name]}") if name in known else writing.NONE for known in states],
        )
        for name in names
    ]
    yield beside(say("capacity.patterns"), say("capacity.pattern"), tuple(name for name, _ in told), lines)
    found = tuple(
        (name, f"{each.pattern}: {each.reason}")
        for name, advice in told
        for each in advice.patterns
        if each.state == "found"
    )
    if found:
        yield reasons_of(say, found)
