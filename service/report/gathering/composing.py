"""A job's report from the stores: its blocks and findings, the verdicts and the ledger as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.decision.retries import Resent, RetryRate, baseline_rate, candidate_rate
from service.decision.tally import Tally
from service.fleet import Ladder
from service.report.conclusion import concluded
from service.report.document import Earlier, Ledger, PairLine, Report, Run, TierReport
from service.report.gathering.advice import advised
from service.report.gathering.curves import concurrency, engine, sweep
from service.report.gathering.judged import judged
from service.report.gathering.loads import loads
from service.report.gathering.pricing import prices
from service.store.load.jobs import Job
from service.store.load.load_blocks import Block, read_blocks
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from service.store.traffic.account import LedgerAccount
from service.store.traffic.ledger import account
from service.store.traffic.resends import ResendRate, resend_rates
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Question, read_account, read_standing

Json = Mapping[str, Any]
RETRY_DAYS = 14
"""How far back requests that were sent again are counted."""
_DAY = 86_400.0
_STRUCTURED = "structured_output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where reports come from."""

    db: Database
    captures: Captures | None
    """None: what waits in Redis is told as SQL has it."""
    ladders: Mapping[str, Ladder]
    question: Question


def compose(sources: Sources, job: Job, *, now: float, earlier: Earlier | None) -> Report:
    """The report as of now; of a job that is not over, as far as it is."""
    db = sources.db
    blocks = read_blocks(db, job.job_id, columns=True)
    findings: Json = job.findings or {}
    ladder = sources.ladders.get(job.model)
    rungs: Mapping[str, Rung] = {}
    if ladder is not None:
        rungs = {rung.tier.name: rung for rung in read_standing(db, ladder, sources.question, now=now).rungs}
    if sources.captures is None:
        ledger = account(db, None, job.model, now=now)
    else:
        ledger = read_account(db, sources.captures, job.model, now=now)
    manifest = job.manifest
    return concluded(
        Report(
            run=_run(job),
            made_at=now,
            currency=str(manifest.document.get("money", {}).get("currency", "CNY")),
            slo_ttft_seconds=manifest.ttft_seconds,
            slo_tpot_seconds=manifest.tpot_seconds,
            tiers=_tiers(sources, job, blocks, findings, rungs, now=now),
            ledger=ledger_of(ledger),
            earlier=earlier,
            manifest=dict(manifest.document),
        )
    )


def _run(job: Job) -> Run:
    return Run(
        id=job.job_id,
        model=job.model,
        state=job.state.value,
        began_at=job.created_at if job.started_at is None else job.started_at,
        ended_at=job.ended_at,
        begun_by=job.actor,
        why=job.reason,
        blocks=max(job.outlook.blocks, job.blocks_done),
        blocks_done=job.blocks_done,
        tokens=job.tokens_spent,
        remarks=job.remarks,
        replay_of=job.replay_of,
        differences=job.differences,
    )


def _tiers(
    sources: Sources,
    job: Job,
    blocks: Sequence[Block],
    findings: Json,
    rungs: Mapping[str, Rung],
    *,
    now: float,
) -> tuple[TierReport, ...]:
    manifest = job.manifest
    begin = job.created_at if job.started_at is None else job.started_at
    measured = [(block, block.figures) for block in blocks if block.figures is not None]
    ladder = sources.ladders.get(job.model)
    by_load = loads(
        [figures for block, figures in measured if block.part == "slo"],
        manifest.tiers,
        findings.get("gates", ()),
        manifest.document["slo"],
    )
    money = prices(findings, _retries(sources, job, rungs, now=now))
    best = {each["tier"]: each for each in findings.get("best", ())}
    most = {each["tier"]: each for each in findings.get("concurrency", ())}
    told = []
    for name in manifest.tiers:
        own = [figures for block, figures in measured if block.tier == name]
        looks = [
            ((block.started_at or begin) - begin, figures)
            for block, figures in measured
            if block.tier == name
        ]
        series, silent = engine(looks)
        rung = rungs.get(name)
        told.append(
            TierReport(
                name=name,
                baseline=name == manifest.baseline,
                verdict=None if rung is None else judged(rung, sources.question.policy),
                load=by_load.get(name),
                sweep=sweep(own, best.get(name)),
                concurrency=concurrency(own, most.get(name), manifest.tpot_seconds),
                money=money.get(name),
                engine=series,
                engine_not_told=silent,
                capacity=None
                if ladder is None
                else advised(
                    sources.db,
                    ladder,
                    job,
                    blocks,
                    name,
                    verdict=None if rung is None else rung.verdict,
                    now=now,
                ),
            )
        )
    return tuple(told)


def _retries(sources: Sources, job: Job, rungs: Mapping[str, Rung], *, now: float) -> dict[str, RetryRate]:
    """By tier: from live traffic, else from structured output that fails (`decision.retries`)."""
    steps = job.manifest.document.get("money", {}).get("failure", {}).get("steps", ())
    retried = float(steps[0]["share"]) if steps else 0.0
    live = resend_rates(sources.db, job.model, since=now - RETRY_DAYS * _DAY)
    baseline = job.manifest.baseline
    seen = _resent(live.get(baseline))
    found: dict[str, RetryRate | None] = {}
    any_structured = Tally()
    for name in job.manifest.tiers[1:]:
        rung = rungs.get(name)
        evidence = None if rung is None else rung.evidence
        structured = Tally() if evidence is None else evidence.tallies.get(_STRUCTURED, Tally())
        any_structured = structured if structured.n > any_structured.n else any_structured
        found[name] = candidate_rate(_resent(live.get(name)), seen, structured, retried=retried)
    found[baseline] = baseline_rate(seen, any_structured, retried=retried)
    return {name: rate for name, rate in found.items() if rate is not None}


def _resent(told: ResendRate | None) -> Resent | None:
    """Of those of which it would have been seen."""
    return Resent(total=told.exposed, resent=told.resent) if told is not None and told.exposed else None


def ledger_of(told: LedgerAccount) -> Ledger:
    """The account as a document has it."""
    return Ledger(
        seen=told.seen,
        skipped=dict(told.skipped),
        sampled=told.sampled,
        shipped=told.shipped,
        dropped=dict(told.dropped),
        processed=told.processed,
        expired=told.expired,
        lost=told.lost,
        waiting=told.waiting,
        in_flight=told.in_flight,
        unaccounted=told.unaccounted,
        balanced=told.balanced,
        problems=told.problems,
        pairs=tuple(
            PairLine(
                tier=each.tier,
                arm=each.arm,
                evaluator=each.evaluator,
                due=each.due,
                scored=each.scored,
                unscored=dict(each.unscored),
                not_applicable=each.not_applicable,
                over_budget=each.over_budget,
            )
            for each in told.pairs
        ),
    )
