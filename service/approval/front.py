"""What a room of pages for people gives the API to serve behind the same door, and what it is given for it.

The API knows no page. Its door asks the front whose session a cookie is, where people log in, and which paths
are pages: below these forms are taken, and nowhere else; sessions are good there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.access import Caller, Head
from service.approval.desk import Desk
from service.approval.errors import Problem, problem_response
from service.approval.failures import Failures

FindCaller = Callable[[str], Caller | None]
"""The owner of a secret, None when nobody has it; Problem when it knows why not. May block."""


def _no_page(path: str) -> bool:
    return False


def _no_session(head: Head) -> Caller | None:
    return None


def _for_programs(request: Request, problem: Problem) -> Response:
    return problem_response(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """How the door tells who somebody is, for pages where people log in."""

    find_caller: FindCaller
    failures: Failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Pages, and who their visitors are."""

    routes: Sequence[BaseRoute] = ()
    open_paths: Collection[str] = ()
    """Read by anybody: they tell nothing of the models."""
    is_page: Callable[[str], bool] = _no_page
    """Whether a path is one of its pages."""
    is_shown: Callable[[str], bool] = _no_page
    """Whether one of its pages can be looked at under a path; at others forms are taken alone."""
    session_of: Callable[[Head], Caller | None] = _no_session
    """Whose session a request shows by cookie, None when none is in force. May block."""
    refused: Callable[[Request, Problem], Response] = _for_programs
    """What a browser is shown where the door does not let it come to a page. Must not block, and must ask
    neither store: that one is down may be what is wrong."""
    nowhere: Callable[[Request, Problem], Response] = _for_programs
    """What a browser is shown where nothing is, or nothing to look at; the door has let it in."""
    login: str = "/login"
    """Where whoever has no session is sent; a form may be sent there by anybody."""


NO_FRONT = Front()
FrontOf = Callable[[Desk, Door], Front]
"""Makes the front of an app."""
