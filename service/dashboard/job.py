"""`/job`: one shadow job: how far it is, what each block showed, what came of it; its manifest to save."""

from __future__ import annotations

import json
from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.job_schemas import BlockOut
from service.approval.jobs import block_out, find_job
from service.charts.chart import Chart, Datum, chart
from service.charts.curve import CurvePoint, Reference, Series, curve
from service.dashboard import render
from service.dashboard.formats import NONE, milliseconds, rate
from service.dashboard.jobs import STATE_TONES
from service.dashboard.sentences import sentences
from service.dashboard.site import Site
from service.dashboard.upcoming import ahead
from service.dashboard.visit import Visit
from service.report.words import Words
from service.store.load.jobs import Job
from service.store.load.load_blocks import Block, read_blocks

SHOWN_TONES = {"passed": "good", "failed": "bad", "undecided": "wait"}
DATA = (
    *("block", "part", "tier", "begun_after_s", "requests_per_s", "at_once", "offered", "met_slo"),
    *("goodput_tok_per_s", "ttft_p95_ms", "tpot_p95_ms", "counts"),
)
BLOCK_TONES = {"done": "good", "abandoned": "bad"}


def job_routes(site: Site) -> Sequence[BaseRoute]:
    """One page, and the manifest as a file."""

    def job(visit: Visit) -> Response:
        found = find_job(site.desk, visit.needed("id"))
        if visit.asked("manifest"):
            text = json.dumps(found.manifest.document, indent=2, ensure_ascii=False)
            return render.attached(text, "application/json", f"tiergate-{found.job_id}.manifest.json")
        say = sentences(visit.language)
        blocks = read_blocks(site.desk.db, found.job_id, done=False)
        return site.page(
            visit,
            "job.html",
            charts=[_chart(found, blocks, say)],
            job=found,
            ahead=ahead(found, visit.now),
            parts=_parts(found, blocks),
            blocks=[block_out(each) for each in blocks],
            findings=found.findings or {},
            tones=STATE_TONES,
            shown_tones=SHOWN_TONES,
            block_tones=BLOCK_TONES,
        )

    return [site.get("/job", job)]


def _parts(job: Job, blocks: Sequence[Block]) -> list[tuple[str, str, int]]:
    """What it measures, in order: the part, whether it is over, under way or to come, and its blocks done."""
    counted = dict.fromkeys(job.manifest.plan.parts, 0)
    for block in blocks:
        if block.part in counted and block.figures is not None:
            counted[block.part] += 1
    begun = [place for place, (part, done) in enumerate(counted.items()) if done or part == job.part]
    reached = max(begun, default=-1)
    found = []
    for place, (part, done) in enumerate(counted.items()):
        if place < reached or (place == reached and job.state.over):
            state = "over"
        else:
            state = "now" if place == reached else ("never" if job.state.over else "to_come")
        found.append((part, state, done))
    return found


def _chart(job: Job, blocks: Sequence[Block], say: Words) -> Chart:
    """P95 of the time to first token of each block, over the job; blocks that do not count are hollow."""
    begun = job.created_at if job.started_at is None else job.started_at
    measured = [(each, block_out(each)) for each in blocks if each.figures is not None]
    limit = job.manifest.ttft_seconds
    series = [
        Series(
            label=tier,
            style=style,
            points=tuple(
                CurvePoint(
                    x=((block.started_at or begun) - begun) / 60.0,
                    y=None if told.ttft_p95 is None else 1e3 * told.ttft_p95,
                    hollow=bool(told.invalid),
                    tip=say("job.tip", number=block.number, tier=tier, ttft=milliseconds(told.ttft_p95)),
                )
                for block, told in measured
                if block.tier == tier
            ),
        )
        for style, tier in enumerate(job.manifest.tiers)
    ]
    return chart(
        curve(
            series,
            x_name=say("job.axis_minutes"),
            y_name=say("job.axis_ttft"),
            references=[Reference(at=1e3 * limit, label=say("job.slo", limit=milliseconds(limit)))],
            x_from_zero=True,
            nothing=say("job.no_ttft" if measured else "job.no_blocks"),
        ),
        name="blocks",
        title=say("job.chart"),
        text=say("job.in_words", blocks=len(measured), limit=milliseconds(limit)),
        head=tuple(say(f"job.{name}") for name in ("number", "part", "tier", "load", "met", "ttft", "tpot")),
        rows=[_row(told, say) for _, told in measured],
        data=[DATA, *(_data(block, told, begun) for block, told in measured)],
    )


def _data(block: Block, told: BlockOut, begun: float) -> Sequence[Datum]:
    times = (None if each is None else 1e3 * each for each in (told.ttft_p95, told.tpot_p95))
    return (
        *(told.number, told.part, told.tier, (block.started_at or begun) - begun),
        *(told.rate, told.concurrency),
        *(told.offered, told.passed, told.goodput, *times, "no" if told.invalid else "yes"),
    )


def _row(told: BlockOut, say: Words) -> tuple[str, ...]:
    return (
        str(told.number),
        say.known(f"job_part.{told.part}", told.part),
        told.tier,
        load_of(told, say),
        NONE if told.offered is None else say("job.met_of", passed=told.passed, offered=told.offered),
        milliseconds(told.ttft_p95),
        milliseconds(told.tpot_p95),
    )


def load_of(told: BlockOut, say: Words) -> str:
    """Requests a second, or how many at once."""
    if told.rate is None:
        return say("job.at_once", concurrency=told.concurrency)
    return rate(told.rate)
