"""Every page, and what they share: the desk, the sessions, the words, and how a page is answered."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from service.approval.access import Caller, Scope, require
from service.approval.desk import Desk
from service.approval.errors import Problem, own_error, store_down
from service.approval.front import Door, Front
from service.approval.problem_codes import title_of
from service.charts.chart import Chart
from service.dashboard import formats, render, stated
from service.dashboard.sentences import preferred, sentences
from service.dashboard.sessions import Session, Sessions
from service.dashboard.static import ASSETS, asset_routes, asset_url
from service.dashboard.visit import Form, Visit, address
from service.report import reasons
from service.report.words import Language
from service.store.sql.database import StoreUnusable

log = logging.getLogger(__name__)

LANGUAGE = "tiergate_language"
"""A cookie: which language somebody chose."""
LOGIN, LOGOUT = "/login", "/logout"
LOGIN_ELSEWHERE, LOGIN_BACK = "/login/oidc", "/login/oidc/back"
NAVIGATION = {
    "overview": ("/", "/tier"),
    "pairs": ("/pairs", "/pair"),
    "adjudicate": ("/adjudicate",),
    "ledger": ("/ledger",),
    "capacity": ("/capacity",),
    "jobs": ("/jobs", "/job", "/report"),
    "log": ("/log",),
}
"""By the name of its sentence: the page's path first, then those of pages that belong to it."""

NOBODY = Caller(name="anybody", scope=None)

