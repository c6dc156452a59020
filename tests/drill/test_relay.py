"""The arms as real servers in front of a real backend."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.demo.prompt import Kind, Prompt
from service.drill.arms import FIRST, Arm
from service.drill.defects import Defect
from service.drill.prompts import prompts_of
from service.drill.relay import Relay, Upstream
from service.fleet import Backend
from tests.acceptance.conftest import MODEL
from tests.drill.conftest import Scripted
from tests.workers.scripted import Reply, ScriptedBackend

HEALTHY = Arm(name="healthy", begins=FIRST)
SECOND_ANSWER = Arm(name="second")
BROKEN = {defect: Arm(name=defect.value, defects=frozenset({defect})) for defect in Defect}
ARMS = (HEALTHY, SECOND_ANSWER, *BROKEN.values())


@contextmanager
def relaying(backend: Scripted, directory: Path, **changed: Any) -> Iterator[Relay]:
    told: dict[str, Any] = {"backends": (Backend(url=backend.url),), "model": MODEL, "timeout_seconds": 20}
    upstream = Upstream(**told | {"concurrency": 4, "tokens": None} | changed)
    with Relay(ARMS, upstream, directory, share=1.0, seed=1) as relay:
        yield relay


def ask(relay: Relay, arm: Arm, prompt: Prompt) -> httpx.Response:
    transport = httpx.HTTPTransport(uds=str(relay.sockets[arm.name]))
    with httpx.Client(transport=transport, base_url="http://localhost", timeout=30) as client:
        return client.post("/v1/chat/completions", json=prompt.body(f"drill-{arm.name}"))


def some(kind: Kind, count: int) -> list[Prompt]:
    return list(islice(prompts_of(kind, seed=1, min_context_chars=200, facts=2), count))


def test_an_undamaged_arm_is_the_backend_byte_for_byte(backend: Scripted, tmp_path: Path) -> None:
    with relaying(backend, tmp_path) as relay:
        for kind in Kind:
            for prompt in some(kind, 2):
                answer = ask(relay, HEALTHY, prompt)
                own = httpx.post(f"{backend.url}/v1/chat/completions", json=prompt.body(MODEL))
                assert answer.content == own.content
                assert answer.headers["content-type"] == own.headers["content-type"]
        assert relay.planted.total() == 0


def test_each_defect_damages_the_answers_in_which_it_shows(backend: Scripted, tmp_path: Path) -> None:
    shows = {Kind.EXTRACTION: {Defect.JSON}, Kind.NOTES: {Defect.REFUSAL}, Kind.QUESTION: {Defect.REFUSAL}}
    with relaying(backend, tmp_path) as relay:
        for kind, damaging in shows.items():
            for prompt in some(kind, 2):
                healthy = ask(relay, HEALTHY, prompt)
                answers = {defect: ask(relay, arm, prompt) for defect, arm in BROKEN.items()}
                differing = {defect for defect, answer in answers.items() if answer.text != healthy.text}
                assert differing == damaging, (kind, prompt.stream)


def test_however_many_arms_ask_the_backend_is_asked_twice(backend: Scripted, tmp_path: Path) -> None:
    prompt = some(Kind.QUESTION, 1)[0]
    before = backend.seen()
    with relaying(backend, tmp_path) as relay:
        for arm in (*ARMS, *ARMS, HEALTHY):
            assert ask(relay, arm, prompt).status_code == 200
        assert relay.asked == 2
        assert relay.spent == 2 * 20, "as the backend says"
    seen = backend.seen()
    assert seen["replays"] - before.get("replays", 0) == 2, "marked as shadow traffic"
    assert seen.get("live", 0) == before.get("live", 0)


def test_what_a_backend_failed_to_answer_is_asked_again(backend: Scripted, tmp_path: Path) -> None:
    prompt = some(Kind.QUESTION, 1)[0]
    with relaying(backend, tmp_path) as relay:
        backend.script(mode="error")
        assert ask(relay, SECOND_ANSWER, prompt).status_code == 500
        assert "answers 500" in relay.failures[0]
        backend.script(mode="ok")
        assert ask(relay, SECOND_ANSWER, prompt).status_code == 200


def test_a_backend_that_is_away_is_a_503_and_told(backend: Scripted, tmp_path: Path, free_port: int) -> None:
    away = (Backend(url=f"http://127.0.0.1:{free_port}"),)
    with relaying(backend, tmp_path, backends=away) as relay:
        assert ask(relay, HEALTHY, some(Kind.QUESTION, 1)[0]).status_code == 503
        assert "ConnectError" in relay.failures[0]


def test_no_more_tokens_are_spent_than_allowed(backend: Scripted, tmp_path: Path) -> None:
    with relaying(backend, tmp_path, tokens=40) as relay:
        unstreamed = some(Kind.EXTRACTION, 8)[::2]
        statuses = [ask(relay, HEALTHY, prompt).status_code for prompt in unstreamed]
        assert statuses == [200, 200, 503, 503], "the backend says 20 tokens each"
        assert (relay.asked, relay.spent, relay.is_spent) == (2, 40, True)


@pytest.mark.parametrize("claimed", [math.inf, math.nan, -100_000, 10_000_001])
def test_a_claim_of_tokens_that_cannot_be_is_counted_by_length(claimed: Any, tmp_path: Path) -> None:
    """Nor is it an error of the drill: the answer goes on as it is."""
    prompt = next(each for each in some(Kind.QUESTION, 2) if not each.stream)
    with ScriptedBackend(lambda asked: Reply(text="Yes.", completion_tokens=claimed)) as backend:
        with relaying(Scripted(backend.url), tmp_path) as relay:
            assert ask(relay, HEALTHY, prompt).status_code == 200
        assert prompt.max_tokens < relay.spent < 1000


@pytest.mark.parametrize("arm", [HEALTHY, BROKEN[Defect.JSON]])
def test_an_arm_looks_like_a_server(backend: Scripted, tmp_path: Path, arm: Arm) -> None:
    with relaying(backend, tmp_path) as relay:
        transport = httpx.HTTPTransport(uds=str(relay.sockets[arm.name]))
        with httpx.Client(transport=transport, base_url="http://localhost") as client:
            assert client.get("/health").status_code == 200
            assert client.get("/v1/models").json()["data"][0]["id"] == MODEL
