"""Flagger as it is known to behave, against the canary that we ship."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import yaml

from service.approval.dialects.flagger import HOOKS, ROLLED_BACK, STOPPED
from tests.approval.dialects.flagger_client import Canary, HookFailed, post
from tests.approval.live import MODEL, LiveApi

WEBHOOK = {
    "type": "object",
    "required": ["name", "url"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "type": {
            "enum": [
                *("", "confirm-rollout", "pre-rollout", "rollout", "confirm-promotion", "post-rollout"),
                *("event", "rollback", "confirm-traffic-increase"),
            ]
        },
        "muteAlert": {"type": "boolean"},
        "url": {"type": "string"},
        "timeout": {"type": "string", "pattern": "^[0-9]+(m|s)"},
        "retries": {"type": "number"},
        "disableTLS": {"type": "boolean"},
        "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
"""What `artifacts/flagger/crd.yaml` of fluxcd/flagger asks of `spec.analysis.webhooks[]`."""
EXAMPLE = Path(__file__).parents[3] / "deploy" / "examples" / "flagger" / "canary.yaml"
APPROVAL = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"
ARTIFACT = "ab" * 32
HERE = f"/gates/flagger/models/{MODEL}/tiers/w8a8"


@pytest.fixture
def outside() -> Iterator[httpx.Client]:
    """Flagger's own client, which has no header of ours."""
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


def hooks(api: LiveApi, *kinds: str) -> list[dict[str, Any]]:
    """The webhooks of the example, those of these kinds, with what is to be filled in."""
    spec = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["spec"]["analysis"]
    found = []
    for hook in spec["webhooks"]:
        if kinds and hook["type"] not in kinds:
            continue
        url = hook["url"].replace("http://tiergate.serving:8081", api.url).replace("qwen3-32b", MODEL)
        metadata = {**hook["metadata"], "token": api.secrets["read"]}
        if "artifact" in metadata:
            metadata["artifact"] = ARTIFACT
        found.append({**hook, "url": url, "metadata": metadata})
    return found


def approve(api: LiveApi) -> None:
    api.accept("w8a8")
    answer = api.client("approve").put(APPROVAL, json={"artifact": f"sha256:{ARTIFACT}"})
    assert answer.status_code == 200


def said(api: LiveApi, kind: str, **metadata: str) -> dict[str, Any]:
    token = {"token": api.secrets["read"]}
    return {"name": kind, "url": f"{api.url}{HERE}/{kind}", "metadata": {**token, "hook": kind, **metadata}}


def test_the_webhooks_of_the_example_are_what_flaggers_crd_takes() -> None:
    webhooks = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["spec"]["analysis"]["webhooks"]
    for hook in webhooks:
        jsonschema.validate(hook, WEBHOOK)
    assert {hook["type"] for hook in webhooks} <= set(HOOKS)
    assert all(hook["url"].endswith("/" + hook["metadata"]["hook"]) for hook in webhooks)


def test_a_204_would_be_a_failure_to_flagger() -> None:
    answered = httpx.MockTransport(lambda request: httpx.Response(204))
    with httpx.Client(transport=answered) as client, pytest.raises(HookFailed):
        post({"url": "http://gate"}, client)
    assert 204 not in {*STOPPED.values(), *ROLLED_BACK.values()}


def test_the_canary_waits_goes_on_and_rolls_back_as_it_is_judged(api: LiveApi, outside: httpx.Client) -> None:
    canary = Canary(hooks(api), outside, phase="Initialized")
    assert canary.advance() == "Waiting"
    approve(api)
    assert canary.advance() == "Succeeded"
    assert canary.failed_checks == 0
    api.record("w8a8", harm=200)
    canary.phase = "Progressing"
    assert canary.advance() == "Failed"


def test_traffic_and_promotion_wait_for_the_approval(sqlite_api: LiveApi, outside: httpx.Client) -> None:
    increase = Canary(hooks(sqlite_api, "confirm-traffic-increase", "rollback"), outside)
    promotion = Canary(hooks(sqlite_api, "confirm-promotion", "rollback"), outside)
    assert increase.advance() == "WaitingTrafficIncrease"
    assert promotion.advance() == "WaitingPromotion"
    approve(sqlite_api)
    assert (increase.advance(), promotion.advance()) == ("Succeeded", "Succeeded")


def test_a_failed_check_shows_the_reason_in_one_line(sqlite_api: LiveApi, outside: httpx.Client) -> None:
    canary = Canary([{**said(sqlite_api, "pre-rollout"), "type": "pre-rollout"}], outside)
    canary.advance()
    [event] = canary.events
    assert re.fullmatch(r"inconclusive: .+\n", event)


def test_our_outage_stops_a_rollout_and_rolls_nothing_back(outside: httpx.Client, unused_url: str) -> None:
    for kind, ends in (("confirm-rollout", "Waiting"), ("rollback", "Succeeded")):
        hook = {"name": kind, "type": kind, "url": f"{unused_url}{HERE}/{kind}", "metadata": {"hook": kind}}
        assert Canary([hook], outside).advance() == ends


@pytest.fixture
def unused_url() -> str:
    from tests.ports import free_port

    return f"http://127.0.0.1:{free_port()}"


def test_rollback_is_said_of_a_rejected_tier_alone(sqlite_api: LiveApi, outside: httpx.Client) -> None:
    def status() -> int:
        hook = said(sqlite_api, "rollback")
        body = {"name": "c", "namespace": "n", "phase": "Progressing", "metadata": hook["metadata"]}
        answer = outside.post(hook["url"], json=body)
        assert answer.text.startswith("roll back: " if answer.status_code == 200 else "carry on: ")
        return answer.status_code

    assert status() == 409
    approve(sqlite_api)
    assert status() == 403
    sqlite_api.record("w8a8", harm=200)
    assert status() == 200


