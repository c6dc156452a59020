"""`Idempotency-Key`: a write that is repeated with its key is not done again, and answered as the first time.

After draft-ietf-httpapi-idempotency-key-header: another request under the same key is refused with 422, a
twin while the first is being answered with 409. Refusals are not kept, since they changed nothing; success
is, and so is an error of the API's own, after which nobody can say what was changed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.approval.access import SAFE_METHODS
from service.approval.errors import MEDIA_TYPE, Problem, own_error, problem_response, store_down
from service.store.access.idempotency import Claim, Standing, claim, release, settle
from service.store.sql.database import Database, StoreUnusable

log = logging.getLogger(__name__)

HEADER = "idempotency-key"
_KEY = re.compile(r"[!-~]{1,255}")

REFUSED = {
    Standing.OTHER: (
        422,
        "idempotency_key_reused",
        "the key was used for another method, path, query or body",
        "a new request needs a new key, such as a UUID",
    ),
    Standing.RUNNING: (
        409,
        "idempotent_request_running",
        "the first request with this key is being answered",
        "ask again in a second",
    ),
    Standing.UNKNOWN: (
        409,
        "idempotent_outcome_unknown",
        "the first request with this key has no answer that could be given again",
        "the decision log says what was changed; then take a new key",
    ),
}


class Once:
    """Stands behind the gatekeeper, which knows the caller; answers below `paths` are kept for a day."""

    def __init__(self, app: ASGIApp, *, db: Database, now: Callable[[], float], paths: str) -> None:
        self.app = app
        self._db = db
        self._now = now
        self._paths = f"{paths}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] in SAFE_METHODS
            or not scope["path"].startswith(self._paths)
        ):
            await self.app(scope, receive, send)
            return
        keys = Headers(scope=scope).getlist(HEADER)
        if not keys:
            await self.app(scope, receive, send)
            return
        try:
            claimed, body = await self._claim(scope, keys, receive)
        except Problem as problem:
            await problem_response(problem)(scope, receive, send)
            return
        except StoreUnusable as error:
            await problem_response(store_down(error))(scope, receive, send)
            return
        if claimed.standing is Standing.ANSWERED:
            again = Response(
                claimed.answer, claimed.status, {"Idempotency-Replayed": "true"}, claimed.media_type
            )
            await again(scope, receive, send)
            return
        await self._do(claimed, scope, _once(body, receive), send)

    async def _claim(self, scope: Scope, keys: list[str], receive: Receive) -> tuple[Claim, bytes]:
        if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
            raise Problem(
                400,
                "bad_idempotency_key",
                "an Idempotency-Key is one header of 1 to 255 visible ASCII characters",
                hint="a UUID will do",
            )
        body = await _whole(receive)
        claimed = await run_in_threadpool(
            claim,
            self._db,
            caller=scope["state"]["caller"].name,
            key=keys[0],
            fingerprint=_fingerprint(scope, body),
            now=self._now(),
        )
        if claimed.standing in REFUSED:
            status, code, message, hint = REFUSED[claimed.standing]
            headers = {"Retry-After": "1"} if claimed.standing is Standing.RUNNING else {}
            raise Problem(status, code, message, hint=hint, headers=headers)
        return claimed, body

    async def _do(self, claimed: Claim, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and keep the answer before it is sent: who repeats a request had none."""
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        try:
            await self.app(scope, receive, keep)
        except Exception:
            await self._settle(claimed, 500, bytes(problem_response(own_error()).body), MEDIA_TYPE)
            raise
        status = messages[0]["status"]
        body = b"".join(message.get("body", b"") for message in messages[1:])
        if status < 400 or status == 500:
            media_type = Headers(raw=messages[0]["headers"]).get("content-type", "")
            await self._settle(claimed, status, body, media_type)
        else:
            await self._try(release, claimed.write_id)
        for message in messages:
            await send(message)

    async def _settle(self, claimed: Claim, status: int, body: bytes, media_type: str) -> None:
        await self._try(
            partial(settle, status=status, media_type=media_type, answer=body.decode()),
            claimed.write_id,
        )

    async def _try(self, change: Callable[[Database, str], None], write_id: str) -> None:
        """A store that fails now leaves a claim without an answer: who repeats it is told of no outcome."""
        try:
            await run_in_threadpool(change, self._db, write_id)
        except StoreUnusable as error:
            log.error("the answer of a request with an Idempotency-Key is not kept: %s", error)


def _fingerprint(scope: Scope, body: bytes) -> str:
    """Which request it is: any byte of method, path, query or body makes another one."""
    spelled = [scope["method"].encode(), scope["path"].encode(), scope["query_string"], body]
    return sha256(b"".join(len(each).to_bytes(8, "big") + each for each in spelled)).hexdigest()


async def _whole(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _once(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return pending.pop() if pending else await receive()

    return receive_again
