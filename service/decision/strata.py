"""The worst stratum: a tier that is fine on average and breaks on one kind of request is not fine.

Within a stratum s, fixed by the request before any answer exists, E_HARM,s(margin) is an e-process against
"theta_s <= margin" as the overall one is against theta <= margin. Any of M criteria and tiers in any of S
strata may reject, so each is held to

    E_HARM,s(margin) >= M x S / alpha_strata

and all of them together err at most alpha_strata, at every look (union bound; ADR 17). S is the number of
strata there can be, not of those met so far. A stratum whose units have a mean difference of at most the
margin cannot be the one: the log of a bet is concave in D, so log E_HARM,s <= 0 there, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.decision.directions import log_e_harms
from service.decision.eprocess import Differences
from service.decision.policy import Criterion, Policy
from service.decision.tally import Tally
from service.decision.unscored import withheld_reason
from service.decision.verdict import StratumHarm

MOST_SHOWN = 5
"""Strata that a finding lists."""


def worst_strata(
    policy: Policy, criterion: Criterion, strata: Mapping[str, Tally], *, withheld: bool = False
) -> tuple[StratumHarm, ...]:
    """The strata by evidence of harm, worst first; those without a counted pair have none.

    `withheld`: too many scores are missing over all. Then, or when they are missing in the stratum itself,
    its harm stands only if it would stand had all of the stratum's missing pairs spoken against it.
    """
    met = {stratum: tally for stratum, tally in strata.items() if tally.n}
    believed = [not withheld and withheld_reason(policy, tally, None) is None for tally in met.values()]
    harms = log_e_harms(criterion, met.values(), believed)
    ranked = sorted(zip(met, harms, strict=True), key=lambda each: (-each[1], each[0]))
    return tuple(_harm(stratum, met[stratum], harm) for stratum, harm in ranked[:MOST_SHOWN])


def _harm(stratum: str, tally: Tally, log_e_harm: float) -> StratumHarm:
    mean = Differences.of_tally(tally).mean
    assert mean is not None, "a stratum with a counted pair has a mean"
    return StratumHarm(
        stratum=stratum,
        n=tally.n,
        conversations=tally.conversations,
        harm=tally.harm,
        benefit=tally.benefit,
        estimate=mean,
        log_e_harm=log_e_harm,
    )
