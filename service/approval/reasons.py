"""`GET .../verdict/why`: the chain from counts to decision, the worst pairs, and how to check it all."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from service.approval.answers import pair_out, policy_digest
from service.approval.verdict_schemas import (
    LabelsOut,
    RecomputeOut,
    StepOut,
    StratumCountOut,
    WhyOut,
    WorstPairsOut,
)
from service.decision.decide import limits_of
from service.decision.evidence import Evidence
from service.decision.explain import explain
from service.decision.look import LEAST_ALPHA, MOST_PAIRS
from service.decision.policy import Criterion, Hypothesis, Policy
from service.decision.tally import Tally
from service.decision.verdict import Verdict
from service.moments import moment
from service.store.scored.worst import WorstPairs


def why_out(
    policy: Policy, evidence: Evidence, verdict: Verdict, worst: Sequence[WorstPairs], *, now: float
) -> WhyOut:
    """The whole answer; `worst` in the order of the policy's criteria."""
    return WhyOut(
        model=verdict.model,
        tier=verdict.tier,
        decision=verdict.decision,
        epoch=verdict.epoch,
        attempt=verdict.attempt,
        policy_digest=policy_digest(policy),
        steps=[
            StepOut(title=step.title, sentence=step.sentence, numbers=dict(step.numbers))
            for step in explain(policy, evidence, verdict)
        ],
        worst_pairs=[_worst_out(each) for each in worst],
        recompute=list(_recompute(policy, evidence)),
        evaluated_at=moment(now),
    )


def _worst_out(worst: WorstPairs) -> WorstPairsOut:
    return WorstPairsOut(
        criterion=worst.evaluator,
        pairs=worst.pairs,
        labels=[
            LabelsOut(baseline=baseline, candidate=candidate, pairs=amount)
            for (baseline, candidate), amount in worst.labels.items()
        ],
        strata=[StratumCountOut(stratum=stratum, pairs=amount) for stratum, amount in worst.strata.items()],
        examples=[pair_out(each) for each in worst.examples],
    )


def _recompute(policy: Policy, evidence: Evidence) -> Iterator[RecomputeOut]:
    """Commands that need nothing but the numbers above, and those that go back to the pairs."""
    alpha = limits_of(policy, evidence).alpha_accept
    for criterion in policy.visible:
        tally = evidence.tallies.get(criterion.evaluator, Tally())
        if 0 < tally.n <= MOST_PAIRS and LEAST_ALPHA <= alpha < 0.5:
            yield from _of_counts(criterion, tally, alpha)
    yield RecomputeOut(
        what="every count from the single pairs behind it; unequal counts are named",
        command="tiergate recount",
    )
    names = f"{shlex.quote(evidence.model)} {shlex.quote(evidence.tier)}"
    yield RecomputeOut(
        what="the counts themselves, by stratum and by tenant, and single pairs",
        command=f"tiergate evidence {names} --all --json",
    )


def _of_counts(criterion: Criterion, tally: Tally, alpha: float) -> Iterator[RecomputeOut]:
    name = criterion.evaluator
    if any(triple.pairs > 1 for triple in tally.units):
        # `stats` takes pairs to be independent; here several share a conversation and move its mean.
        yield RecomputeOut(
            what=f"{name}: from the units (n, b, c) of the step `{name}: e-values`, by the formula there; "
            "this takes pairs of one conversation for independent, and so comes near it only",
            command=_stats(tally.n, tally.harm, tally.benefit, criterion.margin, alpha),
        )
    else:
        yield RecomputeOut(
            what=f"{name}: E_NI, E_HARM and the interval from the counts",
            command=_stats(tally.n, tally.harm, tally.benefit, criterion.margin, alpha),
        )
    if criterion.hypothesis is Hypothesis.EQUIVALENT:
        yield RecomputeOut(
            what=f"{name}: the other direction; the lesser E_NI of the two counts, and the mean E_HARM",
            command=_stats(tally.n, tally.benefit, tally.harm, criterion.margin, alpha),
        )
    discordance = (tally.harm + tally.benefit) / tally.n
    yield RecomputeOut(
        what=f"{name}: pairs that a tier as discordant as this one needs, if it is equal",
        command=f"tiergate plan --margin {criterion.margin:.10g} --discordance {discordance:.10g} "
        f"--alpha {alpha:.10g}",
    )


def _stats(n: int, harm: int, benefit: int, margin: float, alpha: float) -> str:
    counts = f"--n {n} --harm {harm} --benefit {benefit}"
    return f"tiergate stats {counts} --margin {margin:.10g} --alpha {alpha:.10g}"
