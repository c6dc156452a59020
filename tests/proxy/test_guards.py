"""Requests above a limit of their model are told so, in the shape that OpenAI's clients read."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from service.fleet import Ladder, Limits
from tests.proxy.raw_client import Answered, post
from tests.proxy.standing import Proxy, StartBackend, StartProxy, ladder

TOO_LONG = {"model": "m", "messages": [{"role": "user", "content": "x" * 4000}]}


def limited(url: str, **limits: object) -> Ladder:
    return replace(ladder(url), limits=replace(Limits(), **limits))  # type: ignore[arg-type]


def error(answered: Answered) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered.body)["error"]
    assert set(found) == {"message", "type", "param", "code"}
    assert found["type"] == "invalid_request_error"
    assert answered.error.decode() == found["code"]
    return found


async def ask(proxy: Proxy, body: object, path: bytes = b"/v1/chat/completions", **how: Any) -> Answered:
    written = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await proxy.ask(post(written, path=path, **how))


async def test_a_body_above_its_models_limit_is_413_and_the_connection_goes_on(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(limited(backend.url, max_request=1000), ladder(backend.url, model="n"))
    client = await proxy.connect()
    refused = await client.ask(post(json.dumps(TOO_LONG).encode()))
    assert (refused.status, error(refused)["code"]) == (413, "request_too_large")
    assert "1000 bytes" in error(refused)["message"]
    assert (await client.ask(post(json.dumps(TOO_LONG | {"model": "n"}).encode()))).status == 200
    assert (await client.ask(post())).status == 200
    client.close()
    assert len(backend.requests) == 2


async def test_what_a_coding_hides_counts_too(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    proxy = await start_proxy(limited((await start_backend()).url, max_request=1000))
    packed = gzip.compress(json.dumps(TOO_LONG).encode())
    assert len(packed) < 1000
    assert (await ask(proxy, packed, headers=[b"Content-Encoding: gzip"])).status == 413


async def test_size_limits_every_path_of_a_model(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(limited((await start_backend()).url, max_request=1000))
    assert (await ask(proxy, TOO_LONG, path=b"/v1/embeddings")).status == 413


@pytest.mark.parametrize(
    ("body", "path", "param", "says"),
    [
        (TOO_LONG, b"/v1/chat/completions", "messages", "about 1003"),
        ({"model": "m", "prompt": "x" * 4004}, b"/v1/completions", "prompt", "about 1001"),
        ({"model": "m", "prompt": [7] * 1001}, b"/v1/completions", "prompt", "has 1001"),
        ({"model": "m", "input": "x" * 4004}, b"/v1/responses", "input", "about 1001"),
        (TOO_LONG | {"max_tokens": 5}, b"/v1/messages", "messages", "about 1003"),
        (TOO_LONG, b"/v1/chat/completions/", "messages", "about 1003"),
        (TOO_LONG, b"/v1/chat/%63ompletions", "messages", "about 1003"),
    ],
)
async def test_a_prompt_above_the_limit_is_400_in_openais_words(
    body: object, path: bytes, param: str, says: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(limited(backend.url, max_prompt_tokens=1000))
    refused = await ask(proxy, body, path=path)
    assert (refused.status, error(refused)["code"]) == (400, "context_length_exceeded")
    assert error(refused)["param"] == param
    assert says in error(refused)["message"]
    assert "1000 tokens" in error(refused)["message"]
    assert backend.requests == []


async def test_a_prompt_at_the_limit_passes_and_so_does_what_is_no_prompt(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(limited(backend.url, max_prompt_tokens=1000))
    assert (await ask(proxy, {"model": "m", "prompt": "x" * 4000}, path=b"/v1/completions")).status == 200
    assert (await ask(proxy, {"model": "m", "prompt": "x" * 9000}, path=b"/tokenize")).status == 200
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9000}}
    content = {"model": "m", "messages": [{"role": "user", "content": [picture]}]}
    assert (await ask(proxy, content)).status == 200


@pytest.mark.parametrize(
    ("asked", "param", "says"),
    [
        ({"max_tokens": 101}, "max_tokens", "101: max_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 200}, "max_completion_tokens", "200"),
        ({"max_tokens": 30, "n": 4}, "max_tokens", "120 in its 4 answers"),
        ({"max_tokens": "101"}, "max_tokens", "101"),
        ({"max_tokens": 10**40}, "max_tokens", "inf"),
    ],
)
async def test_an_answer_above_the_limit_is_400(
    asked: dict[str, object], param: str, says: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(limited(backend.url, max_output_tokens=100))
    refused = await ask(proxy, {"model": "m", "messages": []} | asked)
    assert (refused.status, error(refused)["code"]) == (400, "max_tokens_too_large")
    assert error(refused)["param"] == param
    assert says in error(refused)["message"]
    assert backend.requests == []


async def test_a_key_in_disguise_is_read_too(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    proxy = await start_proxy(limited((await start_backend()).url, max_output_tokens=100))
    refused = await ask(proxy, b'{"model":"m","messages":[],"\\u006dax_tokens":200}')
    assert error(refused)["code"] == "max_tokens_too_large"


async def test_who_names_no_length_passes_unless_one_has_to(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    lenient = await start_proxy(limited(backend.url, max_output_tokens=100))
    assert (await lenient.ask(post())).status == 200
    strict = await start_proxy(limited(backend.url, require_max_tokens=True))
    refused = await strict.ask(post())
    assert (refused.status, error(refused)["code"]) == (400, "max_tokens_required")
    assert error(refused)["param"] == "max_tokens"
    assert (await ask(strict, {"model": "m", "messages": [], "max_tokens": -1})).status == 400
    assert (await ask(strict, {"model": "m", "messages": [], "max_tokens": 9})).status == 200
    assert (await ask(strict, {"model": "m", "input": "x"}, path=b"/v1/embeddings")).status == 200


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"model":"m","max_tokens":9,,}', [], 400),
        (b'{"model":"m","max_tokens":9,"messages":' + b"[" * 300_000 + b"]" * 300_000 + b"}", [], 400),
        (b'{"model":"m","max_tokens":9,"messages":' + b"[" * 9000 + b"]" * 9000 + b"}", [], 400),
        (b"\x00\x01", [b"Content-Encoding: br"], 415),
        (b"", [], 400),
    ],
)
async def test_what_a_guard_cannot_read_does_not_pass(
    body: bytes,
    headers: list[bytes],
    status: int,
    start_backend: StartBackend,
    start_proxy: StartProxy,
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(limited(backend.url, max_output_tokens=100))
    refused = await ask(proxy, body, headers=headers)
    assert (refused.status, error(refused)["code"]) == (status, "unreadable_body")
    assert backend.requests == []


async def test_bodies_that_cannot_be_above_a_limit_are_not_read(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """What is no JSON is for the backend to say then, as without limits."""
    backend = await start_backend()
    proxy = await start_proxy(limited(backend.url, max_prompt_tokens=1000, max_output_tokens=100))
    assert (await ask(proxy, b'{"model":"m","messages":[,,]}')).status == 200
    assert (await ask(proxy, b'{"model":"m","messages":[,,],"max_tokens":1}')).status == 400


async def test_refusals_are_in_the_ledger_and_among_the_errors(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(limited((await start_backend()).url, max_prompt_tokens=1000))
    assert (await ask(proxy, TOO_LONG)).status == 400
    assert (await proxy.ask(post())).status == 200
    await proxy.captures(1)
    ledger = proxy.ledger
    assert (ledger["seen|m"], ledger["skipped|m|refused"], ledger["sampled|m"]) == (2, 1, 1)
    assert [value for key, value in ledger.items() if key.startswith("traffic|m")] == [1]
    assert proxy.plane.meters.counters["errors", (("code", "context_length_exceeded"),)] == 1
