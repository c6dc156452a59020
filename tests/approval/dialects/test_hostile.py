"""What nobody should send, at every gate: refused in words, never let through, never a crash."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator

import httpx
import pytest

from service.store.outgoing.gate_terms import GateTarget, GateTerms, GithubTerms, GitlabTerms
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.dialects.argo_client import strict
from tests.approval.live import MODEL, LiveApi, live_api

SECRET = "shared"
TARGET = GateTarget(model=MODEL, tier="w8a8")
TERMS = GateTerms(
    github=GithubTerms(
        url="http://127.0.0.1:9",
        app="Iv1",
        private_key="",
        secret=SECRET,
        environments={("o/r", "production"): TARGET},
    ),
    gitlab=GitlabTerms(
        url="http://127.0.0.1:9", token="t", secret=SECRET, checks={("g/p", "tiergate"): TARGET}
    ),
)
SIGNED = ("/gates/github", "/gates/gitlab/status-check")
TOLD = (
    f"/gates/flagger/models/{MODEL}/tiers/w8a8/confirm-rollout",
    f"/gates/flagger/models/{MODEL}/tiers/w8a8/rollback",
    "/gates/flagger/gate/check",
    "/gates/flagger/rollback/check",
    f"/gates/spinnaker/models/{MODEL}/tiers/w8a8",
    "/gates/kayenta/judge",
    "/gates/kayenta/canary/x",
    "/gates/kayenta/standalone_canary_analysis/x",
)
HOSTILE = {
    "deep": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "cut off": b'{"name": "x"',
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "an endless number": b'{"name": ' + b"9" * 50_000 + b"}",
    "no number": b'{"name": NaN, "thresholds": {"pass": Infinity, "marginal": -Infinity}}',
    "a list": b"[1, 2]",
    "a text": b'"approved"',
    "two bodies": b"{}{}",
    "half a pair": b'{"name": "\\ud800", "namespace": "n", "metadata": {"hook": "\\udfff"}}',
    "of wrong types": json.dumps(
        {
            **{key: ["x"] for key in ("name", "namespace", "action", "environment", "object_kind")},
            **dict.fromkeys(("repository", "project", "deployment", "installation", "metadata"), 7),
            **dict.fromkeys(("thresholds", "scopes", "canaryConfig", "metricSetPairList"), "x"),
            **{key: [None] for key in ("object_attributes", "external_approval_rule", "scoreThresholds")},
        }
    ).encode(),
    "with NUL": json.dumps(
        {"name": "\0", "namespace": "\0", "metadata": {"hook": "\0", "\0": "\0"}}
    ).encode(),
}


@pytest.fixture
def gated(database: Database, captures: Captures) -> Iterator[LiveApi]:
    """Over SQLite and PostgreSQL; its tier is approved, so that whatever gets through is seen."""
    with live_api(database, captures, gates=TERMS) as running:
        running.accept("w8a8")
        path = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"
        assert running.client("approve").put(path, json={}).status_code == 200
        yield running


def refused(answer: httpx.Response, what: str) -> None:
    assert 400 <= answer.status_code < 500, (what, answer.text)
    assert answer.text.strip(), what
    if "json" in answer.headers["content-type"]:
        assert strict(answer.text)["code"] != "internal_error", what


def test_what_nobody_should_send_is_refused_at_every_gate(gated: LiveApi) -> None:
    client, stranger = gated.client("read"), gated.client()
    for kind, body in HOSTILE.items():
        for path in TOLD:
            answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
            refused(answer, f"{kind} at {path}")
        signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "deployment_protection_rule",
            "X-Hub-Signature-256": f"sha256={signature}",
            "X-Gitlab-Signature": signature,
        }
        for path in SIGNED:
            answer = stranger.post(path, content=body, headers=headers)
            if answer.status_code != 202 or answer.json() != {"noted": "ignored"}:
                refused(answer, f"{kind} at {path}")
    assert stranger.get("/healthz").status_code == 200


def test_names_that_nobody_has_are_no_tiers(gated: LiveApi) -> None:
    client = gated.client("read")
    for tail in ("%00", "%ff%fe", "%E2%80%AE", "w8a8%0d%0aX: y", "../w8a8", "w8a8%2f..", "x" * 5000):
        for tool in ("argo", "plain", "spinnaker"):
            refused(client.get(f"/gates/{tool}/models/{MODEL}/tiers/{tail}"), tail)
        for name in ("artifact", "basis"):
            refused(client.get(f"/gates/plain/models/{MODEL}/tiers/w8a8?{name}={tail}"), tail)
        refused(client.get(f"/gates/kayenta/canary/{tail}"), tail)
