"""The typed client against the real API, and against what is not the API."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.client import connection
from service.client.connection import TiergateClient
from service.client.errors import AnswerUnreadable, ApiRefused, ApiUnreachable
from service.decision.policy import Gate
from service.decision.verdict import Decision, GateState
from tests.approval.live import ENOUGH, MODEL, LiveApi
from tests.listening import Door, listening


@contextmanager
def asking(api: LiveApi, scope: str | None = None) -> Iterator[TiergateClient]:
    with TiergateClient(api.url, None if scope is None else api.secrets[scope]) as client:
        yield client


@contextmanager
def answering(status: int, content_type: str, body: bytes) -> Iterator[str]:
    """A server that says the same to everybody."""

    class Answer(Door):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with listening(Answer) as url:
        yield url


def test_a_verdict_comes_back_as_the_value_it_was(sqlite_api: LiveApi) -> None:
    sqlite_api.record("w8a8", harm=1, clean=30)
    with asking(sqlite_api) as client:
        reading = client.verdict(MODEL, "w8a8")
    verdict = reading.verdict
    assert (verdict.model, verdict.tier, verdict.epoch) == (MODEL, "w8a8", "epoch-w8a8")
    assert (verdict.findings[0].n, verdict.findings[0].harm) == (31, 1)
    assert verdict.gates[Gate.SLO] is GateState.NOT_ASKED
    assert reading.document["findings"][0]["estimate"] == verdict.findings[0].estimate
    assert [criterion.margin for criterion in reading.criteria] == [0.2, 0.2]
    assert [criterion.margin for criterion in reading.production] == [0.01, 0.01]
    assert all(criterion.more_pairs for criterion in reading.production)


def test_the_whole_life_of_an_approval(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    with asking(sqlite_api, "approve") as client:
        assert client.verdict(MODEL, "w8a8").verdict.decision is Decision.ACCEPT
        change = client.approve(
            MODEL, "w8a8", artifact="sha256:" + "c" * 64, expires_in="30d", reason="weekly"
        )
        assert (change.changed, change.published, change.route.serving) == (True, True, "w8a8")
        ladder = client.ladder(MODEL)
        assert [(rung.state, rung.weight) for rung in ladder.rungs][1] == ("approved", 100)
        assert client.roll_back(MODEL, reason="pager").route.serving == "bf16"
        assert client.revoke(MODEL, "w8a8", reason="done").changed
        log = client.decisions(MODEL, limit=2)
        assert [entry["action"] for entry in log["entries"]] == ["approve", "promote"]
        assert client.decisions(MODEL, after=log["next_after"])["chain"] == "intact"
        assert client.ledger(MODEL)["balanced"] is True
        assert client.models()["models"][0]["model"] == MODEL
        assert client.evidence(MODEL, "w8a8", pairs=0)["tallies"][0]["n"] == ENOUGH


def test_an_override_goes_through_with_scope_admin(sqlite_api: LiveApi) -> None:
    with asking(sqlite_api, "admin") as client:
        change = client.approve(MODEL, "w8a8", override=True, reason="trial")
    assert change.document["approval"]["override"] is True


def test_a_refusal_carries_code_hint_and_the_verdict_s_reasons(shared_api: LiveApi) -> None:
    with asking(shared_api, "approve") as client, pytest.raises(ApiRefused) as refused:
        client.approve(MODEL, "w4a16")
    assert (refused.value.status, refused.value.code) == (409, "verdict_not_accept")
    assert any("min_pairs" in reason for reason in refused.value.reasons)
    assert "override" in refused.value.hint


@pytest.mark.parametrize(("model", "tier"), [("org/modle", "w8a8"), (MODEL, "w8a9"), ("../..", "%2e")])
def test_unknown_names_are_refused_by_the_api(shared_api: LiveApi, model: str, tier: str) -> None:
    with asking(shared_api) as client, pytest.raises(ApiRefused) as refused:
        client.verdict(model, tier)
    assert refused.value.status == 404


def test_a_wrong_token_is_refused(shared_api: LiveApi) -> None:
    with TiergateClient(shared_api.url, "tg_0_0") as client, pytest.raises(ApiRefused) as refused:
        client.models()
    assert refused.value.code == "unauthorized"


def test_nobody_there_is_unreachable_and_says_what_to_start(free_port: int) -> None:
    with TiergateClient(f"http://127.0.0.1:{free_port}") as client, pytest.raises(ApiUnreachable) as nobody:
        client.models()
    assert str(free_port) in str(nobody.value)
    assert "tiergate up" in nobody.value.hint


def test_an_api_that_hangs_is_unreachable() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with TiergateClient(url, timeout=0.2) as client, pytest.raises(ApiUnreachable, match="in time"):
            client.models()


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "text/html", b"<html>log in</html>"),
        (200, "application/json", b""),
        (200, "application/json", b"[]"),
        (200, "application/json", b"{"),
        (200, "application/json", b'{"model": NaN}'),
        (200, "application/json", b"\xff"),
        (200, "application/json", b"[" * 100_000),
        (200, "application/json", b'{"model": "m"}'),
        (200, "application/json", b'{"model": "m", "route": [], "rungs": 5}'),
        (302, "text/html", b""),
        (404, "text/html", b"nginx"),
        (500, "application/json", b'{"error": "boom"}'),
        (500, "application/problem+json", b'{"title": "no code", "status": 500}'),
        (500, "application/problem+json", b'{"code": 5}'),
    ],
)
def test_what_is_not_the_api_is_unreadable_not_a_crash(status: int, kind: str, body: bytes) -> None:
    with (
        answering(status, kind, body) as url,
        TiergateClient(url) as client,
        pytest.raises(AnswerUnreadable),
    ):
        client.ladder("m")


def test_an_endless_answer_is_given_up() -> None:
    with (
        answering(200, "application/json", b" " * (connection.MAX_ANSWER + 1)) as url,
        TiergateClient(url) as client,
        pytest.raises(AnswerUnreadable, match="more than"),
    ):
        client.models()


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8081", "ftp://host", "http://", "//host", "http:///path", "http://[", "http://h:99999"],
)
def test_what_is_no_url_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match="not an API URL"):
        TiergateClient(url)


@pytest.mark.parametrize("token", ["a b", "a\nb", "a\r\nX: y", "tökén", "\x00"])
def test_what_is_no_token_never_reaches_a_header(token: str) -> None:
    with pytest.raises(ValueError, match="the token"):
        TiergateClient("http://127.0.0.1:1", token)
