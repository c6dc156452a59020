"""The arms as servers on unix sockets, in front of the baseline's own backends.

A question is put to the backends at most twice, whichever arms ask it and however often; what a backend
failed to answer is asked again. Damage is drawn from the seed, the arm, the question and the answer's number,
so a drill repeats itself.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from service.drill.arms import SECOND, Arm
from service.drill.damage import damaged, rewrite
from service.drill.defects import Defect
from service.drill.prompts import asks_again
from service.fleet import Backend
from service.reach import client_of

REPLAY_MARK = "x-tiergate-replay"
"""As replays have it: whoever counts clients at a backend leaves these out."""
FAILURES_KEPT = 5
START_SECONDS = 30.0
_CHARACTERS_PER_TOKEN = 4
_MOST_TOKENS = 10_000_000
"""Of one prompt or answer, beyond any context window: what a backend claims above is not so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The backends whose answers are damaged, and what may be asked of them."""

    backends: tuple[Backend, ...]
    model: str
    """What they call it."""
    timeout_seconds: float
    concurrency: int
    """Requests at once at one backend, besides its own `max_concurrency`."""
    tokens: int | None
    """That a drill may spend; None = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    status: int
    content_type: str
    body: bytes


class Relay:
    """Serves all arms for as long as the `with` block lasts, from a thread of its own.

    Counts are written by that thread alone and may be read from any.
    """

    def __init__(
        self, arms: Sequence[Arm], upstream: Upstream, directory: Path, *, share: float, seed: int
    ) -> None:
        """`directory` holds a socket for each arm; `share` of the answers of a damaged arm are damaged."""
        self._upstream = upstream
        self._share = share
        self._seed = seed
        self.sockets = {arm.name: directory / f"{arm.name}.sock" for arm in arms}
        self._servers = [
            uvicorn.Server(
                uvicorn.Config(
                    self._app(arm),
                    uds=str(self.sockets[arm.name]),
                    log_config=None,
                    log_level="critical",
                    access_log=False,
                    lifespan="off",
                    loop="asyncio",
                    timeout_graceful_shutdown=1,
                )
            )
            for arm in arms
        ]
        self._answers: dict[tuple[str, int], _Answered] = {}
        self._asking: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._arrivals: Counter[tuple[str, str]] = Counter()
        self._outstanding: Counter[str] = Counter()
        self._places: Mapping[str, asyncio.Semaphore] = {}
        self._clients: Mapping[str, httpx.AsyncClient] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self.asked = 0
        """Requests put to the backends."""
        self.spent = 0
        """Tokens, as the backends count them, else by length."""
        self.planted: Counter[tuple[str, Defect]] = Counter()
        """Answers damaged, by arm and defect."""
        self.failures: list[str] = []
        """The first few questions that no backend answered, in words."""

    @property
    def is_spent(self) -> bool:
        """Whether no more tokens may be spent."""
        return self._upstream.tokens is not None and self.spent >= self._upstream.tokens

    def __enter__(self) -> Self:
        self._thread.start()
        while not all(server.started for server in self._servers):
            if self._ended.wait(0.01):
                raise OSError(f"the drill cannot listen in {next(iter(self.sockets.values())).parent}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ended.set()

    async def _serve(self) -> None:
        most = self._upstream.concurrency
        self._places = {
            each.url: asyncio.Semaphore(min(most, each.max_concurrency or most))
            for each in self._upstream.backends
        }
        self._clients = {
            each.url: client_of(each, timeout=self._upstream.timeout_seconds)
            for each in self._upstream.backends
        }
        try:
            async with asyncio.TaskGroup() as group:
                for server in self._servers:
                    group.create_task(server.serve())
        finally:
            for client in self._clients.values():
                await client.aclose()

    def _app(self, arm: Arm) -> Starlette:
        async def listing(_: Request) -> Response:
            return JSONResponse({"object": "list", "data": [{"id": self._upstream.model, "object": "model"}]})

        return Starlette(
            routes=[
                Route("/v1/chat/completions", partial(self._chat, arm), methods=["POST"]),
                Route("/v1/models", listing),
                Route("/health", listing),
            ]
        )

    async def _chat(self, arm: Arm, request: Request) -> Response:
        asked = json.loads(await request.body())
        asked["model"] = self._upstream.model
        # Sorted to be compared only: in which order a schema names its fields is the backend's business.
        question = json.dumps(asked, sort_keys=True)
        number = min(arm.begins + self._arrivals[arm.name, question], SECOND)
        self._arrivals[arm.name, question] += 1
        answered = await self._answer(question, asked, number)
        body = answered.body
        if answered.status == httpx.codes.OK:
            for defect in sorted(arm.defects):
                draw = Random(f"{self._seed}/{arm.name}/{defect}/{number}/{question}")
                if _shows(defect, asked) and draw.random() < self._share:
                    self.planted[arm.name, defect] += 1
                    body = rewrite(body, answered.content_type, partial(damaged, defect=defect, draw=draw))
        headers = {"content-type": answered.content_type}
        if answered.content_type.startswith("text/event-stream"):
            return StreamingResponse(_events(body), answered.status, headers=headers)
        return Response(body, answered.status, headers=headers)

    async def _answer(self, question: str, asked: Mapping[str, Any], number: int) -> _Answered:
        slot = (question, number)
        async with self._asking[slot]:
            if (known := self._answers.get(slot)) is not None:
                return known
            answered = await self._ask(asked)
            if answered.status < 500 and answered.status != httpx.codes.TOO_MANY_REQUESTS:
                self._answers[slot] = answered
            return answered

    async def _ask(self, asked: Mapping[str, Any]) -> _Answered:
        if self.is_spent:
            return _unanswered("the drill has spent its tokens")
        url = min(self._clients, key=lambda one: self._outstanding[one])
        self._outstanding[url] += 1
        try:
            async with self._places[url]:
                self.asked += 1
                answer = await self._clients[url].post(
                    "/v1/chat/completions", content=json.dumps(asked), headers=_HEADERS
                )
        except httpx.HTTPError as error:
            self._failed(f"{url}: {type(error).__name__}: {error}")
            return _unanswered(f"the baseline's backend gave no answer: {type(error).__name__}")
        finally:
            self._outstanding[url] -= 1
        if answer.status_code != httpx.codes.OK:
            self._failed(f"{url} answers {answer.status_code}: {answer.text[:300]}")
        self.spent += _tokens(asked, answer)
        return _Answered(
            status=answer.status_code,
            content_type=answer.headers.get("content-type", "application/json"),
            body=answer.content,
        )

    def _failed(self, why: str) -> None:
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append(why)


_HEADERS = {"content-type": "application/json", "accept-encoding": "identity", REPLAY_MARK: "1"}


def _shows(defect: Defect, asked: Mapping[str, Any]) -> bool:
    """Whether this defect is for this question: another's must come through unharmed, or it is blamed too."""
    if "response_format" in asked:
        return defect is Defect.JSON
    return defect is (Defect.RECALL if asks_again(_last_turn(asked)) else Defect.REFUSAL)


def _last_turn(asked: Mapping[str, Any]) -> str:
    content = asked["messages"][-1]["content"]
    return content if isinstance(content, str) else ""


def _unanswered(why: str) -> _Answered:
    body = json.dumps({"error": {"message": why, "type": "drill"}}).encode()
    return _Answered(status=503, content_type="application/json", body=body)


def _tokens(asked: Mapping[str, Any], answer: httpx.Response) -> int:
    """What the backend says it spent; where it says nothing, by length."""
    written = answer.text
    for line in (written, *reversed(written.split("\n"))):
        try:
            usage = json.loads(line.removeprefix("data:"))["usage"]
            told = [int(usage[name]) for name in ("prompt_tokens", "completion_tokens")]
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
        if all(0 <= count <= _MOST_TOKENS for count in told):
            return sum(told)
    prompt = sum(len(str(turn.get("content", ""))) for turn in asked["messages"])
    return prompt // _CHARACTERS_PER_TOKEN + int(asked.get("max_tokens", 0))


async def _events(body: bytes) -> AsyncIterator[bytes]:
    for event in body.split(b"\n\n"):
        if event:
            yield event + b"\n\n"