def test_a_rollback_hook_at_a_confirming_url_is_refused(sqlite_api: LiveApi, outside: httpx.Client) -> None:
    approve(sqlite_api)
    approved = said(sqlite_api, "confirm-promotion")
    post(approved, outside)
    copied = {**approved, "metadata": {**approved["metadata"], "hook": "rollback"}}
    with pytest.raises(HookFailed, match=r"metadata\.hook is 'rollback', and this is the path of confirm"):
        post(copied, outside)
    unsaid = {**approved, "metadata": {"token": sqlite_api.secrets["read"]}}
    with pytest.raises(HookFailed, match=r"metadata\.hook is missing"):
        post(unsaid, outside)


def test_another_artifact_is_not_approved(sqlite_api: LiveApi, outside: httpx.Client) -> None:
    approve(sqlite_api)
    post(said(sqlite_api, "confirm-rollout", artifact=ARTIFACT), outside)
    with pytest.raises(HookFailed, match="inconclusive: not evaluated"):
        post(said(sqlite_api, "confirm-rollout", artifact="cd" * 32), outside)
    with pytest.raises(HookFailed, match=r"metadata\.'?artefact'? means nothing here"):
        post(said(sqlite_api, "confirm-rollout", artefact=ARTIFACT), outside)
    with pytest.raises(HookFailed, match="artifact"):
        post(said(sqlite_api, "confirm-rollout", artifact=""), outside)


def test_events_and_the_end_of_a_rollout_are_noted_in_any_phase(
    sqlite_api: LiveApi, outside: httpx.Client
) -> None:
    event = said(sqlite_api, "event", eventMessage="Halt", eventType="Warning", timestamp="1700000000000")
    for phase in ("Initializing", "Succeeded", "WaitingTrafficIncrease", "a phase of tomorrow"):
        post(event, outside, phase=phase)
        post(said(sqlite_api, "post-rollout"), outside, phase=phase)


def test_a_token_rides_in_the_metadata_or_in_the_url_and_nothing_else_gets_in(
    sqlite_api: LiveApi, outside: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    approve(sqlite_api)
    good = said(sqlite_api, "confirm-rollout")
    secret = good["metadata"]["token"]
    with caplog.at_level(logging.DEBUG):
        for shown in ("tg_nobody_x", "é", "x" * 2000):
            with pytest.raises(HookFailed, match="unknown, revoked or expired"):
                post({**good, "metadata": {**good["metadata"], "token": shown}}, outside)
        bare = {"hook": "confirm-rollout"}
        with pytest.raises(HookFailed, match=r"metadata\.token is missing"):
            post({**good, "metadata": bare}, outside)
        post(good, outside)
        post(said(sqlite_api, "confirm-rollout", token=secret), outside)
        in_url = good["url"].replace("http://", f"http://flagger:{secret}@")
        post({"url": in_url, "metadata": bare}, outside)
        with pytest.raises(HookFailed) as told:
            post({**good, "metadata": {**good["metadata"], "basis": "hope"}}, outside)
    ours = [
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    ]
    assert secret not in "\n".join([*ours, str(told.value)])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json", 400),
        (b"[]", 422),
        (b'{"name": "c"}', 422),
        (b'{"name": "c", "namespace": "n", "metadata": {"hook": 1}}', 422),
    ],
)
def test_a_bad_body_is_refused_and_never_a_success(
    body: bytes, status: int, shared_api: LiveApi, outside: httpx.Client
) -> None:
    headers = {"content-type": "application/json"}
    answer = outside.post(f"{shared_api.url}{HERE}/confirm-rollout", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.text


def test_an_unknown_hook_and_an_unknown_tier_stop_the_rollout(
    shared_api: LiveApi, outside: httpx.Client
) -> None:
    unknown = said(shared_api, "confirm-everything")
    with pytest.raises(HookFailed, match="is no kind of hook"):
        post(unknown, outside)
    good = said(shared_api, "confirm-rollout")
    with pytest.raises(HookFailed, match="nope"):
        post({**good, "url": good["url"].replace("w8a8", "nope")}, outside)


def test_the_load_testers_gates_are_served(sqlite_api: LiveApi, outside: httpx.Client) -> None:
    named = {"token": sqlite_api.secrets["read"], "model": MODEL, "tier": "w8a8"}

    def status(path: str, **metadata: str) -> int:
        body = {"name": "podinfo", "namespace": "test", "metadata": {**named, **metadata}}
        answer = outside.post(f"{sqlite_api.url}/gates/flagger{path}", json=body)
        assert answer.text.count("\n") == 1
        return answer.status_code

    assert [status(path) for path in ("/gate/approve", "/gate/halt")] == [200, 403]
    assert [status(path) for path in ("/gate/check", "/rollback/check")] == [403, 409]
    approve(sqlite_api)
    assert [status(path) for path in ("/gate/check", "/rollback/check")] == [200, 403]
    assert status("/gate/check", artifact="cd" * 32) == 403
    sqlite_api.record("w8a8", harm=200)
    assert [status(path) for path in ("/gate/check", "/rollback/check")] == [403, 200]
    assert [status(path) for path in ("/gate/open", "/gate/close", "/rollback/open")] == [403] * 3
    assert status("/gate/ajar") == 404
    assert status("/gate/check", tier="") == 412
