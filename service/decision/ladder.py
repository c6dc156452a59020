"""The tiers of a ladder in order: verdicts in fixed sequence, and where a rollback goes.

Each tier is tested at full alpha against the baseline, and only counts once the rung below is accepted (fixed
sequence: Maurer, Hothorn & Lehmacher 1995; Westfall & Krishen 2001), so the whole ladder errs at most alpha.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from service.decision.decide import decide
from service.decision.evidence import Evidence
from service.decision.policy import Policy
from service.decision.verdict import Decision, Verdict


def decide_ladder(policy: Policy, candidates: Sequence[Evidence]) -> tuple[Verdict, ...]:
    """Verdicts of the candidates, given from the rung above the baseline upwards."""
    verdicts: list[Verdict] = []
    for evidence in candidates:
        below = verdicts[-1].decision if verdicts else None
        verdicts.append(decide(policy, evidence, rung_below=below))
    return tuple(verdicts)


def counts_as_reject(verdict: Verdict) -> bool:
    """Whether the ladder gives the tier up: rejected, or not shown by its N_max (fail closed, A4)."""
    return verdict.decision is Decision.REJECT or verdict.not_shown


def next_lower_rung(rungs: Sequence[str], tier: str, usable: Collection[str]) -> str | None:
    """Where to go from a tier: the nearest usable rung below it, None if there is none.

    `rungs` runs from the baseline upwards; ValueError for a tier that is not on the ladder.
    """
    if tier not in rungs:
        raise ValueError(f"tier {tier!r} is not on the ladder: {', '.join(rungs)}")
    for rung in reversed(rungs[: rungs.index(tier)]):
        if rung in usable:
            return rung
    return None
