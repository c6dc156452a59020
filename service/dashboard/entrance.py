"""`/login` and `/logout`: a token is shown once, and a session takes its place."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from service.approval.access import MAX_ID_TOKEN, Caller, is_id_token
from service.approval.errors import Problem, store_down
from service.dashboard.sessions import Claimed, Session
from service.dashboard.site import LOGIN, LOGIN_ELSEWHERE, LOGOUT, Site
from service.dashboard.visit import Form, Visit, address
from service.store.access.tokens import id_of, named_by
from service.store.sql.database import StoreUnusable


def entrance_routes(site: Site) -> Sequence[BaseRoute]:
    """Where people log in and out."""

    def ask(visit: Visit) -> Response:
        onward = own_path(visit.asked("next", "/"))
        if visit.asked("next") and visit.led_by not in ("", "none", "same-origin"):
            # The session's cookie is Strict: browsers keep it back where a page elsewhere, such as a message
            # with a link, led here. From a page of ours it goes along, if there is one; else the form comes.
            return site.page(visit, "coming.html", onward=onward)
        return entry(site, visit, onward)

    async def enter(request: Request) -> Response:
        return await run_in_threadpool(_entered, site, request, await request.body())

    def leave(visit: Visit, form: Form) -> Response:
        assert visit.session is not None, "a form has a session"
        site.sessions.end(visit.session)
        return site.with_session(site.see(LOGIN, note="logged_out"), None)

    return [site.get(LOGIN, ask), Route(LOGIN, enter, methods=["POST"]), site.post(LOGOUT, leave)]


def own_path(text: str) -> str:
    """A path of ours that a log-in leads on to; `/` for anything that might lead elsewhere."""
    plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if plain and text.startswith("/") and not text.startswith("//") else "/"


def entry(site: Site, visit: Visit, onward: str, problem: Problem | None = None) -> Response:
    """The form, with what was wrong the last time."""
    status = 200 if problem is None else problem.status
    elsewhere = [
        (terms.login.label, address(LOGIN_ELSEWHERE, issuer=terms.issuer, next=onward))
        for terms in site.desk.config.issuers
        if terms.login is not None
    ]
    answered = site.page(
        visit, "login.html", status=status, onward=onward, problem=problem, elsewhere=elsewhere
    )
    if problem is not None and "Retry-After" in problem.headers:
        answered.headers["Retry-After"] = problem.headers["Retry-After"]
    return answered


def _entered(site: Site, request: Request, body: bytes) -> Response:
    visit, onward = site.visit(request), "/"
    try:
        form = Form.of(body, most=MAX_ID_TOKEN)
        onward = own_path(form.text("next", "/"))
        session = _session(site, visit, form.text("token"))
        if visit.session is not None:
            site.sessions.end(visit.session)  # its cookie is replaced: a copy of it must not outlive that
    except Problem as problem:
        return entry(site, visit, onward, problem)
    except StoreUnusable as error:
        return entry(site, visit, onward, store_down(error))
    return site.with_session(site.see(onward), session)


def _session(site: Site, visit: Visit, secret: str) -> Session:
    """A session for whoever shows the secret; the failures of an address are counted as at the door."""
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise Problem(422, "invalid_request", "that cannot be a token", hint="paste it as it was printed")
    client = visit.request.client
    caller = site.door.failures.looked_up(client.host if client else "", secret, site.door.find_caller)
    if caller is None or caller.scope is None:
        raise Problem(
            401,
            "unauthorized",
            "the token is unknown, revoked or expired",
            hint="`tiergate token new NAME --scope read` makes one",
        )
    if is_id_token(secret):
        return site.sessions.begin(claimed=_claimed(site, caller, secret))
    if named_by(site.desk.db, id_of(secret), site.desk.now()) is None:
        raise Problem(
            401,
            "unauthorized",
            "the token was rotated: programs may show the former secret for a while, people may not",
            hint="log in with the new one",
        )
    return site.sessions.begin(token_id=id_of(secret))


def _claimed(site: Site, caller: Caller, token: str) -> Claimed:
    """Of a token whose signature and times were checked a moment ago."""
    assert caller.scope is not None, "nobody logs in without a scope"
    part = token.split(".")[1]
    claims = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return Claimed(
        name=caller.name,
        scope=caller.scope,
        models=caller.models,
        until=float(claims["exp"]),
        basis=next((each.basis for each in site.desk.config.issuers if each.issuer == claims["iss"]), ""),
    )
