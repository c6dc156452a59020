"""Addresses at which nothing is: a browser is told so in a page of the front, a program as everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from service.approval.access import GATES
from service.approval.errors import Problem, problem_response
from service.approval.front import Front
from service.approval.gatekeeper import head_of

PROGRAMS = ("/api/", GATES)
"""Below these nobody but programs looks for anything."""


def is_nowhere(routes: Sequence[BaseRoute]) -> Callable[[Scope], bool]:
    """Whether none of the routes, of which more may come, is at an address that a person may type."""

    def asked(scope: Scope) -> bool:
        if scope["path"].startswith(PROGRAMS):
            return False
        return all(route.matches(scope)[0] is Match.NONE for route in routes)

    return asked


def told_by(front: Front) -> Callable[[Request, Problem], Response]:
    """The answer where nothing is, or nothing that can be looked at."""

    def answered(request: Request, problem: Problem) -> Response:
        for_people = head_of(request.scope).is_page and not request.scope["path"].startswith(PROGRAMS)
        return front.nowhere(request, problem) if for_people else problem_response(problem)

    return answered
