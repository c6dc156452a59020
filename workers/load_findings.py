"""What a shadow job found, part by part, and the measurements that verdicts read: once a part is over.

Asked again, after a worker died in between, it finds the same and replaces what it wrote: a measurement has
the time at which the last block of its part ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from service.decision.evidence import Evidence, Measured, Shown
from service.decision.intraclass import block_correlation
from service.decision.money import Arm, money_gate
from service.decision.policy import Gate, Policy
from service.decision.slo import baseline_slo, slo_gate
from service.decision.tally import Tally
from service.load.crowd import crowd
from service.load.figures import BlockFigures
from service.load.plan import Part
from service.store.load.jobs import Job
from service.store.load.manifest import Manifest
from service.store.scored.failures import read_failures
from service.store.sql.database import Database
from service.store.verdicts.measurements import Measurement, held_to, put_measurement
from workers.load_reading import best_of, cost_blocks, cost_rate, doubt_of, rounds_of, steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Court:
    """What gates are asked under."""

    db: Database
    policy: Policy
    evidence_of: Callable[[str, str], Evidence]
    """The evidence of (model, tier) in the epoch that counts now; of the baseline, its epoch alone."""
    unsettled_of: Callable[[str, str], str]
    operations: float
    """Of running one more tier, per request, in the currency."""


Finding = dict[str, Any]
"""As JSON."""


def slo_findings(
    court: Court, job: Job, blocks: Sequence[BlockFigures], *, at: float, unequal: str
) -> Finding:
    """The SLO gate of every tier from whole rounds, with what they rest on; `blocks` have their columns.

    `unequal`: why the arms were not under equal load, though it was asked for; empty when they were.
    """
    manifest = job.manifest
    rounds = rounds_of(manifest, blocks)
    baseline = manifest.baseline
    correlation = block_correlation([_nearness(manifest, each[baseline]) for each in rounds])
    gates, arms = [], []
    first = [each[baseline] for each in rounds]
    for tier in manifest.tiers:
        own = [each[tier] for each in rounds]
        arms.append(_slo_arm(tier, own))
        evidence = court.evidence_of(manifest.model, tier)
        if doubt := doubt_of(baseline, first, tier, own):
            shown = Measured(shown=Shown.UNDECIDED, reason=doubt)
            gates.append(_put(court, job, tier, Gate.SLO, evidence, shown, at=at, run=None, unequal=unequal))
            continue
        held = held_to(court.db, court.policy, evidence, Gate.SLO, at=at)
        terms = held.terms if correlation is None else replace(held.terms, block_correlation=correlation)
        if tier == baseline:
            shown = baseline_slo([(each.offered, each.missed) for each in own], alpha=held.alpha, terms=terms)
        else:
            shown = slo_gate(paired(rounds, baseline, tier), alpha=held.alpha, terms=terms)
        gates.append(_put(court, job, tier, Gate.SLO, evidence, shown, at=at, run=held.run, unequal=unequal))
    return {"slo": {"rounds": len(rounds), "correlation": correlation, "arms": arms}, "gates": gates}


def no_slo_findings(court: Court, job: Job, reason: str, *, at: float) -> Finding:
    """The SLO gate of candidates where the run was not worth its load."""
    gates = []
    for tier in job.manifest.tiers[1:]:
        evidence = court.evidence_of(job.model, tier)
        shown = Measured(shown=Shown.UNDECIDED, reason=reason)
        gates.append(_put(court, job, tier, Gate.SLO, evidence, shown, at=at, run=None))
    return {"slo": None, "gates": gates}


def paired(rounds: Sequence[Mapping[str, BlockFigures]], baseline: str, tier: str) -> Tally:
    """Misses by request, a triple for each round: both arms were sent the same request at the same time.

    What only one arm was offered, at the edge of a window, pairs with nothing and is left out.
    """
    tally = Tally()
    for each in rounds:
        theirs = _met(each[tier])
        pairs = [(met, theirs[key]) for key, met in _met(each[baseline]).items() if key in theirs]
        if pairs:
            tally = tally.add(
                pairs=len(pairs),
                harm=sum(first and not second for first, second in pairs),
                benefit=sum(second and not first for first, second in pairs),
                both_failed=sum(not first and not second for first, second in pairs),
            )
    return tally


def _met(block: BlockFigures) -> dict[tuple[int, int], bool]:
    """Whether each request met the SLO, by the millisecond at which it was due and which it was."""
    columns = block.columns
    return {
        (round(scheduled * 1000), request): met
        for scheduled, request, met in zip(columns.scheduled, columns.request, columns.met, strict=True)
    }


def sweep_findings(job: Job, blocks: Sequence[BlockFigures]) -> Finding:
    """The best rate of every tier, and whether it was reached."""
    found = []
    for tier in job.manifest.tiers:
        best = best_of(job.manifest, blocks, tier)
        found.append(
            {
                "tier": tier,
                "rate": best.rate,
                "goodput": best.goodput,
                "reached": best.reached,
                "told": best.reason,
            }
        )
    return {"best": found}


def cost_findings(
    court: Court, job: Job, blocks: Sequence[BlockFigures], *, at: float, unequal: str
) -> Finding:
    """The money gate of every candidate from fresh blocks at each tier's own best rate."""
    manifest = job.manifest
    arms = {tier: _cost_arm(manifest, blocks, tier) for tier in manifest.tiers}
    gates = []
    for tier in manifest.tiers[1:]:
        evidence = court.evidence_of(manifest.model, tier)
        held = held_to(court.db, court.policy, evidence, Gate.MONEY, at=at)
        missing = _missing(arms[manifest.baseline], arms[tier]) or doubt_of(
            manifest.baseline,
            cost_blocks(manifest, blocks, manifest.baseline),
            tier,
            cost_blocks(manifest, blocks, tier),
        )
        if missing:
            shown, run = Measured(shown=Shown.UNDECIDED, reason=missing), None
        else:
            run = held.run
            shown = money_gate(
                _priced(arms[manifest.baseline]),
                _priced(arms[tier]),
                read_failures(
                    court.db,
                    manifest.model,
                    tier,
                    evidence.epoch,
                    [criterion.evaluator for criterion in court.policy.decisive],
                ),
                alpha=held.alpha,
                terms=held.terms,
                operations=court.operations,
            )
        gates.append(_put(court, job, tier, Gate.MONEY, evidence, shown, at=at, run=run, unequal=unequal))
    return {"cost": list(arms.values()), "gates": gates}


