"""The tiers of a ladder in order: verdicts in fixed sequence, and where a rollback goes.

Each tier is tested at full alpha against the baseline, and only counts once the rung below is accepted (fixed
sequence: Maurer, Hothorn & Lehmacher 1995; Westfall & Krishen 2001), so the whole ladder errs at most alpha.
A tier that was rejected may be skipped (A4): those above it no longer wait for it, nor for one another, and
share alpha instead; those below it stay a sequence, and all above wait for that.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from service.decision.decide import decide
from service.decision.evidence import Evidence
from service.decision.multiplicity import log_e_holm
from service.decision.policy import LadderRule, Policy, Role
from service.decision.verdict import Decision, Finding, Verdict


def decide_ladder(policy: Policy, candidates: Sequence[Evidence]) -> tuple[Verdict, ...]:
    """Verdicts of the candidates, given from the rung above the baseline upwards."""
    verdicts: list[Verdict] = []
    waits_for: Decision | None = None
    for evidence in with_skips(policy, candidates):
        verdicts.append(decide(policy, evidence, rung_below=waits_for))
        if evidence.skipped is None and not evidence.skipped_below:
            waits_for = verdicts[-1].decision
    tiers = max((evidence.tiers_under_test for evidence in candidates), default=1)
    return with_holm(verdicts, tiers_under_test=tiers)


def with_skips(policy: Policy, candidates: Sequence[Evidence]) -> list[Evidence]:
    """The evidence, each with the tiers below it that are skipped; where no tier waits, none is."""
    told: list[Evidence] = []
    below: tuple[str, ...] = ()
    for evidence in candidates:
        if policy.ladder_rule is not LadderRule.FIXED_SEQUENCE:
            told.append(replace(evidence, skipped=None, skipped_below=()))
            continue
        told.append(replace(evidence, skipped_below=below))
        if evidence.skipped is not None:
            below = (*below, evidence.tier)
    return told


def with_holm(verdicts: Sequence[Verdict], *, tiers_under_test: int) -> tuple[Verdict, ...]:
    """The verdicts of one ladder, with every decisive harm e-value adjusted by e-Holm (B3).

    At least e / M, the Bonferroni value that decides: what that rejects this rejects as well, and sometimes
    more, by averaging over the tiers that are harmed too. Shown beside it. Tiers under test of which no
    verdict is given count as if all evidence spoke for them, which can only lower the others.
    """
    of_tier = len(verdicts[0].decisive) if verdicts else 0
    absent = [-math.inf] * (of_tier * max(0, tiers_under_test - len(verdicts)))
    given = [finding.log_e.harm for verdict in verdicts for finding in verdict.decisive]
    adjusted = iter(log_e_holm([*given, *absent]))

    def sharpened(finding: Finding) -> Finding:
        if finding.role is not Role.DECISIVE:
            return finding
        return replace(finding, log_e_holm=next(adjusted))

    return tuple(
        replace(verdict, findings=tuple(sharpened(finding) for finding in verdict.findings))
        for verdict in verdicts
    )


def counts_as_reject(verdict: Verdict) -> bool:
    """Whether the ladder gives the tier up: rejected, or not shown in time (fail closed, A4)."""
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
