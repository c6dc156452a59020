"""`POST`, `DELETE .../skip` and `POST .../restore-alpha`: decisions of an admin about a tier in its epoch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.access import Scope, require
from service.approval.desk import CallerOf, Desk
from service.approval.errors import Problem
from service.approval.names import find_candidate, find_ladder
from service.approval.schemas import InterventionBody, InterventionOut
from service.decision.evidence import Evidence
from service.decision.ladder import counts_as_reject
from service.decision.policy import LadderRule, Policy
from service.decision.verdict import Verdict
from service.store.interventions import Kind, intervene, undo_skip
from service.store.standing import Rung, Standing


def intervention_routes(desk: Desk) -> APIRouter:
    """What changes how a ladder is decided."""
    router = APIRouter(tags=["decisions of people and pipelines"])

    def standing_of(model: str, tier: str) -> Standing:
        find_candidate(find_ladder(desk.config.ladders, model), tier)
        return desk.standing(model)

    def answer(model: str, tier: str, *, changed: bool) -> InterventionOut:
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

    @router.post("/models/{model:path}/tiers/{tier:path}/skip", summary="Let the tiers above do without it")
    def skip(model: str, tier: str, caller: CallerOf, body: InterventionBody) -> InterventionOut:
        """Only of a tier that is rejected or not shown. Those above share alpha then, as `independent` does.

        It holds for this epoch of the tier. Repeating it changes nothing.
        """
        require(caller, Scope.ADMIN, "skipping a tier")
        standing = standing_of(model, tier)
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
        return answer(model, tier, changed=changed)

    @router.delete("/models/{model:path}/tiers/{tier:path}/skip", summary="Let the tiers above wait again")
    def unskip(
        model: str,
        tier: str,
        caller: CallerOf,
        reason: Annotated[str | None, Query(max_length=2000)] = None,
    ) -> InterventionOut:
        """Every tier above waits for this one again, at the full error rate. Repeating it changes nothing."""
        require(caller, Scope.ADMIN, "undoing a skip")
        epoch = _known(standing_of(model, tier).rung(tier))[0].epoch
        changed = undo_skip(
            desk.db, model=model, tier=tier, epoch=epoch, reason=reason, actor=caller.name, at=desk.now()
        )
        return answer(model, tier, changed=changed)

    @router.post("/models/{model:path}/tiers/{tier:path}/restore-alpha", summary="Count its attempts anew")
    def restore_alpha(model: str, tier: str, caller: CallerOf, body: InterventionBody) -> InterventionOut:
        """For a new epoch that has nothing to do with the tier, such as an upgrade of the baseline.

        The present epoch is attempt 1 from now on. Repeating it changes nothing.
        """
        require(caller, Scope.ADMIN, "restoring alpha")
        evidence, _ = _known(standing_of(model, tier).rung(tier))
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
        return answer(model, tier, changed=changed)

    return router


def _known(rung: Rung) -> tuple[Evidence, Verdict]:
    evidence, verdict = rung.evidence, rung.verdict
    assert evidence is not None, "a candidate has evidence"
    assert verdict is not None, "a candidate has a verdict"
    return evidence, verdict


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