Show = Callable[[Visit], Response]
Act = Callable[[Visit, Form], Response]
Rooms = Sequence[Callable[["Site"], Sequence[BaseRoute]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Handed to the module of each page."""

    desk: Desk
    door: Door
    sessions: Sessions
    public_url: str | None = None
    """Where browsers find it: scheme, host and port; None where nobody said."""

    @property
    def secure(self) -> bool:
        """Whether browsers come by https, so that cookies are for https alone."""
        return self.sessions.secure

    def get(self, path: str, show: Show) -> Route:
        """A page; `show` may block, and may raise a Problem, which is shown."""

        def answered(request: Request) -> Response:
            return self._shown(request, show)

        return Route(path, answered, methods=["GET"])

    def post(self, path: str, act: Act) -> Route:
        """What a form of a page is sent to; `act` is called with the form of the visitor's own session."""

        async def answered(request: Request) -> Response:
            body = await request.body()

            def acted(visit: Visit) -> Response:
                return act(visit, self.posted(visit, body))

            return await run_in_threadpool(self._shown, request, acted)

        return Route(path, answered, methods=["POST"])

    def visit(self, request: Request) -> Visit:
        """Who asks, for what, in which language."""
        caller = request.scope["state"]["caller"]
        assert isinstance(caller, Caller)
        cookies = ";".join(request.headers.getlist("cookie"))
        session = self.sessions.shown(cookies) if caller.by_session else None
        ladders = self.desk.config.ladders
        return Visit(
            request=request,
            caller=caller,
            session=session,
            language=_language(request),
            csrf="" if session is None else self.sessions.csrf(session),
            now=self.desk.now(),
            models=tuple(model for model in ladders if _may_know(caller, model)),
        )

    def posted(self, visit: Visit, body: bytes) -> Form:
        """The form of the visitor's own session; 401 without a session, 403 for a form of another one."""
        form = Form.of(body)
        if visit.session is None:
            raise Problem(401, "unauthorized", "a form needs a session", hint="log in, then send it again")
        if not _same(form.text("csrf"), visit.csrf):
            raise Problem(
                403,
                "form_too_old",
                "the form was made for another session, or before you logged in",
                hint="open the page again and repeat what you did; nothing was changed",
            )
        return form

    def require(self, visit: Visit, scope: Scope, purpose: str) -> None:
        """403 unless the visitor may do what takes this scope; 401 without a session."""
        require(visit.caller, scope, purpose)
        if not visit.may(scope):
            raise Problem(401, "unauthorized", f"{purpose} needs a session", hint="log in first")

    def page(
        self,
        visit: Visit,
        template: str,
        *,
        status: int = 200,
        charts: Sequence[Chart] = (),
        model_path: str | None = None,
        model: str | None = None,
        **values: Any,
    ) -> Response:
        """The page in the visitor's language; with `?download=NAME` the numbers of one of its charts.

        `model` is the one that it is about, and `model_path` the path under which other models have theirs.
        """
        if status == 200 and (wanted := visit.asked("download")):
            return render.download(charts, wanted)
        say = sentences(visit.language)
        known = visit.request.headers.get("if-none-match") if visit.live else None
        context = {
            "say": say,
            "visit": visit,
            "language": visit.language,
            "languages": tuple(Language),
            "address": address,
            "asset": asset_url,
            "span": lambda seconds: formats.span(say, seconds),
            "action": partial(stated.action, say),
            "in_words": partial(stated.in_words, visit.language),
            "said": partial(reasons.in_words, visit.language),
            "held_because": partial(stated.held_because, visit.language),
            "because": partial(stated.because, visit.language),
            "navigation": {name: paths[0] for name, paths in NAVIGATION.items()},
            "part": part_of(visit.path),
            "charts": {each.name: each for each in charts},
            "scopes": {scope.value: scope for scope in Scope},
            "note": visit.note,
            "model": model,
            "model_path": model_path,
            **values,
        }
        return render.answer(template, context, status=status, known=known)

    def see(self, path: str, *, note: str | None = None, **query: object) -> Response:
        """On to another page after a form, with a notice: the sentence `notice.NOTE`."""
        return RedirectResponse(address(path, **query, note=note), status_code=303, headers=render.HEADERS)

    def refused(self, visit: Visit, problem: Problem) -> Response:
        """What is wrong and what to do, as a page."""
        answered = self.page(
            visit,
            "problem.html",
            status=problem.status,
            problem=problem,
            title=title_of(problem.code),
        )
        answered.headers.update(
            {name: text for name, text in problem.headers.items() if name.lower() != "www-authenticate"}
        )
        return answered

    def turned_away(self, request: Request, problem: Problem) -> Response:
        """The same for whom the door does not let in; who it is may not be known, and no store is asked."""
        visit = Visit(
            request=request,
            caller=NOBODY,
            session=None,
            language=_language(request),
            csrf="",
            now=self.desk.now(),
            models=(),
        )
        return self.refused(visit, problem)

    def nowhere(self, request: Request, problem: Problem) -> Response:
        """What somebody is shown who came to no page of ours."""
        hint = "follow a link of the overview"
        told = Problem(problem.status, problem.code, problem.message, hint=hint, headers=problem.headers)
        return self.refused(self.visit(request), told)

    def with_session(self, answered: Response, session: Session | None) -> Response:
        """The answer with the session's cookie; None takes it away."""
        name = self.sessions.name
        if session is None:
            answered.delete_cookie(name, path="/", secure=self.secure, httponly=True, samesite="strict")
        else:
            answered.set_cookie(
                name,
                self.sessions.cookie(session),
                max_age=max(0, int(session.ends - self.desk.now())),
                path="/",
                secure=self.secure,
                httponly=True,
                samesite="strict",
            )
        return answered

    def _shown(self, request: Request, show: Show) -> Response:
        visit = self.visit(request)
        try:
            answered = show(visit)
        except Problem as problem:
            answered = self.refused(visit, problem)
        except StoreUnusable as error:
            answered = self.refused(visit, store_down(error))
        except Exception:
            log.exception("%s %s", request.method, visit.path)
            answered = self.refused(visit, own_error())
        if visit.session is not None and not visit.live and "set-cookie" not in answered.headers:
            renewed = self.sessions.renewed(visit.session)
            if renewed is not None:
                self.with_session(answered, renewed)
        if visit.asked("lang") == visit.language.value:
            answered.set_cookie(
                LANGUAGE,
                visit.language.value,
                max_age=365 * 86400,
                secure=self.secure,
                httponly=True,
                samesite="lax",
            )
        return answered


def dashboard(
    desk: Desk, door: Door, *, rooms: Rooms, secret: bytes = b"", public_url: str | None = None
) -> Front:
    """The front of the API: every room's pages, the assets, and whose session a cookie is."""
    bases = [terms.basis for terms in desk.config.issuers]
    secure = public_url is not None and public_url.startswith("https:")
    sessions = Sessions(desk.db, desk.now, secret=secret, bases=bases, secure=secure)
    site = Site(desk=desk, door=door, sessions=sessions, public_url=public_url)
    routes: list[BaseRoute] = [route for room in rooms for route in room(site)]
    pages = [route for route in routes if isinstance(route, Route)]
    paths = frozenset(route.path for route in pages)
    readable = frozenset(route.path for route in pages if "GET" in (route.methods or ()))

    def is_page(path: str) -> bool:
        return path in paths

    return Front(
        routes=[*routes, *asset_routes()],
        open_paths=(LOGIN, LOGIN_ELSEWHERE, LOGIN_BACK, *(f"/assets/{name}" for name in ASSETS)),
        is_page=is_page,
        is_shown=readable.__contains__,
        session_of=sessions.caller,
        refused=site.turned_away,
        nowhere=site.nowhere,
        login=LOGIN,
    )


def part_of(path: str) -> str:
    """Which entry of the navigation a page belongs to; empty for none."""
    for name, paths in NAVIGATION.items():
        if any(path == each or (each != "/" and path.startswith(f"{each}/")) for each in paths):
            return name
    return ""


def _language(request: Request) -> Language:
    """As asked for, else as chosen before, else as the browser prefers."""
    for text in (request.query_params.get("lang"), request.cookies.get(LANGUAGE)):
        if text in set(Language):
            return Language(text)
    return preferred(request.headers.get("accept-language", ""))


def _same(shown: str, known: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(shown.encode(), known.encode())


def _may_know(caller: Caller, model: str) -> bool:
    return caller.scope is not None and (caller.models is None or model in caller.models)
