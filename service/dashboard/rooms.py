"""All pages of the dashboard, a line each; `tiergate api` serves them."""

from __future__ import annotations

from service.approval.desk import Desk
from service.approval.front import Door, Front, FrontOf
from service.dashboard.acting.page import acting_routes
from service.dashboard.adjudicate import adjudicate_routes
from service.dashboard.capacity import capacity_routes
from service.dashboard.elsewhere import elsewhere_routes
from service.dashboard.entrance import entrance_routes
from service.dashboard.job import job_routes
from service.dashboard.job_acts import job_act_routes
from service.dashboard.jobs import jobs_routes
from service.dashboard.ledger import ledger_routes
from service.dashboard.log import log_routes
from service.dashboard.overview import overview_routes
from service.dashboard.pair import pair_routes
from service.dashboard.pairs import pairs_routes
from service.dashboard.report import report_routes
from service.dashboard.site import Rooms, dashboard
from service.dashboard.tier.page import tier_routes

ROOMS: Rooms = (
    entrance_routes,
    elsewhere_routes,
    overview_routes,
    tier_routes,
    acting_routes,
    pairs_routes,
    pair_routes,
    adjudicate_routes,
    ledger_routes,
    capacity_routes,
    jobs_routes,
    job_routes,
    job_act_routes,
    report_routes,
    log_routes,
)


def front_of(*, secret: bytes = b"", public_url: str | None = None) -> FrontOf:
    """Makes the front: `secret` signs sessions besides the database's key, `public_url` is where it is."""

    def made(desk: Desk, door: Door) -> Front:
        return dashboard(desk, door, rooms=ROOMS, secret=secret, public_url=public_url)

    return made
