"""Prompts of `tiergate capacity matrix`: made of words, as long as the engine counts; or captured."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.cli.configuration import fail

if TYPE_CHECKING:
    from evaluators.exchange import Request
    from service.capacity.matrix import Spot
    from service.capacity.matrix_cells import PromptClass
    from service.fleet import Backend
    from service.load.filler import Measure
    from service.settings import Settings
    from service.store.sql.database import Database

UNUSABLE = 2
PATIENCE = 120.0
"""Seconds for one answer of one token, which a cold engine may take its time for."""
WORD_CHARACTERS = 7
"""Of a word with its space, about."""
BYTES_A_TOKEN = 4
"""Of a captured body, about: only for its name; what the engine counts is measured."""
QUANTILES = (0.5, 0.9, 0.99)
NEAR = 1.25
"""Sizes of one class differ from its quantile by no more than this factor."""
LEAST_NEAR, MOST_NEAR = 8, 256
"""Captured requests of a class: at least so many, however far, and no more than so many."""

Prompts = Callable[["Spot", str], "Sequence[Request]"]
"""The requests of a cell; the text is a name of its own, which no other cell has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How made prompts are answered."""

    model: str
    """As backends call it."""
    output_tokens: int
    ignore_eos: bool


def made(measure: Measure, asked: Asked) -> Prompts:
    """Of words, each another."""

    def prompts(spot: Spot, name: str) -> Sequence[Request]:
        from service.load.cells import prompts_for
        from service.load.filler import requests

        words = measure.words(spot.row.prompt.tokens)
        count = prompts_for(spot.concurrency, characters=WORD_CHARACTERS * words)
        return list(
            requests(
                count,
                words=words,
                seed=name,
                model=asked.model,
                output_tokens=asked.output_tokens,
                ignore_eos=asked.ignore_eos,
            )
        )

    return prompts


def measured(backend: Backend, model: str) -> Measure:
    """How many tokens the backend makes of words, from its usage in two answers of one token."""
    from service.load.filler import FEW, MANY, measure

    few, many = asyncio.run(_counted(backend, model, (FEW, MANY)))
    try:
        return measure(few, many)
    except ValueError as error:
        raise fail(f"{backend.url}: {error}", UNUSABLE) from None


async def _counted(backend: Backend, model: str, sizes: Sequence[int]) -> list[int]:
    import httpx

    from service.load.filler import CHAT, body
    from service.reach import client_of

    found = []
    async with client_of(backend, timeout=PATIENCE) as client:
        for words in sizes:
            content = body(words, seed=f"count:{words}", model=model, output_tokens=1, ignore_eos=False)
            try:
                answer = await client.post(
                    CHAT,
                    content=content,
                    headers={"content-type": "application/json", "x-tiergate-replay": "1"},
                )
                told = answer.raise_for_status().json()["usage"]["prompt_tokens"]
                found.append(int(told))
            except (httpx.HTTPError, KeyError, TypeError, ValueError) as error:
                raise fail(
                    f"{backend.url} did not tell the tokens of a prompt ({type(error).__name__}: {error}): "
                    "it must answer chat completions with usage",
                    UNUSABLE,
                ) from None
    return found


def captured(settings: Settings, db: Database, model: str) -> tuple[tuple[PromptClass, ...], Prompts]:
    """Classes by quantiles of the corpus' sizes, and the requests that are about as long as each."""
    from service.capacity.matrix_cells import PromptClass
    from service.load.filler import marked
    from service.store.kept.corpus_members import opened
    from service.wire import parse_request
    from service.wire.shapes import NotARequest

    members = []
    for each in opened(
        db,
        settings.keyring,
        model=model,
        name=settings.corpus.use,
        per_stratum=settings.corpus.plan.per_stratum,
        now=time.time(),
    ):
        try:
            members.append((len(each.body), each.weight, parse_request(each.path, each.body)))
        except NotARequest:
            continue  # what cannot be read cannot be sent; `tiergate corpus show` tells of it
    if not members:
        raise fail(
            f"the corpus {settings.corpus.use} of {model} has no request: let traffic fill it, import some "
            "(`tiergate corpus import --help`), or leave --captured out, and prompts are made of words",
            UNUSABLE,
        )
    members.sort(key=lambda each: each[0])
    weights = [(size, weight) for size, weight, _ in members]
    found: dict[str, list[Request]] = {}
    classes: list[PromptClass] = []
    sizes: set[int] = set()
    for share in QUANTILES:
        size = weighted_quantile(weights, share)
        if size in sizes:
            continue
        sizes.add(size)
        name = f"p{100 * share:g}"
        classes.append(PromptClass(name=name, tokens=max(1, size // BYTES_A_TOKEN)))
        found[name] = [members[place][2] for place in near([each[0] for each in members], size)]

    def prompts(spot: Spot, name: str) -> Sequence[Request]:
        return [marked(each, name) for each in found[spot.row.prompt.name]]

    return tuple(classes), prompts


def weighted_quantile(sizes: Sequence[tuple[int, float]], share: float) -> int:
    """The least size up to which so large a share of the weight lies; sizes rise."""
    total = math.fsum(weight for _, weight in sizes)
    reached = 0.0
    for size, weight in sizes:
        reached += weight
        if reached >= share * total * (1 - 1e-12):
            return size
    return sizes[-1][0]


def near(sizes: Sequence[int], wanted: int) -> list[int]:
    """Places of the sizes nearest to one, as a ratio: those within `NEAR`, and at least `LEAST_NEAR`."""
    by_distance = sorted(range(len(sizes)), key=lambda place: abs(math.log(max(1, sizes[place]) / wanted)))
    within = sum(wanted / NEAR <= each <= wanted * NEAR for each in sizes)
    return sorted(by_distance[: max(LEAST_NEAR, min(within, MOST_NEAR))])
