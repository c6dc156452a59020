"""One question to a tier, over real connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Outcome
from service.fleet import Backend, BackendTls
from tests.authority import Authority
from tests.workers.scripted import Reply, Script, ScriptedBackend
from workers.backends import Limits, Shadow

Backends = Callable[[Script], ScriptedBackend]
PATH = "/v1/chat/completions"
BODY = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'


def put(limits: Limits, *backends: Backend, times: int = 1) -> list[Outcome]:
    async def go() -> list[Outcome]:
        shadow = Shadow(limits)
        try:
            return list(
                await asyncio.gather(*(shadow.put(backends, PATH, BODY, stream=False) for _ in range(times)))
            )
        finally:
            await shadow.aclose()

    return asyncio.run(go())


def test_an_answer_comes_back_read(backend: Backends) -> None:
    server = backend(lambda asked: Reply(text="Fine."))
    [outcome] = put(Limits(), Backend(url=server.url))
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.completion_tokens) == ("Fine.", 5)


@pytest.mark.parametrize(
    ("reply", "kind", "tries"),
    [
        (Reply(status=503), FaultKind.OVERLOADED, 4),
        (Reply(status=429), FaultKind.OVERLOADED, 4),
        (Reply(wait=30), FaultKind.TIMEOUT, 4),
        (Reply(status=401), FaultKind.UNREACHABLE, 4),  # our key is wrong, which is no fault of the tier
        (Reply(status=404), FaultKind.UNREACHABLE, 4),
        (Reply(status=500), FaultKind.SERVER_ERROR, 1),
        (Reply(status=400), FaultKind.REJECTED, 1),
        (Reply(hang_up=True), FaultKind.CUT_OFF, 1),
        (Reply(text="Fine.", cut_off=True), FaultKind.CUT_OFF, 1),
    ],
)
def test_faults_of_the_infrastructure_are_retried_three_times_and_others_are_answers(
    reply: Reply, kind: FaultKind, tries: int, backend: Backends
) -> None:
    server = backend(lambda asked: reply)
    [outcome] = put(Limits(timeout_seconds=0.2, pause_seconds=0.001), Backend(url=server.url))
    assert isinstance(outcome, Fault)
    assert outcome.kind is kind
    assert len(server.asked) == tries


def test_a_retry_that_succeeds_is_the_outcome(backend: Backends) -> None:
    replies = [Reply(status=503), Reply(wait=30), Reply(text="Fine.")]
    server = backend(lambda asked: replies.pop(0))
    [outcome] = put(Limits(timeout_seconds=0.3, pause_seconds=0.001), Backend(url=server.url))
    assert isinstance(outcome, Answer)


def test_nobody_listening_is_unreachable() -> None:
    [outcome] = put(Limits(pause_seconds=0.001), Backend(url="http://127.0.0.1:9"))
    assert isinstance(outcome, Fault)
    assert outcome.kind is FaultKind.UNREACHABLE


def test_every_try_has_an_id_of_its_own(backend: Backends) -> None:
    server = backend(lambda asked: Reply(status=503))
    put(Limits(pause_seconds=0.001), Backend(url=server.url))
    assert len({asked.headers["x-request-id"] for asked in server.asked}) == 4


def test_an_answer_that_is_too_long_is_the_tiers_fault(backend: Backends) -> None:
    server = backend(lambda asked: Reply(text="x" * 5000))
    [outcome] = put(Limits(max_answer=4000), Backend(url=server.url))
    assert isinstance(outcome, Fault)
    assert not outcome.of_infrastructure
    assert "longer than 4000 bytes" in outcome.detail


def test_questions_go_to_the_backend_with_the_fewest_outstanding(backend: Backends) -> None:
    one, other = backend(lambda asked: Reply(wait=0.3)), backend(lambda asked: Reply(wait=0.3))
    put(Limits(), Backend(url=one.url), Backend(url=other.url), times=6)
    assert (len(one.asked), len(other.asked)) == (3, 3)


@pytest.mark.parametrize(("declared", "most"), [(None, 3), (2, 2), (9, 3)])
def test_no_backend_gets_more_at_once_than_it_takes(
    declared: int | None, most: int, backend: Backends
) -> None:
    server = backend(lambda asked: Reply(text="a", wait=0.1))
    outcomes = put(Limits(concurrency=3), Backend(url=server.url, max_concurrency=declared), times=12)
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    assert server.most_at_once == most


def test_asking_nobody_is_an_error_of_ours() -> None:
    with pytest.raises(ValueError, match="no backend"):
        put(Limits())


def test_a_redirect_is_not_followed(backend: Backends) -> None:
    server = backend(lambda asked: Reply(status=307))
    [outcome] = put(Limits(), Backend(url=server.url))
    assert isinstance(outcome, Fault)
    assert outcome.kind is FaultKind.UNREADABLE
    assert len(server.asked) == 1


def fine(**where: Any) -> ScriptedBackend:
    return ScriptedBackend(lambda asked: Reply(text="Fine."), **where)


def test_a_replay_verifies_a_backend_as_the_proxy_does(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with fine(tls=authority.issue("gpu").server_context()) as server:
        trusted = Backend(url=server.url, tls=BackendTls(ca=authority.text))
        assert isinstance(put(Limits(), trusted)[0], Answer)
        skipping = Backend(url=server.url, tls=BackendTls(insecure_skip_verify=True))
        assert isinstance(put(Limits(), skipping)[0], Answer)
        [outcome] = put(Limits(retries=0), Backend(url=server.url))
        assert isinstance(outcome, Fault)
        assert outcome.kind is FaultKind.UNREACHABLE
        assert len(server.asked) == 2


def test_a_replay_shows_our_certificate_to_a_backend_that_asks_for_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.issue("gpu").server_context()
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue("worker")
    with fine(tls=context) as server:
        known = BackendTls(ca=authority.text, certificate=mine.text, key=mine.key_text)
        assert isinstance(put(Limits(), Backend(url=server.url, tls=known))[0], Answer)
        unknown = Backend(url=server.url, tls=BackendTls(ca=authority.text))
        assert isinstance(put(Limits(retries=0), unknown)[0], Fault)


def test_a_replay_reaches_a_unix_socket_and_carries_the_backends_headers(tmp_path: Path) -> None:
    with fine(socket=tmp_path / "gpu.sock") as server:
        backend = Backend(
            url=server.url, api_key="k", headers=(("X-Tenant", "gold"), ("User-Agent", "gateway"))
        )
        assert isinstance(put(Limits(), backend)[0], Answer)
        [asked] = server.asked
    assert (asked.headers["x-tenant"], asked.headers["user-agent"]) == ("gold", "gateway")
    assert asked.headers["authorization"] == "Bearer k"
    assert asked.headers["host"] == "localhost"
    assert asked.headers["x-tiergate-replay"] == "1"
    assert asked.path == PATH
