"""A token that is for some models alone learns nothing of others, by whatever path it asks."""

from __future__ import annotations

import httpx
import pytest

from service.store.access import tokens
from tests.approval.live import MODEL, LiveApi

VERDICT = f"/api/v1/models/{MODEL}/tiers/w8a8/verdict"


def restricted(api: LiveApi, *models: str, scope: str = "admin") -> tuple[str, httpx.Client]:
    name = f"{scope} for {' and '.join(models)}"
    with_secret = tokens.create(api.db, name=name, scopes=[scope], now=api.clock(), models=models)
    return with_secret, api.client(**{"Authorization": f"Bearer {with_secret}"})


def test_it_may_do_with_its_model_what_its_scope_allows(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    _, client = restricted(sqlite_api, MODEL, "other", scope="approve")
    assert client.get(VERDICT).json()["decision"] == "accept"
    assert client.put(f"/api/v1/models/{MODEL}/tiers/w8a8/approval", json={}).status_code == 200
    assert client.get(f"/gates/plain/models/{MODEL}/tiers/w8a8").status_code != 403


def test_no_operation_of_the_document_answers_it_about_another_model(sqlite_api: LiveApi) -> None:
    _, client = restricted(sqlite_api, "other")
    open_to_all = {"/healthz", "/readyz", "/gates/kayenta/credentials"}
    asked = 0
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            filled = path.format_map(Filled(model=MODEL, tier="w8a8"))
            answer = client.request(method, filled, json=None if method == "get" else {})
            if path not in open_to_all:
                assert not answer.is_success, f"{method} {path}: {answer.text}"
                asked += 1
    assert asked > 35


class Filled(dict[str, str]):
    """Parameters that no test cares for are `x`."""

    def __missing__(self, name: str) -> str:
        return "x"


@pytest.mark.parametrize("model", [MODEL, "nobody"])
def test_the_refusal_does_not_tell_whether_there_is_such_a_model(sqlite_api: LiveApi, model: str) -> None:
    _, client = restricted(sqlite_api, "other")
    answer = client.get(f"/api/v1/models/{model}/ladder")
    assert (answer.status_code, answer.json()["code"]) == (403, "model_not_allowed")
    assert "'w8a8'" not in answer.text


@pytest.mark.parametrize("path", ["/api/v1/models", "/api/v1/ledger", "/api/v1/decisions", "/metrics"])
def test_what_is_about_all_models_is_refused(sqlite_api: LiveApi, path: str) -> None:
    _, client = restricted(sqlite_api, MODEL)
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (403, "model_not_allowed")


def test_a_path_that_begins_with_the_name_of_its_model_is_not_enough(sqlite_api: LiveApi) -> None:
    _, client = restricted(sqlite_api, "org")
    assert client.get(VERDICT).json()["code"] == "model_not_allowed"


def test_what_tells_of_no_model_is_open_to_a_token_of_one(sqlite_api: LiveApi) -> None:
    """Orca asks for the accounts first, and Kayenta's judge is told everything that it judges."""
    _, client = restricted(sqlite_api, "other", scope="read")
    assert client.get("/gates/kayenta/credentials").status_code == 200
    metrics = {"canaryConfig": {"metrics": []}, "metricSetPairList": []}
    body = {**metrics, "scoreThresholds": {"pass": 90, "marginal": 75}}
    assert client.post("/gates/kayenta/judge", json=body).status_code == 200


def test_the_stock_gates_of_flagger_find_the_model_in_the_metadata(sqlite_api: LiveApi) -> None:
    for models, status in (((MODEL,), 409), (("other",), 403)):
        _, client = restricted(sqlite_api, *models, scope="read")
        body = {"name": "c", "namespace": "n", "metadata": {"model": MODEL, "tier": "w8a8"}}
        answer = client.post("/gates/flagger/rollback/check", json=body)
        assert answer.status_code == status, answer.text
        assert ("alone" in answer.text) == (status == 403)


def test_a_hook_that_shows_its_token_in_the_body_is_restricted_as_well(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    path = f"/gates/flagger/models/{MODEL}/tiers/w8a8/confirm-rollout"
    told = []
    for models in (("other",), (MODEL,)):
        secret, _ = restricted(sqlite_api, *models)
        hook = {"name": "c", "namespace": "n", "phase": "Progressing", "checksum": "1"}
        body = {**hook, "metadata": {"token": secret, "hook": "confirm-rollout"}}
        told.append(sqlite_api.client().post(path, json=body).text)
    assert "the token is for 'other' alone" in told[0]
    assert "alone" not in told[1]
