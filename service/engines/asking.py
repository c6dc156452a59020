"""Which pages tell who an engine is, and in which order they are asked for; the caller does the asking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from service.engines import pages
from service.engines.facts import EngineFacts


class Page(NamedTuple):
    """What a backend answered to GET."""

    status: int
    text: str


Get = Callable[[str], Awaitable[Page]]
"""Gets one page, by path."""


async def ask_engine(get: Get, *, known: str = "") -> EngineFacts | None:
    """Who the engine is; None when it is none that we know.

    With the name of the engine that was `known` there, its pages are asked for first: the others log an error
    for each page that they do not have.
    """
    readers = {"vllm": _vllm, "sglang": _sglang, "llama.cpp": _llama_cpp}
    for name in sorted(readers, key=lambda name: name != known):
        found = await readers[name](get)
        if found is not None:
            return found
    return None


async def _vllm(get: Get) -> EngineFacts | None:
    version = await get("/version")
    if version.status != 200 or pages.vllm(version.text, "") is None:
        return None
    metrics = await get("/metrics")
    return pages.vllm(version.text, metrics.text if metrics.status == 200 else "")


async def _sglang(get: Get) -> EngineFacts | None:
    for path in ("/server_info", "/get_server_info"):
        page = await get(path)
        if page.status == 200 and (found := pages.sglang(page.text)) is not None:
            return found
    return None


async def _llama_cpp(get: Get) -> EngineFacts | None:
    page = await get("/props")
    return pages.llama_cpp(page.text) if page.status == 200 else None
