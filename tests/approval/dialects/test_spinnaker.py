"""Spinnaker's webhook stage as it is known to behave, against the example that we ship."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.dialects.orca_webhook import RUNNING, SUCCEEDED, TERMINAL, create, monitor
from tests.approval.live import LiveApi, live_api

EXAMPLE = Path(__file__).parents[3] / "deploy" / "examples" / "spinnaker" / "stage.json"
PATH = "/gates/spinnaker/models/org/model/tiers/w8a8"
APPROVAL = "/api/v1/models/org/model/tiers/w8a8/approval"
ARTIFACT = "ab" * 32


@pytest.fixture
def api(sqlite_api: LiveApi) -> LiveApi:
    """What a gate says does not depend on the database."""
    return sqlite_api


def stage_of(api: LiveApi, *, artifact: str = ARTIFACT, **changes: Any) -> dict[str, Any]:
    stage = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    headers = {"Authorization": f"Bearer {api.secrets['read']}"}
    return {**stage, "url": f"{api.url}{PATH}?artifact={artifact}", "customHeaders": headers, **changes}


def approve(api: LiveApi) -> None:
    assert api.client("approve").put(APPROVAL, json={"artifact": ARTIFACT}).status_code == 200


WAYS = [
    {"method": "GET"},
    {"method": "POST"},
    {"method": "POST", "statusUrlResolution": "locationHeader"},
    {"method": "POST", "statusUrlResolution": "webhookResponse", "statusUrlJsonPath": "$.status_url"},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()).replace("$.", ""))
def test_a_stage_waits_for_the_approval_whichever_way_it_polls(api: LiveApi, way: dict[str, str]) -> None:
    api.accept("w8a8")
    client, stage = api.client(), stage_of(api, **way)
    status, url = create(stage, client)
    assert status == SUCCEEDED
    assert url is not None
    assert monitor(stage, url, client) == RUNNING
    approve(api)
    assert monitor(stage, url, client) == SUCCEEDED


def test_harm_ends_the_stage(api: LiveApi) -> None:
    api.record("w8a8", harm=60)
    stage = {**stage_of(api), "url": f"{api.url}{PATH}"}
    status, url = create(stage, api.client())
    assert status == SUCCEEDED
    assert url is not None
    assert monitor(stage, url, api.client()) == TERMINAL


def test_another_artifact_ends_the_stage_without_a_success(api: LiveApi) -> None:
    api.accept("w8a8")
    approve(api)
    stage = stage_of(api, artifact="cd" * 32)
    assert monitor(stage, stage["url"], api.client()) == TERMINAL
    told = api.client("read").get(PATH, params={"artifact": "cd" * 32}).json()
    assert told["status"] == "inconclusive"


def test_a_digest_in_the_payload_is_refused_because_polling_would_not_send_it(shared_api: LiveApi) -> None:
    stage = stage_of(shared_api, method="POST", payload={"artifact": ARTIFACT})
    assert create(stage, shared_api.client()) == (TERMINAL, None)
    stage = stage_of(shared_api, method="POST", payload={})
    assert create(stage, shared_api.client())[0] == SUCCEEDED


def test_a_misspelt_tier_ends_the_stage_and_says_so(shared_api: LiveApi) -> None:
    stage = {**stage_of(shared_api), "url": f"{shared_api.url}{PATH}9"}
    assert create(stage, shared_api.client()) == (TERMINAL, None)


def test_without_the_database_the_stage_polls_on(
    sqlite_database: Database, captures: Captures, sqlite_url: str
) -> None:
    with live_api(sqlite_database, captures) as api:
        api.accept("w8a8")
        approve(api)
        client, stage = api.client(), stage_of(api)
        assert monitor(stage, stage["url"], client) == SUCCEEDED
        sqlite_database.close()
        path = Path(sqlite_url.removeprefix("sqlite:///"))
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(b"this is no database" * 500)
        assert create(stage, client) == (RUNNING, None)
        assert monitor(stage, stage["url"], client) == RUNNING


def test_progress_is_text_and_the_status_one_word(shared_api: LiveApi) -> None:
    told = shared_api.client("read").get(PATH).json()
    assert told["status"] in ("running", "approved", "rejected", "inconclusive")
    assert isinstance(told["progress"], str)
    assert told["status_url"] == f"{shared_api.url}{PATH}"


def test_behind_a_gateway_that_ends_tls_the_url_to_poll_is_the_public_one(
    sqlite_database: Database, captures: Captures
) -> None:
    name = "tiergate.example"
    told = {"public_url": f"https://{name}", "allowed_hosts": (name, "127.0.0.1")}
    with live_api(sqlite_database, captures, **told) as api:
        for host, scheme in ((name, "https"), (name.upper(), "https"), (api.url.partition("://")[2], "http")):
            answer = api.client("read", Host=host).post(f"{PATH}?artifact={ARTIFACT}")
            there = f"{scheme}://{host}{PATH}?artifact={ARTIFACT}"
            assert (answer.headers["location"], answer.json()["status_url"]) == (there, there)


def test_numbers_are_no_status_here_because_only_the_integer_100_ends_a_stage(
    sqlite_database: Database, captures: Captures
) -> None:
    """The trap, in the model of the client: 100.0 runs forever."""

    def number(request: Request) -> Response:
        return JSONResponse({"status": 100.0, "progress": ""})

    with live_api(sqlite_database, captures, pages=[Route("/number", number)]) as api:
        assert monitor(stage_of(api), f"{api.url}/number", api.client()) == RUNNING


def test_the_example_has_only_fields_that_the_stage_has() -> None:
    """The names are those of orca's WebhookStage.StageData, and of every stage."""
    stage = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    assert set(stage) <= {
        *("name", "type", "stageTimeoutMs", "url", "method", "payload", "customHeaders"),
        *("failFastStatusCodes", "waitForCompletion", "statusUrlResolution", "statusUrlJsonPath"),
        *("statusJsonPath", "progressJsonPath", "successStatuses", "canceledStatuses", "terminalStatuses"),
        *("retryStatusCodes", "waitBeforeMonitor", "monitorOnly", "cancelEndpoint", "cancelMethod"),
    }
    assert stage["type"] == "webhook"


def test_beginning_needs_scope_read_and_nothing_more(shared_api: LiveApi) -> None:
    assert shared_api.client().post(PATH).status_code == 401
    assert shared_api.client("read").post(PATH).status_code == 200
