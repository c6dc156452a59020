"""`/ledger`: where every request went, what was lost, and which strata of the traffic the evidence covers."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.dashboard.chosen import chosen
from service.dashboard.coverage import coverage_chart, coverage_of
from service.dashboard.losses import losses_of, pair_lines
from service.dashboard.sentences import sentences
from service.dashboard.site import Site
from service.dashboard.visit import Visit
from service.report.gathering.composing import ledger_of
from service.report.sections.account import ledger_chart
from service.report.words import words
from service.store.verdicts.standing import read_account


def ledger_routes(site: Site) -> Sequence[BaseRoute]:
    """One page; of all models, or of one."""

    def ledger(visit: Visit) -> Response:
        desk, say, report = site.desk, sentences(visit.language), words(visit.language)
        model = chosen(site, visit)
        account = read_account(desk.db, desk.captures, model, now=visit.now)
        # Coverage is of one ladder; where there is only one, nobody has to choose it.
        covered = model or (visit.models[0] if len(visit.models) == 1 else None)
        tiers = () if covered is None else coverage_of(desk.standing(covered))
        charts = [ledger_chart(ledger_of(account), report)]
        if tiers:
            charts.append(coverage_chart(tiers, say))
        return site.page(
            visit,
            "ledger.html",
            charts=charts,
            model=model,
            model_path="/ledger",
            account=account,
            losses=losses_of(account),
            covered=covered,
            tiers=tiers,
            pairs=list(pair_lines(account, say, report)),
            whole=visit.caller.models is None,
        )

    return [site.get("/ledger", ledger)]
