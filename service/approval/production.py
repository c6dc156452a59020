"""What production's policy would say of evidence gathered under another one, such as a demo's."""

from __future__ import annotations

from functools import lru_cache

from service.decision.ladder import decide_ladder
from service.decision.policy import Asked, Criterion, Policy
from service.decision.terms import Terms
from service.decision.verdict import Verdict
from service.store.verdicts.standing import Standing


@lru_cache(maxsize=16)
def production_of(policy: Policy) -> Policy:
    """The default margins, minimum pairs, error rates and gates, for the same criteria in their roles.

    What a failure costs is the policy's: it is a price, and no rule.
    """
    return Policy(
        load_runs=Terms(failure=policy.load_runs.failure),
        criteria=tuple(
            Criterion(evaluator=criterion.evaluator, hypothesis=criterion.hypothesis, role=criterion.role)
            for criterion in policy.criteria
        ),
    )


def is_as_strict(policy: Policy) -> bool:
    """Whether a policy asks for at least what production's asks for."""
    production = production_of(policy)
    return (
        all(
            own.margin <= asked.margin and own.min_pairs >= asked.min_pairs
            for own, asked in zip(policy.criteria, production.criteria, strict=True)
        )
        and policy.alpha_accept <= production.alpha_accept
        and policy.alpha_gates <= production.alpha_gates
        and policy.load_runs.slo_margin <= production.load_runs.slo_margin
        and policy.max_unscored <= production.max_unscored
        and all(asked is Asked.REQUIRED for asked in policy.gates.values())
    )


def production_verdict(policy: Policy, standing: Standing, tier: str) -> Verdict:
    """The verdict on the tier if production's policy had been asked, on the rungs below as well."""
    last = standing.ladder.rung(tier)
    evidence = [rung.evidence for rung in standing.rungs[: last + 1] if rung.evidence is not None]
    return decide_ladder(production_of(policy), evidence)[-1]
