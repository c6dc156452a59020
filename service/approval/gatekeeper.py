"""The ASGI door in front of every route: Host, Origin, token, body size and time, headers of every answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from urllib.parse import quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.approval.access import (
    FORM,
    OWN_PROOF,
    READING,
    Caller,
    Head,
    asks_loopback,
    check_host,
    check_origin,
    credentials,
    is_local,
    needed_scope,
    require,
    unauthorized,
)
from service.approval.config import ApiConfig
from service.approval.errors import Problem, own_error, problem_response, store_down
from service.approval.failures import Failures
from service.approval.front import NO_FRONT, FindCaller, Front
from service.approval.narrowing import check_path, narrowed
from service.store.sql.database import StoreUnusable

log = logging.getLogger(__name__)

EVERY_ANSWER = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
}
"""Set where a route has not set its own."""

ASK_A_BROWSER = 'Basic realm="Tiergate: any name, a token as password", Bearer realm="tiergate"'

METRIC_SETS = "/gates/kayenta/judge"
LARGEST_METRIC_SETS = 8 * 1024 * 1024
"""Bytes: some 100 metrics of 24 hours in steps of a minute."""
LARGEST_HOOK = 1024 * 1024
"""Bytes of a body that a tool sends and whose sender is known only after it was read."""

Count = Callable[[Scope, int], None]
"""Told the scope and the status of every answer."""


class Gatekeeper:
    """Lets a request through with its `Caller` in `scope["state"]["caller"]`, or refuses it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        config: ApiConfig,
        find_caller: FindCaller,
        open_paths: Collection[str],
        count: Count,
        failures: Failures,
        front: Front = NO_FRONT,
        is_nowhere: Callable[[Scope], bool] = lambda scope: False,
    ) -> None:
        """`open_paths`, and the front's, are read by anybody, under any name: they tell nothing of models.

        `is_nowhere` says of an address that nothing is there and that it is none of a program: a browser is
        told so in a page, to which its session is good as to any other.
        """
        self.app = app
        self._config = config
        self._find_caller = find_caller
        self._open_paths = frozenset((*open_paths, *front.open_paths))
        self._count = count
        self._failures = failures
        self._front = front
        self._is_lost = is_nowhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        started = False

        async def send_safely(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(raw=message["headers"])
                for name, text in EVERY_ANSWER.items():
                    headers.setdefault(name, text)
                self._count(scope, message["status"])
            await send(message)

        head = head_of(scope)
        try:
            caller = await self._admit(head, scope)
            body = b"" if head.is_read else await self._body(head, receive, scope["path"])
        except Problem as problem:
            await self._refusal(problem, head, scope)(scope, receive, send_safely)
            return
        except StoreUnusable as error:
            await self._refusal(store_down(error), head, scope)(scope, receive, send_safely)
            return
        scope.setdefault("state", {})["caller"] = caller
        try:
            with narrowed(caller.models):
                await self.app(scope, receive if head.is_read else _replay(body, receive), send_safely)
        except Exception:
            if started:
                raise
            log.exception("%s %s", head.method, scope["path"])
            await self._refusal(own_error(), head, scope)(scope, receive, send_safely)

    def _refusal(self, problem: Problem, head: Head, scope: Scope) -> Response:
        """At a page a browser without a session is sent to log in, and shown a page of whatever else is
        wrong; programs, and pages that ask for themselves, are told as everywhere.
        """
        page = self._is_page(head, scope)
        if page and problem.status == 401:
            # No Basic challenge: a poll of a page whose session ended must not make a browser ask.
            problem.headers.pop("WWW-Authenticate", None)
        if page and (head.is_page or head.is_form):
            if problem.status != 401:
                return self._front.refused(Request(scope), problem)
            there = quote(self._onward(head, scope), safe="")
            return RedirectResponse(f"{self._front.login}?next={there}", status_code=303)
        if problem.status == 401 and head.is_page:
            problem.headers["WWW-Authenticate"] = ASK_A_BROWSER
        return problem_response(problem)

    def _onward(self, head: Head, scope: Scope) -> str:
        """Where a log-in leads on to: what was asked for; of a form the page that it was sent from."""
        if head.is_read:
            return _with_query(scope["path"], scope["query_string"].decode("latin-1"))
        for whole in head.all("referer"):
            try:
                page = urlsplit(whole)
            except ValueError:
                continue
            if page.netloc.lower() in head.all("host") and self._front.is_shown(page.path):
                # The notice of what was done a while ago is not told again.
                query = [each for each in page.query.split("&") if not each.startswith("note=")]
                return _with_query(page.path, "&".join(query))
        return "/"

    def _is_page(self, head: Head, scope: Scope) -> bool:
        return self._front.is_page(scope["path"]) or (head.is_page and self._is_lost(scope))

    async def _admit(self, head: Head, scope: Scope) -> Caller:
        path, anybody = scope["path"], Caller(name="anybody", scope=None)
        if head.is_read and path in self._open_paths:
            return anybody
        secret, page = credentials(head, path), self._is_page(head, scope)
        if secret is None or not head.is_read:
            # A read with a token is not what rebinding steals; everything else must use a name of ours.
            check_host(head, self._config.allowed_hosts)
        if not head.is_read:
            check_origin(head, self._config.allowed_origins, self._config.public_url)
        if secret is not None:
            caller = await self._owner(head.peer or "", secret)
            if not page:  # each page finds the models that it is about
                check_path(caller.models, path)
        elif page and (known := await run_in_threadpool(self._front.session_of, head)) is not None:
            caller = known
        elif head.is_read and self._config.loopback_reads and is_local(head) and asks_loopback(head):
            return Caller(name="loopback", scope=needed_scope(head))
        elif (path.startswith(OWN_PROOF) or path == self._front.login) and not head.is_read:
            return anybody  # the route finds out who it is, from the body
        else:
            caller = anybody
        # What a form changes, and the scope that it takes, its page knows.
        needed = READING if page else needed_scope(head, path)
        require(caller, needed, "reading" if head.is_read else "changing anything")
        return caller

    async def _owner(self, peer: str, secret: str) -> Caller:
        """Whose secret it is; 401 for a wrong one, 429 after many of them from one address."""
        caller = await run_in_threadpool(self._failures.looked_up, peer, secret, self._find_caller)
        if caller is None:
            raise unauthorized("the token is unknown, revoked or expired")
        return caller

    def _most_bytes(self, path: str) -> int:
        """What a tool sends may describe a whole repository, or hours of metrics."""
        more = LARGEST_HOOK if path.startswith(OWN_PROOF) else 0
        return max(self._config.max_body, LARGEST_METRIC_SETS if path == METRIC_SETS else more)

    async def _body(self, head: Head, receive: Receive, path: str) -> bytes:
        """The whole body, within its bounds; the routes see it as if it had come at once."""
        limit, page = self._most_bytes(path), self._front.is_page(path)
        too_large = Problem(413, "body_too_large", f"a request body may have {limit} bytes at most")
        declared = head.all("content-length")
        if any(not length.isdecimal() or int(length[:20]) > limit for length in declared):
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._config.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(
                            400, "body_cut_off", "the connection closed before the body was complete"
                        )
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise too_large
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise Problem(
                408, "body_too_slow", f"the body did not arrive within {self._config.body_seconds:g} s"
            ) from None
        kind = ";".join(head.all("content-type")).partition(";")[0].strip().lower()
        if page and kind != FORM:
            raise Problem(415, "not_a_form", "pages take forms", hint=f"send it with `Content-Type: {FORM}`")
        if body and not page and kind != "application/json":
            raise Problem(
                415,
                "not_json",
                "a request body must be JSON",
                hint="send it with `Content-Type: application/json`",
            )
        return bytes(body)


def head_of(scope: Scope) -> Head:
    """The head of a request, as the door reads it."""
    client = scope.get("client")
    return Head(
        method=scope["method"],
        peer=client[0] if client else None,
        headers=[(name.decode("latin-1").lower(), text.decode("latin-1")) for name, text in scope["headers"]],
    )


def _with_query(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return pending.pop() if pending else await receive()

    return receive_again
