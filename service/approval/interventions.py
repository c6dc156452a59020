"""`POST`, `DELETE .../skip` and `POST .../restore-alpha`: decisions of an admin about a tier in its epoch.

`foresee` says what one of them would change of the ladder's verdicts, by deciding again with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.access import Caller, Scope, require
from service.approval.desk import CallerOf, Desk
from service.approval.errors import Problem
from service.approval.names import find_candidate, find_ladder
from service.approval.schemas import InterventionBody, InterventionOut
from service.decision.evidence import Evidence
from service.decision.ladder import counts_as_reject, decide_ladder
from service.decision.policy import LadderRule, Policy
from service.decision.verdict import Verdict
from service.store.decided.interventions import Kind, intervene, undo_skip
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing


class Intervention(StrEnum):
    """What an admin may decide about a tier."""

    SKIP = "skip"
    UNSKIP = "unskip"
    RESTORE_ALPHA = "restore_alpha"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A verdict of the ladder before and after."""

    tier: str
    before: Verdict
    after: Verdict

    @property
    def changes(self) -> bool:
        """Whether the decision, its reasons or the error rate it is held to would be others."""
        return self.before != self.after


def intervention_routes(desk: Desk) -> APIRouter:
    """What changes how a ladder is decided."""
    router = APIRouter(tags=["decisions of people and pipelines"])

    @router.post("/models/{model:path}/tiers/{tier:path}/skip", summary="Let the tiers above do without it")
    def post_skip(model: str, tier: str, caller: CallerOf, body: InterventionBody) -> InterventionOut:
        """Only of a tier that is rejected or not shown. Those above share alpha then, as `independent` does.

        It holds for this epoch of the tier. Repeating it changes nothing.
        """
        return skip(desk, model, tier, body, caller)

    @router.delete("/models/{model:path}/tiers/{tier:path}/skip", summary="Let the tiers above wait again")
    def delete_skip(
        model: str,
        tier: str,
        caller: CallerOf,
        reason: Annotated[str | None, Query(max_length=2000)] = None,
    ) -> InterventionOut:
        """Every tier above waits for this one again, at the full error rate. Repeating it changes nothing."""
        return unskip(desk, model, tier, caller, reason=reason)

    @router.post("/models/{model:path}/tiers/{tier:path}/restore-alpha", summary="Count its attempts anew")
    def post_alpha(model: str, tier: str, caller: CallerOf, body: InterventionBody) -> InterventionOut:
        """For a new epoch that has nothing to do with the tier, such as an upgrade of the baseline.

        The present epoch is attempt 1 from now on. Repeating it changes nothing.
        """
        return restore_alpha(desk, model, tier, body, caller)

    return router


def skip(desk: Desk, model: str, tier: str, body: InterventionBody, caller: Caller) -> InterventionOut:
    """Let the tiers above do without this one; Problem where that may not be."""
    require(caller, Scope.ADMIN, "skipping a tier")
    standing = standing_of(desk, model, tier)
    check_skip(standing, standing.rung(tier), desk.config.policy)
    changed = intervene(
        desk.db,
        Kind.SKIP,
        model=model,
        tier=tier,
        epoch=_known(standing.rung(tier))[0].epoch,
        reason=body.reason,
        actor=caller.name,
        at=desk.now(),
    )
    return _answer(desk, model, tier, changed=changed)


def unskip(desk: Desk, model: str, tier: str, caller: Caller, *, reason: str | None) -> InterventionOut:
    """Let the tiers above wait for this one again; Problem where that may not be."""
    require(caller, Scope.ADMIN, "undoing a skip")
    epoch = _known(standing_of(desk, model, tier).rung(tier))[0].epoch
    changed = undo_skip(
        desk.db, model=model, tier=tier, epoch=epoch, reason=reason, actor=caller.name, at=desk.now()
    )
    return _answer(desk, model, tier, changed=changed)


def restore_alpha(
    desk: Desk, model: str, tier: str, body: InterventionBody, caller: Caller
) -> InterventionOut:
    """Count the present epoch as the tier's first attempt; Problem where that may not be."""
    require(caller, Scope.ADMIN, "restoring alpha")
    evidence, _ = _known(standing_of(desk, model, tier).rung(tier))
    changed = evidence.attempt > 1 and intervene(
        desk.db,
        Kind.RESTORE_ALPHA,
        model=model,
        tier=tier,
        epoch=evidence.epoch,
        reason=body.reason,
        actor=caller.name,
        at=desk.now(),
    )
    return _answer(desk, model, tier, changed=changed)


def standing_of(desk: Desk, model: str, tier: str) -> Standing:
    """The ladder of a candidate; Problem where there is none such."""
    find_candidate(find_ladder(desk.config.ladders, model), tier)
    return desk.standing(model)


def foresee(policy: Policy, standing: Standing, tier: str, change: Intervention) -> Sequence[Foreseen]:
    """The verdict of every candidate, from the bottom up, as it is and as it would be with the change."""
    known = [_known(rung) for rung in standing.rungs[1:]]
    evidence = [_with(each, change) if each.tier == tier else each for each, _ in known]
    after = decide_ladder(policy, evidence)
    return [
        Foreseen(tier=before.tier, before=before, after=then)
        for (_, before), then in zip(known, after, strict=True)
    ]


def check_skip(standing: Standing, rung: Rung, policy: Policy) -> None:
    """409 unless tiers wait for this one, and it was given up."""
    evidence, verdict = _known(rung)
    name = rung.tier.name
    if policy.ladder_rule is not LadderRule.FIXED_SEQUENCE:
        raise Problem(
            409, "nothing_to_skip", f"`ladder_rule: {policy.ladder_rule}`: no tier waits for another one"
        )
    if rung is standing.rungs[-1]:
        raise Problem(409, "nothing_to_skip", f"no tier is above {name!r}, so none waits for it")
    if evidence.skipped is None and not counts_as_reject(verdict):
        raise Problem(
            409,
            "not_rejected",
            f"{name!r} is {verdict.decision}: only a tier that is rejected or not shown may be skipped",
            hint="wait for its verdict",
            reasons=verdict.reasons,
            decision=verdict.decision.value,
        )


def _with(evidence: Evidence, change: Intervention) -> Evidence:
    match change:
        case Intervention.SKIP:
            return replace(evidence, skipped=evidence.skipped or "")
        case Intervention.UNSKIP:
            return replace(evidence, skipped=None)
        case Intervention.RESTORE_ALPHA:
            return replace(evidence, attempt=1, restored=evidence.restored or "")


def _known(rung: Rung) -> tuple[Evidence, Verdict]:
    evidence, verdict = rung.evidence, rung.verdict
    assert evidence is not None, "a candidate has evidence"
    assert verdict is not None, "a candidate has a verdict"
    return evidence, verdict


def _answer(desk: Desk, model: str, tier: str, *, changed: bool) -> InterventionOut:
    evidence, verdict = _known(desk.standing(model).rung(tier))
    return InterventionOut(
        model=model,
        tier=tier,
        epoch=evidence.epoch,
        changed=changed,
        skipped=evidence.skipped is not None,
        attempt=evidence.attempt,
        alpha=verdict.alpha_accept,
    )
