"""`/tier/act`: what a decision would do, exactly; once confirmed, done as the API's routes do it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from anyio.from_thread import run as in_loop
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.approvals import approve, reject, revoke, roll_back
from service.approval.errors import Problem
from service.approval.interventions import restore_alpha, skip, unskip
from service.approval.problem_codes import title_of
from service.approval.schemas import ChangeOut, InterventionOut
from service.dashboard.acting import forms
from service.dashboard.acting.foretelling import Foretold, foretell
from service.dashboard.acting.offers import PATH, Act, Offer, offers
from service.dashboard.site import Site
from service.dashboard.visit import Form, Visit, address

ACTS = tuple(act.value for act in Act)
PURPOSES = {
    Act.APPROVE: "approving a tier",
    Act.OVERRIDE: "approving against the verdict",
    Act.REJECT: "rejecting a tier",
    Act.REVOKE: "revoking an approval",
    Act.ROLL_BACK: "rolling a model back",
    Act.SKIP: "skipping a tier",
    Act.UNSKIP: "undoing a skip",
    Act.RESTORE_ALPHA: "restoring alpha",
}


def acting_routes(site: Site) -> Sequence[BaseRoute]:
    """A page that tells, and the form that it sends."""

    def ask(visit: Visit) -> Response:
        act = Act(visit.one_of("do", ACTS) or visit.needed("do"))
        return _page(site, visit, act, visit.needed("model"), visit.needed("tier"), to=visit.asked("to"))

    def do(visit: Visit, form: Form) -> Response:
        act = _act_of(form)
        model, tier = form.needed("model"), form.needed("tier")
        site.require(visit, act.scope, PURPOSES[act])
        try:
            changed = _done(site, visit, form, act)
        except Problem as problem:
            return _page(site, visit, act, model, tier, to=form.text("to"), problem=problem, form=form)
        # The page of a tier that is not configured any more is that of the one that serves instead.
        known = {each.name for each in site.desk.config.ladders[model].tiers}
        return site.see(
            "/tier", note=_note(act, changed), model=model, tier=tier if tier in known else changed.tier
        )

    return [site.get(PATH, ask), site.post(PATH, do)]


def _page(
    site: Site,
    visit: Visit,
    act: Act,
    model: str,
    tier: str,
    *,
    to: str = "",
    problem: Problem | None = None,
    form: Form | None = None,
) -> Response:
    """What it would do now; `problem` is why it was not done a moment ago."""
    status = 200 if problem is None else problem.status
    told: Foretold | None = None
    instead: tuple[Offer, ...] = ()
    refusal: Problem | None = None
    try:
        told = foretell(site.desk, act, model, tier, actor=visit.caller.name, to=to or None)
    except Problem as found:
        if found.status != 409:
            raise
        refusal, status = found, found.status
    standing = site.desk.standing(model) if told is None else told.standing
    shown = standing.ladder.baseline.name if tier in standing.gone else tier
    if told is None:
        instead = offers(standing, standing.rung(shown), site.desk.config.policy)
    return site.page(
        visit,
        "act.html",
        status=status,
        model=model,
        tier=tier,
        act=act,
        told=told,
        refusal=refusal,
        refusal_title="" if refusal is None else title_of(refusal.code),
        instead=[offer for offer in instead if offer.act is not act],
        problem=problem,
        written=form or Form(fields=()),
        to=to,
        hold=site.desk.config.promotion.hold_seconds,
        back=address("/tier", model=model, tier=shown),
    )


def _done(site: Site, visit: Visit, form: Form, act: Act) -> ChangeOut | InterventionOut:
    """What it answers; Problem where nothing was done."""
    desk, caller = site.desk, visit.caller
    model, tier, mark = form.needed("model"), form.needed("tier"), form.needed("mark")
    match act:
        case Act.APPROVE | Act.OVERRIDE:
            given = forms.approval_of(form, override=act is Act.OVERRIDE)
            return in_loop(partial(approve, desk, model, tier, given, caller, confirmed=mark))
        case Act.REJECT:
            rejection = forms.rejection_of(form)
            return in_loop(partial(reject, desk, model, tier, rejection, caller, confirmed=mark))
        case Act.REVOKE:
            reason, force = forms.reason_of(form), forms.forced(form)
            return in_loop(
                partial(revoke, desk, model, tier, caller, reason=reason, force=force, confirmed=mark)
            )
        case Act.ROLL_BACK:
            rollback = forms.rollback_of(form)
            return in_loop(partial(roll_back, desk, model, rollback, caller, confirmed=mark))
        case _:
            told = foretell(desk, act, model, tier, actor=caller.name)
            if told.mark != mark:
                raise Problem(
                    409,
                    "not_as_shown",
                    "it would do something else by now than was shown",
                    hint="look at what it would do now, then confirm that",
                )
            return _intervened(site, visit, form, act, model, tier)


def _intervened(site: Site, visit: Visit, form: Form, act: Act, model: str, tier: str) -> InterventionOut:
    if act is Act.SKIP:
        return skip(site.desk, model, tier, forms.intervention_of(form), visit.caller)
    if act is Act.UNSKIP:
        return unskip(site.desk, model, tier, visit.caller, reason=forms.reason_of(form))
    return restore_alpha(site.desk, model, tier, forms.intervention_of(form), visit.caller)


def _note(act: Act, changed: ChangeOut | InterventionOut) -> str:
    """The name of a notice."""
    if not changed.changed:
        return "act_nothing"
    if isinstance(changed, ChangeOut) and not changed.published:
        return "act_not_told"
    return f"act_{act.value}"


def _act_of(form: Form) -> Act:
    name = form.needed("do")
    if name not in ACTS:
        raise Problem(422, "invalid_request", f"do: none of {', '.join(ACTS)}", hint="use the page's form")
    return Act(name)
