"""`/`: what needs a person, then every model's ladder as it stands, read anew for every visit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.dashboard.attention import Known, matters
from service.dashboard.coverage import coverage_of
from service.dashboard.site import Site
from service.dashboard.upcoming import upcoming
from service.dashboard.visit import Visit
from service.decision.verdict import Decision
from service.store.labels.adjudication import Where, left_to_judge
from service.store.load.jobs import list_jobs
from service.store.outgoing.callbacks import count_callbacks
from service.store.scored.latest import latest_pairs
from service.store.verdicts.rung import Rung, RungState
from service.store.verdicts.standing import Standing, read_account

MOST_OPEN = 12
"""Of what needs a person; the rest is folded, so that the ladders are not out of sight."""
TONES = {
    RungState.BASELINE: "",
    RungState.SHADOWING: "wait",
    RungState.UNDECIDED: "wait",
    RungState.ACCEPT: "good",
    RungState.REJECT: "bad",
    RungState.APPROVED: "good",
    RungState.EXPIRED: "wait",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rung, as the ladder shows it."""

    rung: Rung
    tone: str
    pairs: int | None
    """Of the criterion that has fewest; None for the baseline."""
    latest: float | None
    """Unix seconds of the latest pair; None without one."""
    strata: int
    """Strata of the traffic that are worth covering."""
    gaps: int
    """Of these, those that the evidence does not cover."""


def overview_routes(site: Site) -> Sequence[BaseRoute]:
    """The first page."""

    def overview(visit: Visit) -> Response:
        desk = site.desk
        known = [_known(site, visit, model) for model in visit.models]
        # Answers to pipelines and chats name their models, but a tool serves all: not for a narrowed token.
        callbacks = count_callbacks(desk.db) if visit.caller.models is None else {}
        return site.page(
            visit,
            "overview.html",
            matters=matters(known, callbacks, now=visit.now),
            most_open=MOST_OPEN,
            models=[(each, steps_of(each.standing, _latest(site, each.standing))) for each in known],
            upcoming=upcoming(desk, visit.now),
        )

    return [site.get("/", overview)]


def steps_of(standing: Standing, latest: dict[str, float]) -> list[Step]:
    """The ladder from its top to the baseline."""
    covered = {each.tier: each for each in coverage_of(standing)}
    return [
        Step(
            rung=rung,
            tone=tone_of(rung),
            pairs=_pairs(rung),
            latest=latest.get(rung.tier.name),
            strata=sum(each.worth_covering for each in covered[rung.tier.name].strata)
            if rung.tier.name in covered
            else 0,
            gaps=len(covered[rung.tier.name].gaps) if rung.tier.name in covered else 0,
        )
        for rung in reversed(standing.rungs)
    ]


def tone_of(rung: Rung) -> str:
    """Of its state; whatever does harm while it serves, or is barred, is bad."""
    harms = rung.verdict is not None and rung.verdict.decision is Decision.REJECT and rung.weight > 0
    return "bad" if harms or rung.barred else TONES[rung.state]


def _pairs(rung: Rung) -> int | None:
    if rung.verdict is None:
        return None
    return min((finding.n for finding in rung.verdict.findings), default=0)


def _latest(site: Site, standing: Standing) -> dict[str, float]:
    return latest_pairs(
        site.desk.db, standing.ladder.model, [tier.name for tier in standing.ladder.candidates]
    )


def _known(site: Site, visit: Visit, model: str) -> Known:
    desk = site.desk
    standing = desk.standing(model)
    places = [
        Where(model, rung.tier.name, rung.evidence.epoch)
        for rung in standing.rungs
        if rung.evidence is not None
    ]
    return Known(
        standing=standing,
        ledger=read_account(desk.db, desk.captures, model, now=visit.now),
        last_job=next(iter(list_jobs(desk.db, model, limit=1)), None),
        to_label=left_to_judge(
            desk.db, places, labeller=visit.caller.name, actor=visit.caller.name, now=visit.now
        )
        if desk.config.adjudication is not None
        else 0,
    )
