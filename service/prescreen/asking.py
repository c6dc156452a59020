"""A pre-screen of one ladder's tiers: the baseline answers, and each tier says how likely that answer is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import httpx

from evaluators.exchange import Answer, Json, Request
from service.engines.asking import Page, ask_engine
from service.fleet import Backend, Ladder, Tier
from service.prescreen.forcing import (
    CannotForce,
    Method,
    asking_body,
    forcing_bodies,
    method_of,
    read_forced,
)
from service.prescreen.surprise import Forced, Surprise, surprise
from service.reach import client_of, read_page
from service.wire import parse_answer, write_body
from service.wire.shapes import read_json

PATIENCE = 300.0
"""Seconds for one request to a backend."""
_LONGEST_PAGE = 4 * 1024 * 1024
_MARK = {"content-type": "application/json", "accept-encoding": "identity", "x-tiergate-replay": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """One tier, screened."""

    tier: str
    method: Method | None
    found: Surprise | None
    """None where nothing could be measured; `skipped` says why."""
    broken: int
    """Tokens of the candidate whose log probability is no finite number."""
    skipped: Mapping[str, int]
    """Reasons of texts that were left out, by how often."""


Told = Callable[[int, int], None]
"""Hears how many of how many texts are done."""


async def prescreen(
    ladder: Ladder, tiers: Sequence[Tier], requests: Sequence[Request], *, max_tokens: int, told: Told
) -> list[Screened]:
    """Every text once through the baseline, then through baseline and tiers with that answer forced.

    One request at a time on each backend. A tier whose backend does not answer has no figures.
    """
    everyone = [ladder.baseline, *tiers]
    async with asyncio.TaskGroup() as group:
        engines = [group.create_task(_engine(_where(tier))) for tier in everyone]
    known = {tier.name: task.result() for tier, task in zip(everyone, engines, strict=True)}
    pairs: dict[str, list[tuple[Forced, Forced]]] = {tier.name: [] for tier in tiers}
    methods: dict[str, Method] = {}
    skipped: dict[str, Counter[str]] = {tier.name: Counter() for tier in tiers}
    for number, request in enumerate(requests, 1):
        try:
            method = method_of(known[ladder.baseline.name], request.endpoint)
            answer = await _answer(ladder.baseline, request, max_tokens)
            base = await _forced(ladder.baseline, method, request, answer)
        except CannotForce as error:
            for each in skipped.values():
                each[f"{ladder.baseline.name}: {error}"] += 1
        else:
            async with asyncio.TaskGroup() as group:
                asked = {
                    tier.name: group.create_task(_compared(tier, known[tier.name], method, request, answer))
                    for tier in tiers
                }
            for name, task in asked.items():
                outcome = task.result()
                if isinstance(outcome, Forced):
                    pairs[name].append((base, outcome))
                    methods[name] = method
                else:
                    skipped[name][outcome] += 1
        told(number, len(requests))
    return [
        Screened(
            tier=tier.name,
            method=methods.get(tier.name),
            found=surprise(pairs[tier.name]),
            broken=sum(forced.broken for _, forced in pairs[tier.name]),
            skipped=dict(skipped[tier.name]),
        )
        for tier in tiers
    ]


async def _compared(
    tier: Tier, engine: str | None, method: Method, request: Request, answer: str
) -> Forced | str:
    """The candidate's figures of one text, or why there are none."""
    try:
        own = method_of(engine, request.endpoint)
        if own is not method:
            return f"{tier.name} can be asked by {own} and the baseline by {method}: not to be compared"
        return await _forced(tier, method, request, answer)
    except CannotForce as error:
        return f"{tier.name}: {error}"


def _where(tier: Tier) -> Backend:
    """What serves nobody, if there is such a backend."""
    return (*tier.shadow, *tier.backends)[0]


async def _engine(backend: Backend) -> str | None:
    async with client_of(backend, timeout=PATIENCE) as client:

        async def get(path: str) -> Page:
            return await read_page(client, path, longest=_LONGEST_PAGE)

        try:
            facts = await ask_engine(get)
        except httpx.HTTPError:
            return None
    return None if facts is None else facts.engine


async def _answer(tier: Tier, request: Request, max_tokens: int) -> str:
    """What the baseline says, greedily."""
    body = asking_body(request, model=tier.model, max_tokens=max_tokens)
    response = await _post(tier, request, body)
    outcome = parse_answer(
        request.endpoint,
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        content_encoding="",
        body=response.content,
        complete=True,
    )
    if not isinstance(outcome, Answer):
        raise CannotForce(str(outcome))
    if outcome.tool_calls:
        raise CannotForce("its answer calls a tool")
    return outcome.text


async def _forced(tier: Tier, method: Method, request: Request, answer: str) -> Forced:
    said: list[Json] = []
    for body in forcing_bodies(method, request, answer, model=tier.model):
        response = await _post(tier, request, body)
        written = response.content.decode("utf-8", "replace")
        if response.status_code != httpx.codes.OK:
            raise CannotForce(f"answered {response.status_code}: {' '.join(written[:200].split())}")
        try:
            said.append(read_json(written))
        except ValueError as error:
            raise CannotForce(str(error)) from None
    return read_forced(method, request, answer, said)


async def _post(tier: Tier, request: Request, body: Mapping[str, Json]) -> httpx.Response:
    async with client_of(_where(tier), timeout=PATIENCE) as client:
        try:
            return await client.post(request.endpoint.value, content=write_body(body), headers=_MARK)
        except httpx.HTTPError as error:
            raise CannotForce(str(error) or type(error).__name__) from None
