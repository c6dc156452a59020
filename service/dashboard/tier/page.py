"""`/tier`: one tier's verdict and all that it rests on; of the baseline, where its ladder stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.charts.chart import Chart
from service.dashboard.acting.offers import offers
from service.dashboard.overview import TONES
from service.dashboard.sentences import sentences
from service.dashboard.site import Site
from service.dashboard.tier.load import LoadRun, Runs
from service.dashboard.tier.money import money_chart
from service.dashboard.tier.narrowing import narrowing_charts
from service.dashboard.tier.progress import expected, progress
from service.dashboard.tier.reading import TierReading, read_tier
from service.dashboard.tier.strata import NOISE_HEAD, noise_rows, strata_chart, strata_of
from service.dashboard.visit import Visit
from service.decision.decide import limits_of
from service.decision.gates import (
    attribution_gate,
    control_gate,
    coverage_gate,
    in_force,
    is_stale,
    measured_gate,
)
from service.decision.policy import Gate
from service.decision.verdict import Decision
from service.report.blocks import Block, Drawing, Folded, Paragraph
from service.report.conclusion import in_one_sentence
from service.report.document import TierReport
from service.report.sections.latency import latency
from service.report.sections.quality import forest_chart, single_looks
from service.report.shared import GATE_TONES, criterion, decided, gate_name, gate_state
from service.report.shared import TONES as DECISION_TONES
from service.report.words import Words, words
from service.store.verdicts.measurements import MEASURED
from service.store.verdicts.standing import Standing

PATH = "/tier"


def tier_routes(site: Site) -> Sequence[BaseRoute]:
    """The page of every tier."""
    runs = Runs(site.desk)

    def tier(visit: Visit) -> Response:
        model, name = visit.needed("model"), visit.needed("tier")
        seen = read_tier(site.desk, runs, model, name, now=visit.now)
        if isinstance(seen, Standing):
            return site.page(
                visit,
                "tier_baseline.html",
                model=model,
                standing=seen,
                rung=seen.rung(name),
                tones=TONES,
            )
        return _candidate(site, visit, seen)

    return [site.get(PATH, tier)]


def _candidate(site: Site, visit: Visit, seen: TierReading) -> Response:
    say, report = sentences(visit.language), words(visit.language)
    forest = forest_chart(seen.figures, report, name="forest", tier=seen.tier)
    narrowed = narrowing_charts(seen, say, report)
    strata = strata_of(seen)
    heat = strata_chart(seen, strata, say, report)
    money = None if seen.runs.money is None else money_chart(seen.runs.money, say, report)
    measured = _latency(seen.runs.slo, report)
    steps = progress(seen.verdict, seen.evidence, seen.looks, now=seen.now)
    told = TierReport(
        name=seen.tier,
        verdict=seen.figures,
        money=None if seen.runs.money is None else seen.runs.money.tier.money,
    )
    currency = "" if seen.runs.money is None else seen.runs.money.report.currency
    return site.page(
        visit,
        "tier.html",
        charts=[forest, *narrowed, heat, *([money] if money is not None else []), *_charts(measured)],
        model=seen.model,
        seen=seen,
        standing=seen.standing,
        rung=seen.rung,
        offers=offers(seen.standing, seen.rung, seen.policy),
        tier=seen.tier,
        tones=TONES,
        decided=lambda decision: decided(report, decision),
        decision_tones=DECISION_TONES,
        criterion=lambda name: criterion(report, name),
        sentence=in_one_sentence(told, seen.figures, currency, report),
        forest=forest,
        single_looks=single_looks(seen.figures, report, tier=seen.tier),
        narrowed=narrowed,
        strata=strata,
        heat=heat,
        noise_head=NOISE_HEAD,
        noise=noise_rows(seen, report),
        steps=steps,
        expected=expected(steps),
        all_decided=all(each.decision is not Decision.UNDECIDED for each in seen.verdict.decisive),
        money=money,
        measured=_shown(measured),
        gates=list(_gates(seen, report)),
    )


def _latency(run: LoadRun | None, report: Words) -> Sequence[Block]:
    """The section of the job's report, of baseline and tier alone."""
    return () if run is None else latency(run.report, report).blocks


def _charts(blocks: Sequence[Block]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Drawing):
            yield block.chart
        elif isinstance(block, Folded):
            yield from _charts(block.blocks)


def _shown(blocks: Sequence[Block]) -> list[Mapping[str, Any]]:
    """Each with its kind, as the template asks for it; what a section is about, the page says itself."""
    return [
        {
            "kind": type(block).__name__,
            "block": block,
            "inner": _shown(block.blocks) if isinstance(block, Folded) else (),
        }
        for block in blocks
        if not (isinstance(block, Paragraph) and not block.tone)
    ]


def _gates(seen: TierReading, report: Words) -> Iterator[Mapping[str, Any]]:
    """Every gate with its state and what it says, in the words of the decision."""
    policy, evidence = seen.policy, seen.evidence
    reasons = {
        Gate.QUALITY: tuple(f"{each.criterion}: {each.reason}" for each in seen.verdict.decisive),
        Gate.CONTROL: control_gate(policy, evidence, limits_of(policy, evidence)).reasons,
        Gate.COVERAGE: coverage_gate(policy, evidence.coverage).reasons,
        Gate.ATTRIBUTION: attribution_gate(policy, evidence.attribution).reasons,
        **{gate: measured_gate(policy, evidence, gate).reasons for gate in MEASURED},
    }
    for gate, state in seen.verdict.gates.items():
        measured = in_force(policy, evidence, gate) if gate in MEASURED else None
        told = reasons[gate] if measured is None else (measured.reason,)
        yield {
            "name": gate_name(report, gate),
            "state": gate_state(report, state),
            "tone": GATE_TONES[state],
            "reasons": told,
            "age": None if measured is None else measured.age_seconds,
            "stale": measured is not None and is_stale(measured, evidence.measured_within),
        }
