"""The app: stores and configuration in, an ASGI app out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib.metadata import version

from fastapi import APIRouter, Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.routing import BaseRoute

from service.approval import documents, probes
from service.approval.access import Caller, is_id_token, widest
from service.approval.adjudication import adjudication_routes
from service.approval.approvals import approval_routes
from service.approval.asker import Asker
from service.approval.config import ApiConfig
from service.approval.desk import Desk
from service.approval.details import detail_routes
from service.approval.dialects.argo import argo_routes
from service.approval.dialects.flagger import flagger_routes
from service.approval.dialects.github import github_routes
from service.approval.dialects.gitlab import gitlab_routes
from service.approval.dialects.kayenta import kayenta_routes
from service.approval.dialects.plain import plain_routes
from service.approval.dialects.remote_judge import remote_judge_routes
from service.approval.dialects.spinnaker import spinnaker_routes
from service.approval.dialects.standalone import standalone_routes
from service.approval.dialects.token_in_path import TokenInPath
from service.approval.epochs import epoch_routes
from service.approval.errors import install
from service.approval.failures import Failures
from service.approval.front import NO_FRONT, Door, FindCaller, FrontOf
from service.approval.gatekeeper import Gatekeeper
from service.approval.id_tokens import IdTokens
from service.approval.interventions import intervention_routes
from service.approval.jobs import job_routes
from service.approval.ladders import ladder_routes
from service.approval.logs import log_routes
from service.approval.metrics import Meters, metrics_routes
from service.approval.narrowing import narrow
from service.approval.nowhere import is_nowhere, told_by
from service.approval.once import Once
from service.approval.openapi import REFUSALS, describing
from service.approval.reports import report_routes
from service.approval.tier_capacity import capacity_routes
from service.approval.verdicts import verdict_routes
from service.store.access import tokens
from service.store.redis.captures import Captures
from service.store.sql.database import Database

API = "/api/v1"
"""What is below keeps its meaning as long as its name: `docs/api.md` has the rule."""
ABOUT = (
    "May this quantized tier replace the one that serves now? Send a token as `Authorization: Bearer TOKEN` "
    "(scope read, label, approve or admin); reading from this machine needs none. Refusals are "
    "application/problem+json with a stable `code`."
)


def create_app(
    config: ApiConfig,
    db: Database,
    captures: Captures,
    *,
    pages: Sequence[BaseRoute] = (),
    front: FrontOf | None = None,
    now: Callable[[], float] = time.time,
) -> FastAPI:
    """The API, with more `pages` and a `front` for people behind the same door. Closes neither store."""
    desk = Desk(config=config, db=db, captures=captures, now=now)
    meters, find_caller, failures = Meters(desk), _finder(desk), Failures(now)
    door = Door(find_caller=find_caller, failures=failures)
    shown = NO_FRONT if front is None else front(desk, door)
    app = FastAPI(
        title="Tiergate",
        version=version("tiergate"),
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Once, db=db, now=now, paths=API)
    app.add_middleware(Asker)
    app.add_middleware(
        Gatekeeper,
        config=config,
        find_caller=find_caller,
        open_paths=(*probes.PATHS, *documents.PATHS),
        count=meters.count,
        failures=failures,
        front=shown,
        is_nowhere=is_nowhere(app.router.routes),
    )
    app.add_middleware(TokenInPath)
    install(app, told_by(shown))
    described = "`tiergate token new` makes one; or a JSON Web Token of an issuer in `api.oidc`."
    bearer = Depends(HTTPBearer(auto_error=False, description=described))
    api = APIRouter(prefix=API, responses=REFUSALS, dependencies=[bearer])
    changing = (approval_routes, intervention_routes, job_routes)
    reading = (ladder_routes, verdict_routes, detail_routes, epoch_routes, capacity_routes)
    for routes in (*reading, *changing, report_routes, log_routes, adjudication_routes):
        api.include_router(routes(desk))
    gates = APIRouter(prefix="/gates", tags=["gates"], responses=REFUSALS, dependencies=[bearer])
    kayenta = (kayenta_routes, standalone_routes, remote_judge_routes)
    for dialect in (argo_routes, *kayenta, spinnaker_routes, plain_routes, github_routes, gitlab_routes):
        gates.include_router(dialect(desk))
    gates.include_router(flagger_routes(desk, find_caller, failures))
    app.include_router(api)
    app.include_router(gates)
    app.include_router(probes.probe_routes(desk))
    app.include_router(metrics_routes(meters))
    describing(app, paths=API)
    app.router.routes.extend([*documents.documentation(app), *pages, *shown.routes])
    return app


def _finder(desk: Desk) -> FindCaller:
    id_tokens = IdTokens(desk.config.issuers, desk.now)

    def find(secret: str) -> Caller | None:
        if id_tokens and is_id_token(secret):
            caller = id_tokens.caller_of(secret)
        else:
            token = tokens.lookup(desk.db, secret, desk.now())
            if token is None:
                return None
            caller = Caller(name=token.name, scope=widest(token.scopes), models=token.models)
        narrow(caller.models)  # of the hooks, which show their token in the body; the door does it for others
        return caller

    return find
