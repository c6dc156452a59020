"""Whom an acceptance rests on: the e-values without each tenant, and each tenant's own (statistics A2, B2.7).

Tenants are not the unit, since few of them would never be evidence enough. But a large one may carry a tier
that the others suffer from, and a small one may suffer alone. So its share is capped where the policy says,
the criterion is shown without it, and harm to it is a warning. Warnings, not decisions: tenants come and go,
so that no number of them is fixed before the evidence is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from service.decision.directions import log_e_values
from service.decision.eprocess import Differences, log_capital, log_mixture
from service.decision.grid import G10, Grid
from service.decision.policy import Criterion, Hypothesis, Policy
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds
from service.decision.wording import compared_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantReading:
    """One tenant's part in one criterion."""

    tenant: str
    n: int
    conversations: int
    harm: int
    benefit: int
    share: float
    """Of the criterion's units."""
    log_e_without: float
    """log E_NI(margin) of everyone else; for equivalence the lesser direction."""
    passes_without: bool
    """Whether the e-value of everyone else reaches the threshold of acceptance."""
    log_e_harm: float
    """log E_HARM(margin) of this tenant alone."""
    log_e_warn: float
    """log E_HARM(0) of this tenant alone."""
    warn: bool
    """E_HARM(0) >= tenants / alpha_warn."""


def read_tenants(
    policy: Policy, criterion: Criterion, tenants: Mapping[str, Tally], limits: Thresholds
) -> tuple[TenantReading, ...]:
    """Every tenant with a counted pair, the one whose absence leaves least evidence first."""
    counted = {tenant: tally for tenant, tally in tenants.items() if tally.n}
    units = sum(tally.conversations for tally in counted.values())
    without = _without_each(criterion, counted)
    readings = []
    for tenant, tally in counted.items():
        own = log_e_values(criterion, tally)
        readings.append(
            TenantReading(
                tenant=tenant,
                n=tally.n,
                conversations=tally.conversations,
                harm=tally.harm,
                benefit=tally.benefit,
                share=tally.conversations / units,
                log_e_without=without[tenant],
                passes_without=without[tenant] >= limits.accept,
                log_e_harm=own.harm,
                log_e_warn=own.warn,
                warn=own.warn >= math.log(len(counted)) - math.log(policy.alpha_warn),
            )
        )
    return tuple(sorted(readings, key=lambda each: (each.log_e_without, each.tenant)))


def share_withheld(policy: Policy, tally: Tally, tenants: Mapping[str, Tally]) -> str | None:
    """Why the criterion cannot be accepted for want of other tenants; None without a cap."""
    if policy.tenant_share_cap is None:
        return None
    units = {tenant: each.conversations for tenant, each in tenants.items()}
    known = sum(units.values())
    if not known:
        return f"tenants are known of 0 of {tally.conversations} units, and tenant_share_cap is set"
    largest = max(units, key=lambda tenant: (units[tenant], tenant))
    share = units[largest] / known
    if share <= policy.tenant_share_cap:
        return None
    found, allowed = compared_shares(share, policy.tenant_share_cap)
    return f"share of tenant {largest} {found} > tenant_share_cap {allowed}"


def _without_each(criterion: Criterion, tenants: Mapping[str, Tally], grid: Grid = G10) -> dict[str, float]:
    """log E_NI of all the others: log capitals add up over units, so each tenant's is taken off the total."""
    lesser = dict.fromkeys(tenants, math.inf)
    for mirrored in (False, True) if criterion.hypothesis is Hypothesis.EQUIVALENT else (False,):
        capitals = {}
        for tenant, tally in tenants.items():
            differences = Differences.of_tally(tally)
            capitals[tenant] = log_capital(
                differences.mirrored() if mirrored else differences, criterion.margin, grid
            )
        total = sum(capitals.values())
        for tenant, capital in capitals.items():
            lesser[tenant] = min(lesser[tenant], log_mixture(total - capital, grid))
    return lesser
