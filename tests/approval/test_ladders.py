"""Models and ladders; names with slashes; unknown names."""

from __future__ import annotations

import httpx
import pytest

from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi, Upstream, ladder_over, live_api


def test_every_model_is_listed_with_its_tiers_and_who_serves(sqlite_api: LiveApi) -> None:
    assert sqlite_api.client().get("/api/v1/models").json() == {
        "models": [
            {
                "model": "org/model",
                "baseline": "bf16",
                "tiers": ["bf16", "w8a8", "w4a16"],
                "serving": "bf16",
                "route_version": 0,
            }
        ]
    }


def test_a_ladder_shows_each_rung_with_its_state_and_share(api: LiveApi) -> None:
    api.accept("w8a8")
    api.client("approve").put("/api/v1/models/org/model/tiers/w8a8/approval", json={})
    ladder = api.client().get("/api/v1/models/org/model/ladder").json()
    rungs = [(rung["tier"], rung["rung"], rung["state"], rung["weight"]) for rung in ladder["rungs"]]
    assert rungs == [("bf16", 0, "baseline", 0), ("w8a8", 1, "approved", 100), ("w4a16", 2, "shadowing", 0)]
    assert ladder["rungs"][1]["approval"]["decision"] == "accept"
    assert ladder["rungs"][0]["decision"] is None
    assert ladder["rungs"][2]["summary"].startswith("undecided: ")


def test_no_answer_tells_where_backends_are_or_how_to_log_in_there(sqlite_api: LiveApi) -> None:
    text = sqlite_api.client().get("/api/v1/models/org/model/ladder").text
    assert sqlite_api.upstream.url not in text
    assert "sk-upstream" not in text


@pytest.mark.parametrize(
    "model",
    [
        "plain",
        "org/model",
        "a/b/c",
        "tiers/x/verdict",
        "ladder",
        "models/ladder",
        "ünïcode 模型",
        "with space",
        "percent%2Fencoded",
        "dot..dot",
        "a?b#c",
        "rollback",
        "q=1&b",
        "a+b:c@d",
        "-",
    ],
)
def test_any_name_of_a_model_works_in_a_path(
    sqlite_database: Database, captures: Captures, model: str
) -> None:
    from urllib.parse import quote

    upstream = Upstream()
    try:
        with live_api(sqlite_database, captures, ladder=ladder_over(upstream, model=model)) as api:
            place = f"/api/v1/models/{quote(model, safe='')}"
            client = api.client("admin")
            assert client.get(f"{place}/ladder").json()["model"] == model
            assert client.get(f"{place}/tiers/w8a8/verdict").json()["model"] == model
            assert client.get(f"{place}/decisions").json()["model"] == model
            assert client.get("/api/v1/ledger", params={"model": model}).json()["model"] == model
            override = {"override": True, "reason": "to test names"}
            assert client.put(f"{place}/tiers/w8a8/approval", json=override).json()["model"] == model
            assert client.post(f"{place}/rollback").json()["model"] == model
    finally:
        upstream.stop()


def test_slashes_need_no_encoding(sqlite_api: LiveApi) -> None:
    assert sqlite_api.client().get("/api/v1/models/org/model/ladder").status_code == 200


@pytest.mark.parametrize(
    ("path", "code", "hint"),
    [
        ("/api/v1/models/org/modle/ladder", "unknown_model", "did you mean 'org/model'?"),
        ("/api/v1/models/org/ladder", "unknown_model", "'org/model'"),
        ("/api/v1/models/%F0%9F%92%A9/ladder", "unknown_model", "known models: 'org/model'"),
        ("/api/v1/models/org/model/tiers/w8a9/verdict", "unknown_tier", "did you mean 'w8a8'?"),
        ("/api/v1/models/org/model/tiers/zzz/evidence", "unknown_tier", "'bf16', 'w8a8', 'w4a16'"),
        ("/api/v1/models/nope/tiers/w8a8/verdict", "unknown_model", ""),
        ("/api/v1/models/nope/decisions", "unknown_model", ""),
        ("/api/v1/ledger?model=nope", "unknown_model", ""),
    ],
)
def test_an_unknown_name_is_404_and_names_the_nearest(
    sqlite_api: LiveApi, path: str, code: str, hint: str
) -> None:
    answer = sqlite_api.client().get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, code)
    assert hint in answer.json()["hint"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1",
        "/api/v1/",
        "/api/v1/models/",
        "/api/v1/models/org/model",
        "/api/v1/models/org/model/ladder/",
        "/api/v2/models",
        "/api/v1/models/org/model/tiers/w8a8",
        "/favicon.ico",
        "/redoc",
        "/docs/oauth2-redirect",
        "/" + "a" * 5000,
        "/..%2f..%2fetc/passwd",
    ],
)
def test_other_paths_are_404_without_a_redirect(sqlite_api: LiveApi, path: str) -> None:
    answer: httpx.Response = sqlite_api.client().get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert len(answer.text) < 600


def test_a_long_name_is_not_repeated_at_length(sqlite_api: LiveApi) -> None:
    answer = sqlite_api.client().get(f"/api/v1/models/{'x' * 10_000}/ladder")
    assert answer.status_code == 404
    assert len(answer.text) < 600
