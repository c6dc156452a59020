"""Looking at the engines behind every tier: what they tell of themselves, and whether it holds still.

Every backend of every pool is asked, all at once and within a few seconds, whatever some of them do. Who does
not answer, or answers only in part, has told nothing: its last word is kept (`service.engines.settling`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from random import sample

import httpx

from service.capacity.prefix_window import Look
from service.engines.asking import Page, ask_engine
from service.engines.facts import UNTOLD, EngineFacts
from service.engines.pages import served_models
from service.engines.stages import prefix_look
from service.fleet import Backend, Ladder
from service.reach import client_of, read_page
from service.store.load.engine_readings import BackendKey, due_backends, record_readings
from service.store.sql.database import Database
from service.store.verdicts.current_epochs import Declared, record_epochs
from service.store.verdicts.observations import TierKey, Turn, read_words, record_look

log = logging.getLogger("tiergate.engines")

AT_ONCE = 32
"""Backends asked at the same time."""
LONGEST_PAGE = 4 * 1024 * 1024
"""Bytes; a page of metrics has some 60 KB."""
WITH_PREFIX_COUNTERS = frozenset({"vllm", "sglang"})
"""Engines that count tokens of prefixes; others log an error for a page that they do not have."""
NOT_NOW = frozenset({408, 425, 429})
"""Statuses that, like 5xx, say nothing about whether a page is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long engines may take to answer, in seconds."""

    page: float = 3.0
    """Between two pieces of a page."""
    backend: float = 4.0
    """One backend with all its pages, however slowly they trickle."""
    look: float = 8.0
    """All of them together; who has not answered by then has told nothing."""


class Silent(Exception):
    """A backend told nothing, or not all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A backend of a tier."""

    key: TierKey
    backend: Backend
    model: str
    """What it calls the model."""
    known: str
    """The engine that it was when it last answered, or empty."""
    is_due: bool
    """Whether it is time to keep what it tells of its prefix cache."""


@dataclass(slots=True)
class _Heard:
    """What a backend told until its time was over."""

    facts: EngineFacts | None = None
    look: Look | None = None


def observe(
    db: Database,
    ladders: Mapping[str, Ladder],
    declared: Declared,
    *,
    now: float,
    patience: Patience | None = None,
) -> dict[TierKey, Turn]:
    """One look: ask, settle, write down epochs that are new; what became of each tier."""
    serving = {
        (ladder.model, tier.name, backend.url)
        for ladder in ladders.values()
        for tier in ladder.tiers
        for backend in tier.backends
    }
    due = due_backends(db, serving, now=now)
    places = [place for ladder in ladders.values() for place in _places(db, ladder, due)]
    answers = asyncio.run(_ask_all(places, patience or Patience(), now))
    told: dict[TierKey, dict[str, EngineFacts | None]] = {}
    looks: dict[BackendKey, Look] = {}
    for place, heard in zip(places, answers, strict=True):
        told.setdefault(place.key, {})[place.backend.url] = heard.facts
        if heard.look is not None:
            looks[*place.key, place.backend.url] = heard.look
    turns = record_look(db, told, now=now)
    record_epochs(db, ladders, declared, now=now)
    record_readings(db, looks)
    for (model, tier), turn in turns.items():
        _tell(f"{model}/{tier}", turn)
    return turns


def _places(db: Database, ladder: Ladder, due: Collection[BackendKey]) -> list[_Place]:
    """Every backend of every pool, once for each tier."""
    places = []
    for tier in ladder.tiers:
        known = {word.backend: word.facts.engine for word in read_words(db, ladder.model, tier.name)}
        by_url = {backend.url: backend for backend in (*tier.shadow, *tier.backends)}
        places += [
            _Place(
                key=(ladder.model, tier.name),
                backend=backend,
                model=tier.model,
                known=known.get(url, ""),
                is_due=(ladder.model, tier.name, url) in due,
            )
            for url, backend in by_url.items()
        ]
    return places


async def _ask_all(places: list[_Place], patience: Patience, now: float) -> list[_Heard]:
    """What each tells, in the order of the places.

    They are asked in any order: were it always the same, as many slow ones as are asked at a time could keep
    those behind them unheard for ever.
    """
    gate = asyncio.Semaphore(AT_ONCE)
    found = [_Heard() for _ in places]

    async def one(number: int, place: _Place) -> None:
        async with gate:
            try:
                async with asyncio.timeout(patience.backend):
                    await _ask(place, patience.page, found[number], now)
            except (Silent, httpx.HTTPError, OSError, ValueError) as error:
                log.debug("%s/%s %s told nothing: %s", *place.key, place.backend.url, error)

    try:
        async with asyncio.timeout(patience.look), asyncio.TaskGroup() as group:
            for number, place in sample(list(enumerate(places)), len(places)):
                group.create_task(one(number, place))
    except TimeoutError:
        log.debug("some backends did not tell who they are within %s s", patience.look)
    return found


async def _ask(place: _Place, seconds: float, heard: _Heard, now: float) -> None:
    """Who it is, as the server of the tier's model, if it is an engine that we know; then its cache."""
    async with client_of(place.backend, timeout=seconds) as client:
        pages: dict[str, Page] = {}

        async def get(path: str) -> Page:
            if path in pages:
                return pages[path]
            page = await read_page(client, path, longest=LONGEST_PAGE)
            if page.status >= 500 or page.status in NOT_NOW:
                raise Silent(f"{path} answers {page.status}")
            pages[path] = page
            return page

        listing = await get("/v1/models")
        try:
            models = served_models(listing.text)
        except ValueError as error:
            raise Silent(f"/v1/models: {error}") from None
        if place.model not in models:
            raise Silent(f"it does not serve {place.model} at the moment")
        heard.facts = _as_server(place, await ask_engine(get, known=place.known), models[place.model])
        if place.is_due and heard.facts is not None and heard.facts.engine in WITH_PREFIX_COUNTERS:
            metrics = await get("/metrics")
            if metrics.status == 200:
                heard.look = prefix_look(metrics.text, backend=place.backend.url, at=now)


def _as_server(place: _Place, facts: EngineFacts | None, longest: int | None) -> EngineFacts | None:
    if facts is None and place.known:
        # It told who it is before: another engine is there, or a gateway that hides it.
        return EngineFacts(engine=UNTOLD)
    if facts is None or longest is None:
        return facts
    return replace(facts, max_model_len=longest)


def _tell(subject: str, turn: Turn) -> None:
    before, after = turn.before, turn.after
    if after.unsettled and after.unsettled != before.unsettled:
        log.warning("%s is unsettled, and its pairs count nowhere: %s", subject, after.unsettled)
    elif before.unsettled and not after.unsettled:
        log.warning("%s is settled again: %s", subject, after.settled)
    elif before.settled is None and after.settled is not None:
        log.info("%s runs %s", subject, after.settled)