def concurrency_findings(job: Job, blocks: Sequence[BlockFigures]) -> Finding:
    """The most requests at once that keep TPOT, with the curve; where to start with max-num-seqs."""
    found = []
    for tier in job.manifest.tiers:
        most = crowd(steps_of(blocks, tier), tpot_seconds=job.manifest.tpot_seconds)
        found.append(
            {
                "tier": tier,
                "concurrency": most.concurrency,
                "reached": most.reached,
                "limit_seconds": most.limit_seconds,
                "told": most.reason,
                "curve": [asdict(step) for step in most.curve],
            }
        )
    return {"concurrency": found}


def last_end(parts: Sequence[tuple[str, float | None]], part: Part) -> float | None:
    """When the last block of a part ended, from (part, end) of each."""
    ends = [end for name, end in parts if name == part and end is not None]
    return max(ends, default=None)


def _put(
    court: Court,
    job: Job,
    tier: str,
    gate: Gate,
    evidence: Evidence,
    shown: Measured,
    *,
    at: float,
    run: int | None,
    unequal: str = "",
) -> Finding:
    """Keep the measurement, unless it belongs to no epoch; what is told of it."""
    began_as = str(job.manifest.tier(tier)["epoch"])
    counts_nowhere = ""
    if unsettled := court.unsettled_of(job.model, tier):
        counts_nowhere = f"its engines are unsettled, so that it counts nowhere: {unsettled}"
    elif began_as != evidence.epoch:
        counts_nowhere = "its epoch changed during the job, so that it counts nowhere"
    elif unequal:
        counts_nowhere = unequal
    told = {"gate": gate.value, "tier": tier, "epoch": evidence.epoch, "at": at, "run": run}
    if counts_nowhere:
        return {
            **told,
            "run": None,
            "shown": Shown.UNDECIDED.value,
            "reason": f"{counts_nowhere} ({shown.reason})",
            "numbers": dict(shown.numbers),
        }
    put_measurement(court.db, Measurement.of(shown, evidence, gate, at=at, run=run))
    return {**told, "shown": shown.shown.value, "reason": shown.reason, "numbers": dict(shown.numbers)}


def _nearness(manifest: Manifest, block: BlockFigures) -> list[float]:
    """How near each request of a block came to missing the SLO: 1 is the limit."""
    return [
        math.inf if ttft is None else max(ttft / manifest.ttft_seconds, (tpot or 0.0) / manifest.tpot_seconds)
        for ttft, tpot in zip(block.columns.ttft, block.columns.tpot, strict=True)
    ]


def _slo_arm(tier: str, blocks: Sequence[BlockFigures]) -> Finding:
    return {
        "tier": tier,
        "blocks": len(blocks),
        "offered": sum(each.offered for each in blocks),
        "passed": sum(each.passed for each in blocks),
        "over_saturated": sum(each.over_saturated for each in blocks),
    }


def _cost_arm(manifest: Manifest, blocks: Sequence[BlockFigures], tier: str) -> Finding:
    """Goodput of each fresh block, and what an hour of the backends costs that gave it."""
    used = cost_blocks(manifest, blocks, tier)
    told = manifest.tier(tier)
    each = told["price_per_hour"]
    tokens = [one.mean_output_tokens for one in used if one.mean_output_tokens is not None]
    return {
        "tier": tier,
        "rate": cost_rate(manifest, blocks, tier),
        "goodputs": [one.goodput for one in used],
        "backends": len(told["backends"]),
        "price_per_hour": None if each is None else each * len(told["backends"]),
        "mean_output_tokens": math.fsum(tokens) / len(tokens) if tokens else None,
    }


def _missing(*arms: Finding) -> str:
    """Why costs cannot be told; empty when they can."""
    for arm in arms:
        if arm["price_per_hour"] is None:
            return f"{arm['tier']} has no price_per_hour"
    for arm in arms:
        if arm["rate"] is None:
            return f"the best rate of {arm['tier']} was not reached"
    for arm in arms:
        if arm["mean_output_tokens"] is None:
            return f"no block of {arm['tier']} at {arm['rate']:.3g} requests/s can be used"
    return ""


def _priced(arm: Finding) -> Arm:
    return Arm(
        price_per_hour=arm["price_per_hour"],
        tokens_per_second=arm["goodputs"],
        mean_output_tokens=arm["mean_output_tokens"],
    )
