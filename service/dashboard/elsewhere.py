"""`/login/oidc`: somebody logs in at an issuer of `api.oidc`, and comes back with a session.

The errand lies in a cookie that goes along when the issuer sends the browser back (SameSite=Lax). That of a
session is Strict, and browsers do not send such a one on a redirect from elsewhere: who comes back is
answered with a page that leads on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from service.approval.code_logins import ERRAND_SECONDS, CodeLogins, Errand
from service.approval.errors import Problem
from service.dashboard.entrance import entry, own_path
from service.dashboard.render import HEADERS
from service.dashboard.sessions import LONGEST_SECONDS, Claimed
from service.dashboard.site import LOGIN_BACK, LOGIN_ELSEWHERE, Site
from service.dashboard.visit import Visit

PURPOSE = "errand"
COOKIE = "tiergate_errand"
SECURE_COOKIE = f"__Host-{COOKIE}"


def elsewhere_routes(site: Site) -> Sequence[BaseRoute]:
    """Where somebody leaves for an issuer, and where an issuer sends them back."""
    logins = CodeLogins(site.desk.config.issuers, site.desk.now)

    def leave(visit: Visit) -> Response:
        onward = own_path(visit.asked("next", "/"))
        try:
            errand, there = logins.begin(visit.needed("issuer"), _back(site))
        except Problem as problem:
            return entry(site, visit, onward, problem)
        answered = RedirectResponse(there, status_code=303, headers=HEADERS)
        answered.set_cookie(
            _name(site),
            site.sessions.signed({**asdict(errand), "next": onward}, PURPOSE),
            max_age=int(ERRAND_SECONDS),
            path="/",
            secure=site.secure,
            httponly=True,
            samesite="lax",
        )
        return answered

    def arrive(visit: Visit) -> Response:
        onward = "/"
        try:
            errand, onward = _errand(site, visit)
            answered = _arrived(site, visit, logins, errand, onward)
        except Problem as problem:
            answered = entry(site, visit, onward, problem)
        # An errand is run once, however it ends.
        answered.delete_cookie(_name(site), path="/", secure=site.secure, httponly=True, samesite="lax")
        return answered

    return [site.get(LOGIN_ELSEWHERE, leave), site.get(LOGIN_BACK, arrive)]


def _arrived(site: Site, visit: Visit, logins: CodeLogins, errand: Errand, onward: str) -> Response:
    brought = dict(visit.request.query_params)
    client = visit.request.client
    # A code that is none costs a request to the issuer: who brings many is held up as with wrong tokens.
    caller = site.door.failures.looked_up(
        client.host if client else "",
        f"{errand.state} {brought.get('code', '')}",
        lambda _: logins.finish(errand, brought, _back(site)),
    )
    assert caller is not None, "a log-in has somebody, or is refused"
    assert caller.scope is not None, "every rule gives a scope"
    claimed = Claimed(
        name=caller.name,
        scope=caller.scope,
        models=caller.models,
        until=visit.now + LONGEST_SECONDS,
        basis=logins.basis(errand.issuer),
    )
    answered = site.page(visit, "arrived.html", name=caller.name, scope=caller.scope, onward=onward)
    return site.with_session(answered, site.sessions.begin(claimed=claimed))


def _errand(site: Site, visit: Visit) -> tuple[Errand, str]:
    """What this browser left with, and where it leads on; 400 for a browser that did not leave from here."""
    told = site.sessions.opened(visit.request.cookies.get(_name(site), ""), PURPOSE)
    if told is None:
        raise Problem(
            400,
            "login_not_begun",
            "this browser has not begun to log in elsewhere, or it keeps no cookies",
            hint="log in again, and allow cookies of this site",
        )
    onward = own_path(str(told.pop("next")))
    return Errand(**told), onward


def _back(site: Site) -> str:
    """Where issuers send browsers to, as it is registered there."""
    if site.public_url is None:
        raise Problem(
            404, "not_configured", "nobody logs in elsewhere: api.public_url is not said", hint="use a token"
        )
    return f"{site.public_url}{LOGIN_BACK}"


def _name(site: Site) -> str:
    return SECURE_COOKIE if site.secure else COOKIE
