"""The door against hostile callers, over real sockets."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.store.access import tokens
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi, live_api

MODELS = "/api/v1/models"
APPROVAL = "/api/v1/models/org/model/tiers/w8a8/approval"
ROLLBACK = "/api/v1/models/org/model/rollback"
WRITES = [("PUT", APPROVAL), ("DELETE", APPROVAL), ("POST", ROLLBACK)]
READS = [MODELS, "/api/v1/ledger", "/metrics", "/api/v1/models/org/model/ladder"]


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("path", READS)
def test_this_machine_reads_without_a_token(shared_api: LiveApi, path: str) -> None:
    assert shared_api.client().get(path).status_code == 200


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_nobody_writes_without_a_token_not_even_this_machine(
    shared_api: LiveApi, method: str, path: str
) -> None:
    answer = shared_api.client().request(method, path)
    assert code(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_token_that_reads_does_not_write(shared_api: LiveApi, method: str, path: str) -> None:
    answer = shared_api.client("read").request(method, path)
    assert code(answer) == (403, "insufficient_scope")


@pytest.mark.parametrize("path", READS)
def test_where_loopback_is_not_exempt_reading_needs_a_token(
    sqlite_database: Database, captures: Captures, path: str
) -> None:
    with live_api(sqlite_database, captures, loopback_reads=False) as api:
        assert code(api.client().get(path)) == (401, "unauthorized")
        assert api.client("read").get(path).status_code == 200


def test_a_forwarded_request_needs_a_token(shared_api: LiveApi) -> None:
    answer = shared_api.client(**{"X-Forwarded-For": "127.0.0.1"}).get(MODELS)
    assert code(answer) == (401, "unauthorized")


def test_whoever_comes_by_the_name_that_others_know_needs_a_token(
    sqlite_database: Database, captures: Captures
) -> None:
    """A reverse proxy on this machine that passes Host on, and says nowhere that it forwards."""
    hosts = ("127.0.0.1", "tiergate.example")
    with live_api(sqlite_database, captures, allowed_hosts=hosts) as api:
        assert code(api.client(Host="tiergate.example").get(MODELS)) == (401, "unauthorized")
        assert api.client("read", Host="tiergate.example").get(MODELS).status_code == 200
        assert api.client().get(MODELS).status_code == 200


@pytest.mark.parametrize(
    "secret",
    [
        "tg",
        "tg__",
        "tg_abc_def",
        "tg_000000000000_" + "A" * 43,
        "%00",
        "'",
        "' OR 1=1 --",
        "x" * 900,
        "_" * 50,
    ],
)
def test_a_wrong_token_is_refused_even_where_none_is_needed(shared_api: LiveApi, secret: str) -> None:
    answer = shared_api.client(Authorization=f"Bearer {secret}").get(MODELS)
    assert code(answer) == (401, "unauthorized")
    assert secret not in answer.text


def test_the_right_id_with_the_wrong_secret_is_refused(shared_api: LiveApi) -> None:
    right = shared_api.secrets["admin"]
    for wrong in (right[:-1], right + "A", right[:-1] + ("A" if right[-1] != "A" else "B"), right.swapcase()):
        answer = shared_api.client(Authorization=f"Bearer {wrong}").put(APPROVAL, json={})
        assert code(answer) == (401, "unauthorized")


def test_revoked_and_expired_tokens_are_refused_at_once(api: LiveApi) -> None:
    short = tokens.create(
        api.db, name="short", scopes=["admin"], now=api.clock(), expires_at=api.clock() + 60
    )
    client = api.client(Authorization=f"Bearer {short}")
    assert client.get(MODELS).status_code == 200
    api.clock.at += 61
    assert code(client.get(MODELS)) == (401, "unauthorized")
    assert tokens.revoke(api.db, "test-admin", now=api.clock())
    assert code(api.client("admin").get(MODELS)) == (401, "unauthorized")


def test_a_browser_reads_with_its_token_as_password_and_cannot_write_so(shared_api: LiveApi) -> None:
    basic = "Basic " + base64.b64encode(f"me:{shared_api.secrets['admin']}".encode()).decode()
    client = shared_api.client(Authorization=basic)
    assert client.get(MODELS).status_code == 200
    assert code(client.put(APPROVAL, json={})) == (401, "unauthorized")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8081", "127.0.0.1.nip.io", "[::2]:80", "*"])
def test_a_rebound_name_neither_reads_nor_writes(shared_api: LiveApi, host: str) -> None:
    assert code(shared_api.client(Host=host).get(MODELS)) == (403, "host_not_allowed")
    assert code(shared_api.client("admin", Host=host).put(APPROVAL, json={})) == (403, "host_not_allowed")


def test_a_program_with_a_token_may_read_under_any_name(shared_api: LiveApi) -> None:
    """Prometheus scrapes an address that no configuration knows; its token is not ambient authority."""
    assert shared_api.client("read", Host="10.1.2.3:8081").get("/metrics").status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_page_elsewhere_does_not_write(shared_api: LiveApi, method: str, path: str, origin: str) -> None:
    answer = shared_api.client("admin", Origin=origin).request(method, path)
    assert code(answer) == (403, "origin_not_allowed")


def test_our_own_page_and_configured_pages_may_write(sqlite_database: Database, captures: Captures) -> None:
    with live_api(sqlite_database, captures, allowed_origins=("https://ops.example",)) as api:
        for origin in (api.url, "https://ops.example"):
            answer = api.client("approve", Origin=origin).post(ROLLBACK)
            assert code(answer) == (409, "nothing_below")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
def test_what_tells_nothing_of_the_models_is_open_under_any_name(shared_api: LiveApi, path: str) -> None:
    assert shared_api.client(Host="10.1.2.3").get(path).status_code == 200


def test_two_host_headers_are_refused(shared_api: LiveApi) -> None:
    answer = shared_api.raw(
        b"GET /api/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /api/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nA : b\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /api/v1/models\r\n\r\n",
    ],
)
def test_a_head_that_is_no_head_is_answered_400_and_closed(shared_api: LiveApi, head: bytes) -> None:
    assert shared_api.raw(head).startswith(b"HTTP/1.1 400 ")
    assert shared_api.client().get("/healthz").status_code == 200


@pytest.mark.parametrize("endless", [b"GET /", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_a_head_without_end_is_cut_off(shared_api: LiveApi, endless: bytes) -> None:
    answer = shared_api.raw(endless + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n")
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    assert shared_api.client().get("/healthz").status_code == 200


def test_a_header_cannot_be_injected_into_an_answer(shared_api: LiveApi) -> None:
    answer = shared_api.raw(
        b"GET /api/v1/models/x%0d%0aSet-Cookie:%20a=b/ladder HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Connection: close\r\n\r\n"
    )
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    assert b"set-cookie" not in head.lower()
    assert b"\r" not in body
    assert b"\n" not in body


def test_a_body_beyond_the_bound_is_refused_by_its_declared_length(shared_api: LiveApi) -> None:
    answer = shared_api.client("approve").put(APPROVAL, content=b"{" + b" " * 70_000)
    assert code(answer) == (413, "body_too_large")


def test_a_chunked_body_beyond_the_bound_is_refused_while_it_arrives(shared_api: LiveApi) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(70):
            yield b" " * 1024

    answer = shared_api.client("approve").put(APPROVAL, content=chunks())
    assert code(answer) == (413, "body_too_large")


def test_a_body_that_trickles_is_given_up(sqlite_database: Database, captures: Captures) -> None:
    with live_api(sqlite_database, captures, body_seconds=0.3) as api:
        answer = api.raw(
            b"PUT " + APPROVAL.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n"
            b"Authorization: Bearer " + api.secrets["approve"].encode() + b"\r\n"
            b"Content-Type: application/json\r\nConnection: close\r\n\r\n{"
        )
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"body_too_slow" in answer


def test_a_caller_who_hangs_up_in_the_middle_leaves_nothing_behind(shared_api: LiveApi) -> None:
    host, port = shared_api.url.removeprefix("http://").split(":")
    for _ in range(5):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(
                b"PUT " + APPROVAL.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n"
                b"Authorization: Bearer " + shared_api.secrets["admin"].encode() + b"\r\n\r\n{"
            )
    assert shared_api.client().get("/api/v1/models/org/model/decisions").json()["entries"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"1",
        b'"text"',
        b"[" * 60_000,
        b'{"override": "yes"}',
        b'{"override": 1}',
        b'{"artifact": "abc"}',
        b'{"artifact": 5}',
        b'{"expires_in": 0}',
        b'{"expires_in": -1}',
        b'{"expires_in": NaN}',
        b'{"expires_in": 1e99}',
        b'{"expires_in": 1.5}',
        b'{"expires_in": "soon"}',
        b'{"expires_in": "999999999w"}',
        b'{"expires_in": {"days": 1}}',
        b'{"reason": ""}',
        b'{"reason": "   "}',
        b'{"unknown": 1}',
        b'{"reason": "' + b"a" * 3000 + b'"}',
    ],
)
def test_a_body_that_is_not_what_it_should_be_is_refused_clearly(shared_api: LiveApi, body: bytes) -> None:
    answer = shared_api.client("approve", **{"Content-Type": "application/json"}).put(APPROVAL, content=body)
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("invalid_json", "invalid_request")
    assert len(answer.text) < 2000
    assert shared_api.client().get("/api/v1/models/org/model/decisions").json()["entries"] == []


def test_a_field_of_several_forms_is_complained_of_once_by_its_own_name(shared_api: LiveApi) -> None:
    client = shared_api.client("approve", **{"Content-Type": "application/json"})
    message = client.put(APPROVAL, content=b'{"expires_in": "soon", "x": 1}').json()["detail"]
    assert [part.partition(":")[0] for part in message.split("; ")] == ["expires_in", "x"]
    assert "valid integer, or " in message


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_could_send_is_not_taken_for_json(shared_api: LiveApi, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = shared_api.client("approve", **headers).put(APPROVAL, content=b"{}")
    assert code(answer) == (415, "not_json")


def test_every_answer_forbids_framing_sniffing_and_caching(shared_api: LiveApi) -> None:
    client = shared_api.client()
    for path in (MODELS, "/nothing", "/docs", "/healthz"):
        headers = client.get(path).headers
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("method", ["OPTIONS", "PATCH", "HEAD", "TRACE"])
def test_other_methods_are_refused_in_the_same_shape(shared_api: LiveApi, method: str) -> None:
    answer = shared_api.client("admin").request(method, MODELS)
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]


def test_without_its_database_it_says_503_and_keeps_its_secrets(
    sqlite_database: Database, captures: Captures, sqlite_url: str
) -> None:
    from pathlib import Path

    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with live_api(sqlite_database, captures) as api:
        client = api.client("read")
        assert client.get(MODELS).status_code == 200
        sqlite_database.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(b"this is no database" * 500)
        answer = client.get(MODELS)
        assert code(answer) == (503, "store_down")
        assert str(path) not in answer.text
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["database"]) == (503, "unusable")
        assert client.get("/healthz").status_code == 200
        assert "tiergate_api_database_up 0.0" in api.client().get("/metrics").text


def test_an_error_of_our_own_is_500_in_the_same_shape_and_tells_nothing(
    sqlite_database: Database, captures: Captures, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(request: Request) -> Response:
        raise RuntimeError("secret detail")

    with live_api(sqlite_database, captures, pages=[Route("/broken", broken)]) as api:
        answer = api.client().get("/broken")
        assert code(answer) == (500, "internal_error")
        assert "secret detail" not in answer.text
        assert answer.headers["x-frame-options"] == "DENY"
        assert 'operation="broken",status="500"' in api.client().get("/metrics").text
    assert "secret detail" in caplog.text


def test_many_callers_at_once_are_all_answered(shared_api: LiveApi) -> None:
    with ThreadPoolExecutor(16) as pool:
        client = shared_api.client("read")
        statuses = list(pool.map(lambda _: client.get(MODELS).status_code, range(100)))
    assert statuses == [200] * 100


def test_json_never_repeats_a_token(shared_api: LiveApi) -> None:
    secret = shared_api.secrets["admin"]
    client = shared_api.client("admin")
    for answer in (client.get(MODELS), client.get("/nothing"), client.put(APPROVAL, json={"x": secret})):
        assert secret not in answer.text
        json.loads(answer.text)
