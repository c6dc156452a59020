"""The model that a page over all models is narrowed to."""

from __future__ import annotations

from service.approval.errors import Problem
from service.approval.names import find_ladder
from service.dashboard.site import Site
from service.dashboard.visit import Visit


def chosen(site: Site, visit: Visit) -> str | None:
    """The one asked for; None for all of them, where the visitor may know of all.

    A token for some models alone sees its first one when it asks for none.
    """
    asked = visit.asked("model")
    if asked:
        find_ladder(site.desk.config.ladders, asked)
        return asked
    if visit.caller.models is None:
        return None
    if not visit.models:
        raise Problem(
            403,
            "model_not_allowed",
            "the token is for models that are not configured here",
            hint="`tiergate token new NAME --scope SCOPE --model MODEL` makes one for another model",
        )
    return visit.models[0]
