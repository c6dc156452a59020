"""Evidence taken apart: by stratum, the worst first, and without each tenant in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from service.approval.verdict_schemas import StratumOut, TenantOut
from service.decision.decide import limits_of
from service.decision.evidence import Evidence
from service.decision.policy import Criterion, Policy
from service.decision.strata import worst_strata
from service.decision.tally import Tally
from service.decision.tenants import read_tenants
from service.store.scored.breakdown import StratumStanding

MOST_TENANTS = 50
"""Of each evaluator; what they leave out is less in the way than what they show."""


def strata_out(policy: Policy, evidence: Evidence, strata: Sequence[StratumStanding]) -> list[StratumOut]:
    """Every stratum that holds a counted pair; an e-value where there is enough to speak of harm."""
    criteria = {criterion.evaluator: criterion for criterion in policy.criteria}
    told = []
    for each in strata:
        estimate = each.estimate
        if estimate is None:
            continue
        tally = evidence.strata.get(each.evaluator, {}).get(each.stratum)
        told.append(
            StratumOut(
                evaluator=each.evaluator,
                stratum=each.stratum,
                n=each.sums.pairs,
                conversations=each.sums.units,
                harm=each.sums.harm,
                benefit=each.sums.benefit,
                estimate=estimate,
                log_e_harm=_harm(policy, criteria.get(each.evaluator), each.stratum, tally),
            )
        )
    return sorted(told, key=_worst_first)


def _harm(policy: Policy, criterion: Criterion | None, stratum: str, tally: Tally | None) -> float | None:
    if criterion is None or tally is None:
        return None
    found = worst_strata(policy, criterion, {stratum: tally})
    return found[0].log_e_harm if found else None


def _worst_first(stratum: StratumOut) -> tuple[float, float, str, str]:
    harm = 0.0 if stratum.log_e_harm is None else stratum.log_e_harm
    return -harm, -stratum.estimate, stratum.evaluator, stratum.stratum


def tenants_out(
    policy: Policy, evidence: Evidence, tenants: Mapping[str, Mapping[str, Tally]]
) -> list[TenantOut]:
    """By evaluator in the policy's order; in each, the tenant without whom least is left, first."""
    limits = limits_of(policy, evidence)
    return [
        TenantOut(evaluator=criterion.evaluator, **asdict(reading))
        for criterion in policy.visible
        for reading in read_tenants(policy, criterion, tenants.get(criterion.evaluator, {}), limits)[
            :MOST_TENANTS
        ]
    ]
