"""Which model, whether kept, or why not: every request has its place in the ledger."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
import zstandard

from service.proxy.config import Mirroring
from service.store.redis.counters import Skipped
from tests.proxy.raw_client import get, post
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder

CHAT = b'{"model":"m","messages":[{"role":"user","content":%b}]}'


@pytest.mark.parametrize(
    "path", [b"/v1/chat/completions", b"/v1/completions", b"/v1/responses", b"/v1/messages"]
)
async def test_every_generating_endpoint_is_captured(
    path: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    assert (await proxy.ask(post(path=path + b"?beta=true"))).status == 200
    [capture] = await proxy.captures(1)
    assert capture.path == path.decode()
    ledger = proxy.ledger
    assert (ledger["seen|m"], ledger["sampled|m"]) == (1, 1)
    assert ledger["traffic|m|under-2k%2Ffree%2Fwhole"] == 1


@pytest.mark.parametrize(
    ("request_bytes", "reason"),
    [
        (post(path=b"/v1/embeddings"), Skipped.NOT_GENERATION),
        (get(b"/v1/chat/completions"), Skipped.NOT_GENERATION),
        (post(headers=[b"X-Tiergate-Shadow: Off"]), Skipped.OPTED_OUT),
        (post(headers=[b"X-Tiergate-Shadow: on", b"X-Tiergate-Shadow: off"]), Skipped.OPTED_OUT),
        (post(headers=[b"X-Tiergate-Shadow: on, OFF"]), Skipped.OPTED_OUT),
        (post(headers=[b"X-Tiergate-Replay: 1"]), Skipped.OPTED_OUT),
        (
            post(b'{"model":"m","input":"x","previous_response_id":"r"}', path=b"/v1/responses"),
            Skipped.STATEFUL,
        ),
        (
            post(b'{"model":"m","input":[{"type":"input_file","file_id":"f"}]}', path=b"/v1/responses"),
            Skipped.STATEFUL,
        ),
        (post(b'{"model":"m","prompt":{"id":"p"},"input":"x"}', path=b"/v1/responses"), Skipped.STATEFUL),
        (
            post(b'{"model":"m","input":"x","tools":[{"type":"web_search"}]}', path=b"/v1/responses"),
            Skipped.STATEFUL,
        ),
        (post(CHAT[:-1] % b'"x"' + b',"container":"c"}', path=b"/v1/messages"), Skipped.STATEFUL),
        (
            post(CHAT % b'[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]'),
            Skipped.REMOTE_MEDIA,
        ),
        (
            post(CHAT % b'[{"type":"image_url","image_\\u0075rl":{"url":"https://x/y.png"}}]'),
            Skipped.REMOTE_MEDIA,
        ),
        (post(b'{"model":"m","messages":[],"pad":"' + b"x" * 5000 + b'"}'), Skipped.TOO_LARGE),
    ],
)
async def test_what_is_not_captured_says_why_and_still_passes(
    request_bytes: bytes, reason: Skipped, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(
        ladder((await start_backend()).url), mirroring=Mirroring(sample=1.0, max_body=4000)
    )
    assert (await proxy.ask(request_bytes)).status == 200
    assert proxy.ledger[f"skipped|m|{reason}"] == 1
    assert "sampled|m" not in proxy.ledger


URL = "https://elsewhere/y"


def said(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


REMOTE = [
    ("chat/completions", {"messages": said({"type": "image_url", "image_url": {"url": URL}})}),
    ("chat/completions", {"messages": said({"type": "video_url", "video_url": {"url": "file:///a.mp4"}})}),
    ("chat/completions", {"messages": said({"type": "audio_url", "audio_url": {"url": "s3://a"}})}),
    ("responses", {"input": said({"type": "input_image", "image_url": URL})}),
    ("responses", {"input": said({"type": "input_file", "file_url": URL})}),
    (
        "responses",
        {"input": [{"type": "function_call_output", "output": [{"type": "input_image", "image_url": URL}]}]},
    ),
    ("messages", {"messages": said({"type": "image", "source": {"type": "url", "url": URL}})}),
    ("messages", {"messages": said({"type": "document", "source": {"type": "url", "url": URL}})}),
    (
        "messages",
        {
            "messages": said(
                {"type": "tool_result", "content": [{"type": "image", "source": {"type": "url", "url": URL}}]}
            )
        },
    ),
]
STATEFUL = [
    ("chat/completions", {"messages": said({"type": "file", "file": {"file_id": "f"}})}),
    (
        "chat/completions",
        {"messages": said({"type": "text", "text": "x"}), "tools": [{"type": "web_search"}]},
    ),
    ("responses", {"input": "x", "previous_response_id": "r"}),
    ("responses", {"input": "x", "conversation": {"id": "c"}}),
    ("responses", {"input": "x", "prompt": {"id": "p"}}),
    ("responses", {"input": [{"type": "item_reference", "id": "i"}]}),
    ("responses", {"input": said({"type": "input_image", "file_id": "f"})}),
    ("responses", {"input": "x", "tools": [{"type": "mcp", "server_url": URL}]}),
    ("messages", {"messages": said({"type": "text", "text": "x"}), "container": "c"}),
    ("messages", {"messages": said({"type": "text", "text": "x"}), "mcp_servers": [{"url": URL}]}),
    ("messages", {"messages": said({"type": "document", "source": {"type": "file", "file_id": "f"}})}),
    (
        "messages",
        {
            "messages": said({"type": "text", "text": "x"}),
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        },
    ),
]
NEITHER = [
    ("chat/completions", {"messages": said({"type": "text", "text": URL})}),
    ("completions", {"prompt": f'{URL} {{"image_url": {{"url": "{URL}"}}, "file_id": "f"}}'}),
    ("completions", {"prompt": [1, 2, 3], "previous_response_id": "means nothing here"}),
    ("responses", {"input": said({"type": "input_image", "image_url": "data:image/png;base64,AA"})}),
    ("responses", {"input": "x", "previous_response_id": None, "tools": [{"type": "function", "name": "f"}]}),
    ("messages", {"messages": said({"type": "image", "source": {"type": "base64", "data": "AA"}})}),
    (
        "messages",
        {
            "messages": said({"type": "text", "text": "x"}),
            "tools": [{"type": "bash_20250124", "name": "bash"}],
        },
    ),
]


@pytest.mark.parametrize(
    ("endpoint", "body", "reason"),
    [
        *((endpoint, body, Skipped.REMOTE_MEDIA) for endpoint, body in REMOTE),
        *((endpoint, body, Skipped.STATEFUL) for endpoint, body in STATEFUL),
        *((endpoint, body, None) for endpoint, body in NEITHER),
    ],
)
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_what_another_backend_could_not_answer_is_skipped_on_every_endpoint(
    endpoint: str,
    body: dict[str, Any],
    reason: Skipped | None,
    is_streamed: bool,
    start_backend: StartBackend,
    start_proxy: StartProxy,
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    content = json.dumps({"model": "m", **body, "stream": is_streamed}).encode()
    assert (await proxy.ask(post(content, path=f"/v1/{endpoint}".encode()))).status == 200
    assert backend.last.body == content, "it passes all the same"
    if reason is None:
        assert proxy.ledger["sampled|m"] == 1
    else:
        assert proxy.ledger[f"skipped|m|{reason}"] == 1
        assert "sampled|m" not in proxy.ledger


@pytest.mark.parametrize(
    "body",
    [
        CHAT % b'[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]',
        CHAT % b'"see https://example.org/file_id and \\u00e9"',
        CHAT[:-1] % b'"x"' + b',"tools":[{"type":"function","function":{"name":"f"}}]}',
    ],
)
async def test_what_only_looks_remote_is_captured(
    body: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    assert (await proxy.ask(post(body))).status == 200
    [capture] = await proxy.captures(1)
    assert capture.request_body == body


async def test_a_body_that_need_not_be_json_may_hold_anything(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    assert (await proxy.ask(post(b"\0\0RIFF\0", path=b"/v1/audio/raw"))).status == 200
    assert backend.last.body == b"\0\0RIFF\0"


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (post(b'{"model":"other"}'), 404, b"model_not_found"),
        (post(b'{"model":"m","model":"m"}'), 400, b"duplicate_model"),
        (post(b'{"messages":[]}'), 400, b"model_required"),
        (post(b"not json"), 400, b"model_required"),
        (post(b""), 400, b"model_required"),
        (post(b'{"model":7}'), 400, b"model_required"),
        (post(gzip.compress(b'{"model":"m"}'), headers=[b"Content-Encoding: br"]), 415, b"content_encoding"),
        (post(b"no gzip", headers=[b"Content-Encoding: gzip"]), 415, b"content_encoding"),
        (post(b"{}", headers=["Content-Encoding: gzip\xa0".encode("latin-1")]), 415, b"content_encoding"),
        (post('{"model":"m"}'.encode("utf-16")), 400, b"not_utf8"),
        (get(b"/metrics"), 404, b"path_not_forwarded"),
        (post(path=b"/v1/../sleep"), 404, b"path_not_forwarded"),
    ],
)
async def test_requests_that_reach_no_model_are_refused_in_openai_s_shape_and_the_connection_goes_on(
    request_bytes: bytes, status: int, code: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), ladder(backend.url, model="n"))
    client = await proxy.connect()
    answered = await client.ask(request_bytes)
    assert (answered.status, answered.error) == (status, code)
    error = json.loads(answered.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert not backend.requests
    assert (await client.ask(post(b'{"model":"n"}'))).status == 200
    ledger = proxy.ledger
    assert ledger["seen|"] == 1
    assert ledger.get("skipped||tier_unknown", 0) + ledger.get("skipped||not_generation", 0) == 1


async def test_an_unknown_model_s_refusal_lists_what_there_is(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), ladder(backend.url, model="n"))
    message = json.loads((await proxy.ask(post(b'{"model":"x"}'))).body)["error"]["message"]
    assert "`x`" in message
    assert message.endswith("m, n.")


async def test_without_a_model_the_only_or_the_default_ladder_serves(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    one, two = await start_backend(), await start_backend()
    alone = await start_proxy(ladder(one.url))
    assert (await alone.ask(post(b'{"messages":[]}'))).status == 200
    both = await start_proxy(ladder(one.url), ladder(two.url, model="n"), default_model="n")
    assert (await both.ask(post(b'{"messages":[]}'))).status == 200
    assert (await both.ask(get(b"/health"))).status == 200
    assert (len(one.requests), len(two.requests)) == (1, 2)
    assert both.ledger["sampled|n"] == 1


@pytest.mark.parametrize("coding", [b"", b"gzip", b"deflate", b"zstd", b"identity"])
async def test_the_model_is_spliced_when_the_backend_calls_it_otherwise(
    coding: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url, calls_it="模型-int8"))
    body = b'{ "messages" : [ {"model":"m"} ], "model" :\t"m", "x":1.0}'
    pack = {b"gzip": gzip.compress, b"deflate": zlib.compress, b"zstd": zstandard.compress}.get(coding, bytes)
    unpack = {
        b"gzip": gzip.decompress,
        b"deflate": zlib.decompress,
        b"zstd": zstandard.ZstdDecompressor().decompress,
    }.get(coding, bytes)
    headers = [b"Content-Encoding: " + coding] if coding else []
    packed = pack(body)  # once: gzip writes the time into it
    assert (await proxy.ask(post(packed, headers=headers))).status == 200
    assert unpack(backend.last.body) == body.replace(b'\t"m"', '\t"模型-int8"'.encode())
    [capture] = await proxy.captures(1)
    assert capture.request_body == packed, "the capture has what the client sent"


async def test_the_sample_is_a_share_of_requests_and_each_is_counted(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(
        ladder((await start_backend()).url), mirroring=Mirroring(sample=0.3, salt=b"pepper")
    )
    client = await proxy.connect()
    for _ in range(300):
        assert (await client.ask(post())).status == 200
    ledger = proxy.ledger
    assert ledger["seen|m"] == 300
    assert ledger["sampled|m"] + ledger["skipped|m|not_sampled"] == 300
    assert 60 <= ledger["sampled|m"] <= 120  # 90 +- 4 sigma (7.9)


@pytest.mark.parametrize("by", ["header", "metadata"])
async def test_a_conversation_is_captured_whole_or_not_at_all(
    by: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(
        ladder((await start_backend()).url), mirroring=Mirroring(sample=0.5, salt=b"pepper")
    )
    client = await proxy.connect()
    for number in range(40):
        for _ in range(3):
            if by == "header":
                request = post(headers=[b"X-Conversation-Id: c%d" % number])
            else:
                metadata = b',"metadata":{"conversation_id":"c%d"}}' % number
                request = post(CHAT[:-1] % b'"x"' + metadata)
            assert (await client.ask(request)).status == 200
    sampled = proxy.ledger["sampled|m"]
    captures = await proxy.captures(sampled)
    conversations = [capture.conversation for capture in captures]
    assert 20 <= sampled <= 100
    assert all(conversations.count(each) == 3 for each in conversations)


async def test_tenants_are_told_apart_by_a_keyed_hash(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    for headers in ([b"Authorization: Bearer a"], [b"Authorization: Bearer b"], [b"x-api-key: a"], []):
        await proxy.ask(post(headers=headers))
    tenants = [capture.tenant for capture in await proxy.captures(4)]
    assert len(set(tenants)) == 4
    assert tenants.count("") == 1


async def test_a_sample_of_nothing_captures_nothing(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url), mirroring=Mirroring(sample=0.0))
    await proxy.ask(post())
    assert proxy.ledger["skipped|m|not_sampled"] == 1


async def test_the_ledger_reconciles_after_an_orderly_stop(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(
        ladder((await start_backend()).url), mirroring=replace(Mirroring(), sample=0.5, salt=b"s")
    )
    for request in (post(), get(b"/health"), post(b'{"model":"x"}'), post(path=b"/v1/embeddings")) * 5:
        await proxy.ask(request)
    await proxy.plane.drain()
    ledger = proxy.store.ledger
    assert proxy.store.closed is True
    for model in ("m", ""):
        skipped = sum(value for key, value in ledger.items() if key.startswith(f"skipped|{model}|"))
        assert ledger[f"seen|{model}"] == skipped + ledger.get(f"sampled|{model}", 0)
    assert ledger["sampled|m"] == ledger["shipped|m"] == len(proxy.store.captures)
    await eventually(lambda: proxy.plane.budget.used == 0)


@pytest.mark.parametrize(
    ("header", "told"),
    [(b"json", "json"), (b" JSONL", "jsonl"), (b"none", "none"), (b"yaml", ""), (b"\xff", ""), (b"", "")],
)
async def test_what_a_request_says_of_its_answer_is_captured_if_it_is_known(
    header: bytes, told: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url))
    assert (await proxy.ask(post(headers=[b"X-Tiergate-Expects: " + header]))).status == 200
    [capture] = await proxy.captures(1)
    assert capture.expects == told
