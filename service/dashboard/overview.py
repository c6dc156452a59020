"""`/`: every model's ladder as it stands, read anew for every visit."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.dashboard.site import Site
from service.dashboard.visit import Visit


def overview_routes(site: Site) -> Sequence[BaseRoute]:
    """The first page."""

    def overview(visit: Visit) -> Response:
        standings = [site.desk.standing(model) for model in visit.models]
        return site.page(visit, "overview.html", standings=standings)

    return [site.get("/", overview)]
