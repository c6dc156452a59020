"""Engines are not administered through the proxy, unless a path is listed to the letter."""

from __future__ import annotations

import pytest

from service.proxy.config import ProxyConfig
from service.proxy.http.heads import ForwardPaths
from tests.proxy.raw_client import get, post
from tests.proxy.standing import StartBackend, StartProxy, ladder

DEFAULT = ProxyConfig(ladders={}).forward_paths
FORWARDED = ForwardPaths(DEFAULT)

OF_ENGINES = [
    # vLLM
    "/v1/load_lora_adapter",
    "/v1/unload_lora_adapter",
    "/v1/admin/drain",
    "/v1/admin/reload_model",
    "/v1/admin/config",
    "/v1/requests/cancel",
    "/v1/requests/cmpl-1/cancel",
    "/v1/server/kv-cache",
    # SGLang
    "/v1/loads",
    # llama.cpp
    "/v1/chat/completions/control",
    "/v1/streams",
    "/v1/stream/conversation",
    # TabbyAPI
    "/v1/model",
    "/v1/model/load",
    "/v1/model/embedding/unload",
    "/v1/model/draft/list",
    "/v1/lora",
    "/v1/lora/load",
    "/v1/loras",
    "/v1/template/switch",
    "/v1/templates",
    "/v1/sampling/override/switch",
    "/v1/sampling/overrides",
    "/v1/download",
    # text-generation-webui
    "/v1/internal/model/load",
    "/v1/internal/lora/unload",
    "/v1/internal/stop-generation",
]
AT_THE_ROOT = [
    *("/sleep", "/wake_up", "/is_sleeping", "/collective_rpc", "/reset_prefix_cache", "/scale_elastic_ep"),
    *("/pause", "/resume", "/abort_requests", "/start_profile", "/stop_profile", "/update_weights"),
    *("/flush_cache", "/set_internal_state", "/update_weights_from_disk", "/release_memory_occupation"),
    *("/load_lora_adapter", "/abort_request", "/freeze_gc", "/slots/0", "/lora-adapters", "/models/load"),
    *("/tools", "/metrics", "/server_info", "/get_server_info"),
]
OF_CLIENTS = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/responses/resp_1",
    "/v1/responses/resp_1/cancel",
    "/v1/responses/input_tokens",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/messages/batches",
    "/v1/embeddings",
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/images/generations",
    "/v1/moderations",
    "/v1/rerank",
    "/v1/reranking",
    "/v1/score",
    "/v1/pooling",
    "/v1/classify",
    "/v1/tokenize",
    "/v1/detokenize",
    "/v1/token/encode",
    "/v1/health",
    "/v1/files/file-abc/content",
    "/v1/uploads/upload_1/parts",
    "/v1/batches/batch_1/cancel",
    "/v1/fine_tuning/jobs/ftjob-1/pause",
    "/v1/fine_tuning/jobs/ftjob-1/checkpoints",
    "/v1/vector_stores/vs_1/search",
    "/v1/videos/video_1/remix",
    "/v1/models",
    "/v1/models/llama-3-lora",
    "/v1/models/org/load-balanced",
    "/health",
    "/version",
    "/tokenize",
]


@pytest.mark.parametrize("path", OF_ENGINES)
def test_what_engines_open_to_operators_below_v1_is_not_forwarded(path: str) -> None:
    assert path.encode() not in FORWARDED


@pytest.mark.parametrize("path", [*OF_ENGINES, *AT_THE_ROOT])
def test_only_a_path_that_is_listed_to_the_letter_is_meant(path: str) -> None:
    if path in AT_THE_ROOT:
        assert path.encode() not in ForwardPaths(("/",))
    assert path.encode() in ForwardPaths(("/", path))


@pytest.mark.parametrize("path", OF_CLIENTS)
def test_what_clients_use_is_forwarded(path: str) -> None:
    assert path.encode() in FORWARDED


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/%6coad_lora_adapter",
        b"/v1/Load_LoRA_Adapter",
        b"/v1//load_lora_adapter",
        b"/v1/load_lora_adapter/",
        b"/v1/load_lora_adapter;x=1",
        b"/v1/x/../load_lora_adapter",
        b"/v1/%2e/load_lora_adapter",
        b"/v1/models/../load_lora_adapter",
        b"/v1/x\\admin\\drain",
        b"/v1/x%2fadmin%2fdrain",
    ],
)
def test_spelling_it_otherwise_does_not_help(path: bytes) -> None:
    assert path not in FORWARDED


async def test_a_client_is_told_which_setting_decides_and_the_backend_hears_nothing(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(b'{"lora_name":"l","lora_path":"/"}', path=b"/v1/load_lora_adapter"))
    assert (answered.status, answered.error) == (404, b"path_not_forwarded")
    assert b"forward_paths" in answered.body
    assert (await proxy.ask(get(b"/v1/streams"))).status == 404
    assert backend.requests == []


async def test_a_path_that_is_listed_exactly_is_forwarded(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), forward_paths=(*DEFAULT, "/v1/load_lora_adapter"))
    assert (await proxy.ask(post(path=b"/v1/load_lora_adapter"))).status == 200
    assert (await proxy.ask(post(path=b"/v1/unload_lora_adapter"))).status == 404
    assert len(backend.requests) == 1
