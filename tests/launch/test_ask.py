from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from service.engines.facts import EngineFacts
from service.fleet import Backend, BackendTls
from service.launch.ask import Answered, Unusable, ask_all
from tests.authority import Authority
from tests.engines.test_pages import (
    LLAMA_CPP,
    LLAMA_CPP_FACTS,
    SGLANG,
    SGLANG_FACTS,
    vllm_facts,
    vllm_metrics,
)
from tests.launch.conftest import Pages, models_page, serving
from tests.ports import free_port
from tests.workers.scripted import Reply, ScriptedBackend

VLLM: Pages = {
    "/health": (200, ""),
    "/v1/models": (200, models_page("qwen")),
    "/version": (200, '{"version":"0.32.0"}'),
    "/metrics": (200, vllm_metrics("fp8_e5m2", 93184)),
}


def ask(backend: Backend) -> Answered | Unusable:
    return ask_all([backend])[backend]


def refusal(backend: Backend) -> str:
    answer = ask(backend)
    assert isinstance(answer, Unusable), answer
    return str(answer)


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ((200, "vllm:kv_cache_usage_perc 0.0\n"), True),
        ((200, "llamacpp:requests_processing 0\n"), False),
        ((404, "vllm:kv_cache_usage_perc 0.0\n"), False),
    ],
)
def test_a_guarded_backend_is_asked_whether_it_tells_its_cache(metrics: tuple[int, str], told: bool) -> None:
    with serving({**VLLM, "/metrics": metrics}) as url:
        backend = Backend(url=url)
        guarded, plain = ask_all([backend], [backend])[backend], ask(backend)
    assert isinstance(guarded, Answered)
    assert isinstance(plain, Answered)
    assert (guarded.tells_kv, plain.tells_kv) == (told, None)


@pytest.mark.parametrize(
    ("pages", "engine"),
    [
        (VLLM, vllm_facts("fp8_e5m2", 93184)),
        (
            {"/v1/models": (200, models_page("qwen")), "/server_info": (200, SGLANG)},
            SGLANG_FACTS,
        ),
        (
            {"/v1/models": (200, models_page("qwen")), "/get_server_info": (200, SGLANG)},
            SGLANG_FACTS,
        ),
        (
            {"/health": (200, "{}"), "/v1/models": (200, models_page("qwen")), "/props": (200, LLAMA_CPP)},
            LLAMA_CPP_FACTS,
        ),
        ({"/v1/models": (200, models_page("qwen"))}, None),
    ],
)
def test_each_engine_is_known_by_its_own_pages(pages: Pages, engine: EngineFacts | None) -> None:
    with serving(pages) as url:
        assert ask(Backend(url=url)) == Answered(models={"qwen": None}, engine=engine)


def test_the_longest_context_is_the_models_own() -> None:
    listing = '{"data": [{"id": "qwen", "max_model_len": 32768}, {"id": "other"}]}'
    with serving({**VLLM, "/v1/models": (200, listing)}) as url:
        answer = ask(Backend(url=url))
    assert isinstance(answer, Answered)
    told = [answer.engine_of(model) for model in ("qwen", "other")]
    assert [engine and engine.max_model_len for engine in told] == [32768, None]


def test_all_backends_are_asked_once_each_and_answer_for_themselves() -> None:
    with serving(VLLM) as well, serving({"/health": (503, "")}) as loading:
        backends = [Backend(url=well), Backend(url=loading), Backend(url=well)]
        answers = ask_all(backends)
    assert len(answers) == 2
    assert isinstance(answers[backends[0]], Answered)
    assert isinstance(answers[backends[1]], Unusable)


def test_nobody_there_says_to_start_it() -> None:
    assert "cannot be reached" in refusal(Backend(url=f"http://127.0.0.1:{free_port()}"))


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ({"/health": (503, "")}, "is not well: GET /health answers 503"),
        ({}, "answers GET /v1/models with 404"),
        ({"/v1/models": (200, "<html>")}, "no list of models"),
        ({"/v1/models": (200, '{"data": {}}')}, "no list of models"),
    ],
)
def test_a_server_that_cannot_serve_says_what_it_answered(
    pages: Mapping[str, tuple[int, str]], message: str
) -> None:
    with serving(pages) as url:
        assert message in refusal(Backend(url=url))


def test_the_key_is_sent_and_its_refusal_told() -> None:
    with serving({**VLLM, "/health": (404, "")}, api_key="right") as url:
        assert isinstance(ask(Backend(url=url, api_key="right")), Answered)
        assert "refuses the API key (401)" in refusal(Backend(url=url, api_key="wrong"))


def test_https_where_http_is_spoken_is_told_so() -> None:
    with serving(VLLM) as url:
        assert "SSL" in refusal(Backend(url=url.replace("http://", "https://")))


def test_a_server_that_accepts_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "does not answer GET /health within" in refusal(Backend(url=url))


def test_a_page_without_end_is_read_no_further_than_needed() -> None:
    with serving({**VLLM, "/metrics": (200, vllm_metrics("auto", 1) + "x" * 8_000_000)}) as url:
        answer = ask(Backend(url=url))
    assert isinstance(answer, Answered)
    assert answer.engine is not None


def test_it_asks_as_the_proxy_does_by_tls_with_the_backends_headers(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with serving(VLLM, tenant="gold", tls=authority.issue("gpu").server_context()) as url:
        trust = BackendTls(ca=authority.text)
        answer = ask(Backend(url=url, headers=(("x-tenant", "gold"),), tls=trust))
        assert isinstance(answer, Answered)
        assert "asks who we are (403): give it api_key_file, api_key_env or headers" in refusal(
            Backend(url=url, tls=trust)
        )
        silver = Backend(url=url, headers=(("x-tenant", "silver"),), tls=trust)
        assert "refuses the headers (403)" in refusal(silver)
        assert "refuses the API key or the headers (403)" in refusal(replace(silver, api_key="k"))
        assert "name its authority in ca_file" in refusal(Backend(url=url))


def test_it_asks_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "gpu.sock"
    with ScriptedBackend(lambda asked: Reply(status=404), socket=path) as server:
        assert "answers GET /v1/models with 404" in refusal(Backend(url=f"unix:{path}"))
    assert [asked.headers["host"] for asked in server.asked] == ["localhost"] * 2
    assert "cannot be reached" in refusal(Backend(url=f"unix:{tmp_path}/nobody.sock"))
