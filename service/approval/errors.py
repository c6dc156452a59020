"""Every refusal of the API, in one shape: `application/problem+json` of RFC 9457.

Problem
    raised anywhere below the routers; carries its HTTP status. `problem_response` spells it, and the handlers
    here turn the framework's own errors into the same shape. Nothing a client sent is echoed at length.

Beside the members of the RFC (`type`, `title`, `status`, `detail`) stand `code`, the word for programs, and
`hint`, what to do; where a verdict stands in the way, its `reasons` and `decision`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from service.approval.problem_codes import title_of
from service.store.sql.database import StoreUnusable

log = logging.getLogger(__name__)

ECHO = 120
"""Characters of a client's own words that an error repeats at most."""

FORM = "constrained-"

MEDIA_TYPE = "application/problem+json"
TYPE = "/docs#problem-"
"""What a code is appended to: a place on the API's own page of documentation."""


class Problem(Exception):
    """A request that is refused, and what to do about it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        reasons: Sequence[str] | None = None,
        decision: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.headers = dict(headers or {})
        self.reasons = reasons
        """The verdict's, where a verdict stands in the way."""
        self.decision = decision


def echo(text: str) -> str:
    """The client's own words, quoted, bounded and printable."""
    shown = text if len(text) <= ECHO else text[:ECHO] + "…"
    return repr(shown)


def problem_response(problem: Problem) -> JSONResponse:
    """The body and headers of a refusal."""
    body: dict[str, Any] = {
        "type": f"{TYPE}{problem.code}",
        "title": title_of(problem.code),
        "status": problem.status,
        "detail": problem.message,
        "code": problem.code,
        "hint": problem.hint,
    }
    if problem.reasons is not None:
        body |= {"reasons": list(problem.reasons), "decision": problem.decision}
    return JSONResponse(body, status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def install(app: FastAPI, nowhere: Callable[[Request, Problem], Response]) -> None:
    """Give every error of the app the one shape; `nowhere` answers where nothing is or is to be had so."""

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return nowhere(request, _http_problem(request, error))

    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(StoreUnusable, _on_store)


async def _on_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return problem_response(error)


async def _on_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    spelled = _spell(error.errors()[:8])
    bad_json = any(wrong["type"] == "json_invalid" for wrong in error.errors())
    return problem_response(
        Problem(
            400 if bad_json else 422,
            "invalid_json" if bad_json else "invalid_request",
            "; ".join(spelled),
            hint=f"{request.url.path.split('/')[1]} fields and types are described at /docs"
            if not bad_json
            else "the body must be one JSON object in UTF-8",
        )
    )


def _spell(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each place; what any of several forms would have asked of it is joined by `or`."""
    by_place: dict[str, list[str]] = {}
    for wrong in errors:
        # pydantic adds the name of the form, such as `constrained-int`.
        parts = [str(part) for part in wrong["loc"] if part != "body" and not str(part).startswith(FORM)]
        by_place.setdefault(".".join(parts)[:ECHO] or "body", []).append(wrong["msg"])
    return [f"{place}: {', or '.join(asked)}" for place, asked in by_place.items()]


def _http_problem(request: Request, error: HTTPException) -> Problem:
    codes = {
        400: ("invalid_request", "the body must be one JSON object in UTF-8"),
        404: ("not_found", "every path is listed at /docs"),
        405: ("method_not_allowed", "every path and its methods are listed at /docs"),
    }
    code, hint = codes.get(error.status_code, ("refused", ""))
    message = {
        404: f"there is nothing at {echo(request.scope['path'])}",
        405: f"{request.method} is not possible at {echo(request.scope['path'])}",
    }.get(error.status_code, str(error.detail))
    return Problem(error.status_code, code, message, hint=hint, headers=error.headers)


async def _on_store(request: Request, error: Exception) -> JSONResponse:
    return problem_response(store_down(error))


def store_down(error: Exception) -> Problem:
    """503; the log has the details, which name hosts and files."""
    log.error("%s", error)
    return Problem(
        503,
        "store_down",
        "the database does not answer",
        hint="the API's log says what to do; nothing was changed",
        headers={"Retry-After": "5"},
    )


def own_error() -> Problem:
    """500; the log has the traceback."""
    return Problem(
        500,
        "internal_error",
        "the API met an error of its own",
        hint="its log has the traceback; the decision log says whether anything was changed",
    )
