"""A write that is repeated with its `Idempotency-Key` is done once, on both databases."""

from __future__ import annotations

import threading

import httpx
import pytest

from service.store.access import idempotency
from service.store.decided.decisions import read
from tests.approval.live import MODEL, LiveApi
from tests.patience import PATIENCE

ROLLBACK = "/api/v1/models/org/model/rollback"


def approval(tier: str) -> str:
    return f"/api/v1/models/org/model/tiers/{tier}/approval"


def two_rungs_up(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")
    for tier in ("w8a8", "w4a16"):
        assert api.client("approve").put(approval(tier), json={}).status_code == 200


def keyed(api: LiveApi, key: str, scope: str = "approve") -> httpx.Client:
    return api.client(scope, **{"Idempotency-Key": key})


def actions(api: LiveApi) -> list[str]:
    return [entry.action for entry in read(api.db, MODEL)]


def test_a_repeated_rollback_goes_down_one_rung_and_is_answered_alike(api: LiveApi) -> None:
    two_rungs_up(api)
    client = keyed(api, "a")
    first, second = client.post(ROLLBACK, json={}), client.post(ROLLBACK, json={})
    assert (first.status_code, first.json()["tier"]) == (200, "w8a8")
    assert second.content == first.content
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert second.headers["content-type"] == first.headers["content-type"]
    assert actions(api).count("roll_back") == 1
    assert keyed(api, "b").post(ROLLBACK, json={}).json()["tier"] == "bf16"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", ROLLBACK, '{"reason": "other"}'),
        ("POST", f"{ROLLBACK}?x=1", "{}"),
        ("PUT", approval("w8a8"), "{}"),
    ],
)
def test_another_request_under_the_same_key_is_refused(
    sqlite_api: LiveApi, method: str, path: str, body: str
) -> None:
    two_rungs_up(sqlite_api)
    client = keyed(sqlite_api, "a")
    assert client.post(ROLLBACK, content="{}", headers={"Content-Type": "application/json"}).is_success
    known = actions(sqlite_api)
    answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert actions(sqlite_api) == known


def test_keys_belong_to_their_caller(sqlite_api: LiveApi) -> None:
    two_rungs_up(sqlite_api)
    tiers = [
        keyed(sqlite_api, "a", scope).post(ROLLBACK, json={}).json()["tier"] for scope in ("approve", "admin")
    ]
    assert tiers == ["w8a8", "bf16"]


def test_a_refusal_is_not_kept(sqlite_api: LiveApi) -> None:
    client = keyed(sqlite_api, "a")
    assert client.put(approval("w8a8"), json={}).status_code == 409
    sqlite_api.accept("w8a8")
    assert client.put(approval("w8a8"), json={}).status_code == 200


def test_of_twins_at_once_one_is_done(api: LiveApi) -> None:
    two_rungs_up(api)
    answers: list[httpx.Response] = []
    clients = [keyed(api, "a") for _ in range(4)]
    threads = [
        threading.Thread(target=lambda c=client: answers.append(c.post(ROLLBACK, json={})))
        for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(answers) == 4
    assert {answer.status_code for answer in answers} <= {200, 409}
    refused = [answer for answer in answers if answer.status_code == 409]
    assert {answer.json()["code"] for answer in refused} <= {"idempotent_request_running"}
    assert all(answer.headers["retry-after"] == "1" for answer in refused)
    assert actions(api).count("roll_back") == 1


def test_a_request_whose_process_died_is_not_done_again(sqlite_api: LiveApi) -> None:
    two_rungs_up(sqlite_api)
    client, known = keyed(sqlite_api, "a"), actions(sqlite_api)
    first = client.post(ROLLBACK, json={})
    with sqlite_api.db.write() as connection:  # as if it had died before the answer was kept
        connection.execute(idempotency.writes.update().values(status=None, answer=None))
    assert client.post(ROLLBACK, json={}).json()["code"] == "idempotent_request_running"
    sqlite_api.clock.at += idempotency.RUNNING_SECONDS
    late = client.post(ROLLBACK, json={})
    assert first.is_success
    assert (late.status_code, late.json()["code"]) == (409, "idempotent_outcome_unknown")
    assert actions(sqlite_api) == [*known, "roll_back"]


def test_keys_are_forgotten_after_a_day(sqlite_api: LiveApi) -> None:
    two_rungs_up(sqlite_api)
    client = keyed(sqlite_api, "a")
    assert client.post(ROLLBACK, json={}).json()["tier"] == "w8a8"
    sqlite_api.clock.at += idempotency.KEPT_SECONDS + 1
    assert client.post(ROLLBACK, json={}).json()["tier"] == "bf16"
    with sqlite_api.db.read() as connection:
        assert len(connection.execute(idempotency.writes.select()).all()) == 1


@pytest.mark.parametrize("key", ["", "two words", "ä".encode().decode("latin-1"), "x" * 256])
def test_what_cannot_be_a_key_is_refused_before_anything_is_changed(sqlite_api: LiveApi, key: str) -> None:
    two_rungs_up(sqlite_api)
    headers = {"Idempotency-Key": key.encode("latin-1")}
    answer = sqlite_api.client("approve").post(ROLLBACK, json={}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_idempotency_key")
    assert "roll_back" not in actions(sqlite_api)


def test_two_keys_are_none(sqlite_api: LiveApi) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = sqlite_api.client("approve").post(ROLLBACK, json={}, headers=headers)
    assert answer.json()["code"] == "bad_idempotency_key"


def test_an_answer_too_long_to_be_kept_is_not_made_twice(sqlite_api: LiveApi) -> None:
    db = sqlite_api.db
    claimed = idempotency.claim(db, caller="ci", key="k", fingerprint="f", now=1.0)
    idempotency.settle(
        db,
        claimed.write_id,
        status=200,
        media_type="application/json",
        answer="x" * (idempotency.MOST_KEPT + 1),
    )
    again = idempotency.claim(db, caller="ci", key="k", fingerprint="f", now=2.0)
    assert again.standing is idempotency.Standing.UNKNOWN
