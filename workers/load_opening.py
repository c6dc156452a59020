"""What is fixed before a shadow job's first block: how long its SLO part must be for the power of its gate.

From earlier jobs of the model, where there are any: which share of its requests the baseline missed, and how
alike requests of one block are. Without any, 1 % and not alike at all, which the first job then finds out.
"""

from __future__ import annotations

from service.decision.policy import Gate
from service.load.extent import Budget, Extent, Pace, extent
from service.store.load.jobs import Job, list_jobs
from service.store.verdicts.measurements import held_to
from workers.load_findings import Court
from workers.load_plan import USUAL_SEARCH, Opening

FIRST_MISS_SHARE = 0.01
LAST_JOBS = 20
"""Of the model, that are looked through for one that tells."""
USUAL_TOKENS = 1500.0
"""Of prompt and answer together, while no earlier job tells."""


def open_up(court: Court, job: Job, *, now: float) -> Opening:
    """The opening of a job, to be kept with it."""
    plan = job.manifest.plan
    if "slo" not in plan.parts:
        return Opening()
    arms = len(job.manifest.tiers)
    missed, correlation, tokens = _known(court, job)
    alphas = [
        held_to(court.db, court.policy, court.evidence_of(job.model, tier), Gate.SLO, at=now).alpha
        for tier in job.manifest.tiers[1:]
    ]
    pace = Pace(
        rate=plan.rate,
        arms=arms,
        blocks=plan.blocks,
        warm_up_seconds=plan.warm_up_seconds,
        settle_seconds=plan.settle_seconds,
        window_seconds=plan.window_seconds,
    )
    budget = Budget(
        seconds=None if plan.budget_seconds is None else max(0.0, plan.budget_seconds - _reserved(job)),
        tokens=None if plan.budget_tokens is None else plan.budget_tokens * _share(job),
        tokens_per_request=tokens,
    )
    # At an alpha of 0 nothing can be shown: the run is as long as it is asked to be, for what else it tells.
    alpha = min((each for each in alphas if each), default=0.05)

    def with_effect(effect: float) -> Extent:
        return extent(
            pace, budget, miss_share=missed, alpha=alpha, terms=court.policy.load_runs, design_effect=effect
        )

    found = with_effect(1.0)
    if correlation:
        # A longer block is worth less a request: the size that was asked for is taken, which errs little.
        size = plan.rate * plan.window_seconds / plan.blocks
        found = with_effect(1.0 + max(0.0, size - 1.0) * correlation)
    without = found.plan.without_power
    return Opening(
        slo_block_seconds=0.0 if without is not None else found.block_seconds,
        told=str(found),
        without_power="" if without is None else without.reason,
        miss_share=missed,
        correlation=correlation,
    )


def _known(court: Court, job: Job) -> tuple[float, float | None, float]:
    """Share of misses, correlation within blocks, and tokens of a request, as earlier jobs have them."""
    missed, correlation, tokens = None, None, None
    for each in list_jobs(court.db, job.model, limit=LAST_JOBS):
        slo = (each.findings or {}).get("slo")
        if each.job_id == job.job_id or not slo:
            continue
        arm = next((one for one in slo["arms"] if one["tier"] == job.manifest.baseline), None)
        if arm is not None and arm["offered"]:
            if missed is None:
                missed = 1 - arm["passed"] / arm["offered"]
            if tokens is None and each.tokens_spent and each.seconds_done:
                tokens = each.tokens_spent / (each.seconds_done * each.manifest.plan.rate)
        if correlation is None:
            correlation = slo.get("correlation")
    return (
        FIRST_MISS_SHARE if missed is None else missed,
        correlation,
        USUAL_TOKENS if tokens is None else tokens,
    )


def _reserved(job: Job) -> float:
    """Seconds of load that the parts after the SLO part are expected to need."""
    plan = job.manifest.plan
    arms = len(job.manifest.tiers)
    block = plan.settle_seconds + plan.block_seconds
    counts = {"sweep": USUAL_SEARCH, "cost": plan.blocks, "concurrency": USUAL_SEARCH}
    return sum(arms * counts[part] * block for part in plan.parts if part in counts)


def _share(job: Job) -> float:
    """Of the tokens that is the SLO part's."""
    return 1 / len(job.manifest.plan.parts)
