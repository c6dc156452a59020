from __future__ import annotations

import pytest

from service.engines.asking import Page, ask_engine
from service.engines.facts import EngineFacts
from tests.engines.test_pages import (
    LLAMA_CPP,
    LLAMA_CPP_FACTS,
    SGLANG,
    SGLANG_FACTS,
    vllm_facts,
    vllm_metrics,
)

VLLM = {"/version": '{"version":"0.32.0"}', "/metrics": vllm_metrics("auto", 46592)}


async def asked(pages: dict[str, str], known: str = "") -> tuple[EngineFacts | None, list[str]]:
    """Who it is, and the paths that were asked for."""
    paths: list[str] = []

    async def get(path: str) -> Page:
        paths.append(path)
        return Page(200, pages[path]) if path in pages else Page(404, "not found")

    return await ask_engine(get, known=known), paths


@pytest.mark.parametrize(
    ("pages", "facts"),
    [
        (VLLM, vllm_facts("auto", 46592)),
        ({"/version": VLLM["/version"]}, EngineFacts(engine="vllm", version="0.32.0")),
        ({"/server_info": SGLANG}, SGLANG_FACTS),
        ({"/get_server_info": SGLANG}, SGLANG_FACTS),
        ({"/props": LLAMA_CPP}, LLAMA_CPP_FACTS),
        ({"/version": "<html>", "/props": "<html>"}, None),
        ({}, None),
    ],
)
async def test_each_engine_is_known_by_its_own_pages(
    pages: dict[str, str], facts: EngineFacts | None
) -> None:
    found, _ = await asked(pages)
    assert found == facts


async def test_an_engine_that_is_known_is_asked_for_its_own_pages_only() -> None:
    _, paths = await asked({"/props": LLAMA_CPP}, known="llama.cpp")
    assert paths == ["/props"]


async def test_another_engine_in_its_place_is_found_all_the_same() -> None:
    found, paths = await asked(VLLM, known="llama.cpp")
    assert found == vllm_facts("auto", 46592)
    assert paths == ["/props", "/version", "/metrics"]
