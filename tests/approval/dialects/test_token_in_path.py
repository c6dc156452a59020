"""Tokens of tools that know a URL and nothing else."""

from __future__ import annotations

import base64
from urllib.parse import unquote

import pytest

from tests.approval.live import LiveApi


def test_a_token_in_the_path_is_a_token_and_is_not_repeated(shared_api: LiveApi) -> None:
    client, token = shared_api.client(), shared_api.secrets["read"]
    assert client.get(f"/gates/token/{token}/kayenta/canaryConfig").status_code == 200
    lost = client.get(f"/gates/token/{token}/kayenta/nothing")
    assert lost.status_code == 404
    assert token not in lost.text
    assert client.get("/gates/token/tg_000000000000_AAAA/kayenta/canaryConfig").status_code == 401
    for path in (
        "/gates/token//kayenta/canaryConfig",
        f"/gates/token/{token}",
        f"/api/token/{token}/v1/models",
    ):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("odd", ["x" * 2000, "%C3%A9" * 9, "a%0D%0Ab", "a%20b", "a:b@c", "%00"])
def test_what_cannot_be_a_token_is_taken_out_of_the_path_as_well(shared_api: LiveApi, odd: str) -> None:
    """It may be one with a letter too many: neither an answer nor a log line repeats it."""
    answer = shared_api.client().get(f"/gates/token/{odd}/kayenta/canaryConfig")
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"
    assert unquote(odd)[:5].strip() not in answer.text


def test_a_token_in_the_path_reaches_gates_and_nothing_else(shared_api: LiveApi) -> None:
    client, token = shared_api.client(), shared_api.secrets["admin"]
    for path in ("api/v1/models", "../api/v1/models", "%2e%2e/api/v1/models", "token/x/kayenta/canaryConfig"):
        answer = client.get(f"/gates/token/{token}/{path}")
        assert answer.status_code in (401, 404), path
        assert token not in answer.text


def test_a_token_beside_another_one_is_refused(shared_api: LiveApi) -> None:
    token = shared_api.secrets["read"]
    assert shared_api.client("read").get(f"/gates/token/{token}/kayenta/canaryConfig").status_code == 401


def test_a_gate_is_asked_by_post_with_a_password_and_nothing_is_written_so(shared_api: LiveApi) -> None:
    """Go's client makes `Basic` of what stands before the @ of a URL."""
    told = base64.b64encode(f"any:{shared_api.secrets['admin']}".encode()).decode()
    client = shared_api.client(Authorization=f"Basic {told}")
    gate = "/gates/spinnaker/models/org/model/tiers/w8a8"
    assert client.post(gate).status_code == 200
    assert client.put("/api/v1/models/org/model/tiers/w8a8/approval", json={}).status_code == 401


def test_a_page_elsewhere_asks_no_gate_by_post(shared_api: LiveApi) -> None:
    gate = "/gates/spinnaker/models/org/model/tiers/w8a8"
    assert shared_api.client("read", Origin="http://evil.example").post(gate).status_code == 403
