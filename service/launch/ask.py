"""Asking backends who they are, all at once.

Unusable
    a backend that does not answer, is not well, refuses the key or serves another model
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import httpx

from service.engines.asking import Page, ask_engine
from service.engines.facts import EngineFacts
from service.engines.pages import served_models
from service.engines.pressure import pressure
from service.fleet import Backend
from service.reach import client_of, read_page

PATIENCE = 5.0
"""Seconds for one question."""
LONGEST_ANSWER = 4 * 1024 * 1024
"""Bytes of an answer that are read; a page of metrics has some 60 KB."""
AT_ONCE = 16
"""Backends asked at the same time."""


class Unusable(Exception):
    """Why a backend cannot be used, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A backend that is well: the models it serves, and its engine where it is one we know."""

    models: Mapping[str, int | None]
    """With the longest context of each, None where it is not told."""
    engine: EngineFacts | None
    tells_kv: bool | None = None
    """Whether its metrics tell how full its KV cache is; None where that was not asked."""

    def engine_of(self, model: str) -> EngineFacts | None:
        """What it tells of itself as the server of one of its models."""
        if self.engine is None or (longest := self.models.get(model)) is None:
            return self.engine
        return replace(self.engine, max_model_len=longest)


def ask_all(
    backends: Iterable[Backend], guarded: Iterable[Backend] = ()
) -> dict[Backend, Answered | Unusable]:
    """Every distinct backend once; those that are `guarded` for their KV cache as well."""
    return asyncio.run(_ask_all(list(dict.fromkeys(backends)), frozenset(guarded)))


async def _ask_all(
    backends: list[Backend], guarded: frozenset[Backend]
) -> dict[Backend, Answered | Unusable]:
    gate = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:

        async def one(backend: Backend) -> Answered | Unusable:
            async with gate, client_of(backend, timeout=PATIENCE) as client:
                try:
                    return await _ask(client, backend, is_guarded=backend in guarded)
                except Unusable as error:
                    return error

        tasks = {backend: group.create_task(one(backend)) for backend in backends}
    return {backend: task.result() for backend, task in tasks.items()}


async def _ask(client: httpx.AsyncClient, backend: Backend, *, is_guarded: bool) -> Answered:
    pages: dict[str, Page] = {}

    async def get(path: str) -> Page:
        if path not in pages:  # /metrics is read for the engine and for its guard
            pages[path] = await _get(client, path)
        return pages[path]

    health = await get("/health")
    if health.status >= 500:
        raise Unusable(
            f"is not well: GET /health answers {health.status}; wait until it has loaded, or look at its log"
        )
    listing = await get("/v1/models")
    if listing.status in (401, 403):
        raise Unusable(_refused(backend, listing.status))
    if listing.status != 200:
        raise Unusable(f"answers GET /v1/models with {listing.status}: no OpenAI-compatible server is there")
    try:
        models = served_models(listing.text)
    except ValueError:
        raise Unusable(
            "answers GET /v1/models with no list of models: no OpenAI-compatible server is there"
        ) from None
    tells_kv = None
    if is_guarded:
        page = await get("/metrics")
        tells_kv = page.status == 200 and pressure(page.text) is not None
    return Answered(models=models, engine=await ask_engine(get), tells_kv=tells_kv)


def _refused(backend: Backend, status: int) -> str:
    """It wants credentials: which ones it was given is a guess at which are wrong."""
    key, headers = backend.api_key is not None, bool(backend.headers)
    if key and headers:
        return f"refuses the API key or the headers ({status}): correct api_key_file, api_key_env or headers"
    if key:
        return (
            f"refuses the API key ({status}): correct api_key_file or api_key_env; it may want headers, too"
        )
    if headers:
        return f"refuses the headers ({status}): correct them, or give it api_key_file or api_key_env"
    return f"asks who we are ({status}): give it api_key_file, api_key_env or headers"


async def _get(client: httpx.AsyncClient, path: str) -> Page:
    try:
        return await read_page(client, path, longest=LONGEST_ANSWER)
    except httpx.ConnectTimeout:
        raise Unusable(
            f"does not answer within {PATIENCE:g} s: is the address right, is a firewall between?"
        ) from None
    except httpx.ConnectError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise Unusable(
                f"does not prove to be that server ({_cause(error)}): name its authority in ca_file, or the"
                " name that its certificate has in its URL"
            ) from None
        raise Unusable(f"cannot be reached ({_cause(error)}): start it, or correct its URL") from None
    except httpx.TimeoutException:
        raise Unusable(f"accepts connections but does not answer GET {path} within {PATIENCE:g} s") from None
    except httpx.HTTPError as error:
        raise Unusable(f"does not speak HTTP as expected ({_cause(error)}): is it http or https?") from None


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__
