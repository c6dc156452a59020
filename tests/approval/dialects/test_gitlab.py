"""GitLab's status checks and deployments that wait, from the signed request to the call back."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from service.approval.desk import Desk
from service.store.outgoing.callbacks import CallbackState, of_tool
from service.store.outgoing.gate_terms import (
    GITLAB_CHECK,
    GITLAB_DEPLOYMENT,
    GateTarget,
    GateTerms,
    GitlabTerms,
)
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.dialects.pipeline_servers import GitlabServer, serving
from tests.approval.live import MODEL, LiveApi, live_api
from workers.callbacks import Answerer, answer_callbacks, open_answerer

SECRET = "shared secret"
SHA = "c" * 40
APPROVAL = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"
TARGET = GateTarget(model=MODEL, tier="w8a8")
PENDING_FAILS_SECONDS = 120
"""GitLab fails a check that was not answered for longer."""


@dataclass
class Walk:
    """The API, the outbox and GitLab."""

    api: LiveApi
    gitlab: GitlabServer
    answerer: Answerer

    def deliver(self, *, secret: str = SECRET, **changes: Any) -> httpx.Response:
        payload = {
            "object_kind": "merge_request",
            "project": {"id": 5, "path_with_namespace": "Group/serving"},
            "object_attributes": {"iid": 9, "last_commit": {"id": SHA}},
            "external_approval_rule": {
                "id": 3,
                "name": "tiergate",
                "external_url": "https://elsewhere.example",
            },
            **changes,
        }
        raw = json.dumps(payload).encode()
        signature = hmac.new(secret.encode(), raw, "sha256").hexdigest()
        headers = {"Content-Type": "application/json", "X-Gitlab-Signature": signature}
        return self.api.client().post("/gates/gitlab/status-check", content=raw, headers=headers)

    def guard(self, *, after: float = 0.0) -> None:
        """One run of the guard, so many seconds later."""
        self.api.clock.at += after
        answer_callbacks(self.answerer, now=self.api.clock.at)

    def approve(self) -> None:
        self.api.accept("w8a8")
        self.api.client("approve").put(APPROVAL, json={}).raise_for_status()

    @property
    def statuses(self) -> list[str]:
        return [each["status"] for each in self.gitlab.checks]


@pytest.fixture
def walk(sqlite_database: Database, captures: Captures) -> Iterator[Walk]:
    server = GitlabServer()
    with serving(server) as url:
        terms = GateTerms(
            gitlab=GitlabTerms(
                url=url,
                token="glpat-1",
                secret=SECRET,
                checks={("group/serving", "tiergate"): TARGET},
                deployments={("group/serving", "production"): TARGET},
            )
        )
        with live_api(sqlite_database, captures, gates=terms) as api:
            question = Desk(config=api.config, db=api.db, captures=captures, now=api.clock).question
            answerer = open_answerer(api.db, api.config.ladders, question, terms)
            try:
                yield Walk(api, server, answerer)
            finally:
                answerer.close()


def test_a_check_of_an_approved_tier_passes_at_once(walk: Walk) -> None:
    walk.approve()
    assert walk.deliver().json() == {"noted": "new"}
    assert walk.gitlab.checks == []  # nothing is called within the request
    walk.guard()
    assert walk.gitlab.checks == [{"sha": SHA, "external_status_check_id": 3, "status": "passed"}]
    walk.guard(after=3600)
    assert len(walk.gitlab.checks) == 1


def test_a_check_of_a_rejected_tier_fails(walk: Walk) -> None:
    walk.api.record("w8a8", harm=200)
    walk.deliver()
    walk.guard()
    assert walk.statuses == ["failed"]


def test_a_check_is_answered_before_gitlab_gives_it_up(walk: Walk) -> None:
    walk.deliver()
    waited = 0
    while not walk.gitlab.checks:
        walk.guard(after=5)
        waited += 5
        assert waited < PENDING_FAILS_SECONDS
    assert walk.statuses == ["failed"]
    assert waited >= 60  # an approval may come meanwhile


def test_an_approval_that_comes_within_the_wait_passes_the_check(walk: Walk) -> None:
    walk.deliver()
    walk.guard()
    walk.approve()
    walk.guard(after=15)
    assert walk.statuses == ["passed"]


def test_a_retry_is_answered_anew(walk: Walk) -> None:
    walk.deliver()
    walk.guard(after=90)
    walk.approve()
    assert walk.deliver().json() == {"noted": "again"}
    assert walk.deliver().json() == {"noted": "known"}
    walk.guard()
    assert walk.statuses == ["failed", "passed"]


def test_an_unsigned_or_unknown_check_is_refused(walk: Walk) -> None:
    assert walk.deliver(secret="guess").status_code == 401
    other = walk.deliver(project={"id": 6, "path_with_namespace": "Group/other"})
    assert (other.status_code, other.json()["code"]) == (422, "not_configured")
    for broken in ({"id": -1, "path_with_namespace": "Group/serving"}, {}, None):
        assert walk.deliver(project=broken).status_code == 422
    assert walk.deliver(object_attributes={"iid": 9, "last_commit": {"id": "../x"}}).status_code == 422
    unsigned = walk.api.client().post("/gates/gitlab/status-check", json={})
    assert unsigned.status_code == 401
    assert of_tool(walk.api.db, GITLAB_CHECK) == []


def test_deployments_that_wait_are_approved_once_the_tier_is(walk: Walk) -> None:
    walk.gitlab.blocked[("group/serving", "production")] = [41, 42]
    walk.guard()
    assert walk.gitlab.decided == []
    walk.approve()
    walk.guard(after=30)
    told = [(project, deployment, status) for project, deployment, status, _ in walk.gitlab.decided]
    assert sorted(told) == [("group/serving", 41, "approved"), ("group/serving", 42, "approved")]
    assert walk.gitlab.as_whom == [None, None]
    assert all("was approved by test-approve" in comment for *_, comment in walk.gitlab.decided)
    walk.guard(after=30)
    assert len(walk.gitlab.decided) == 2


def test_deployments_that_nobody_else_approves_hide_none_that_come_later(walk: Walk) -> None:
    stale = list(range(1, 151))
    walk.gitlab.blocked[("group/serving", "production")] = [*stale, 500]
    walk.gitlab.of_others = set(stale)
    walk.approve()
    for _ in range(10):
        walk.guard(after=30)
    told = [deployment for _, deployment, _, _ in walk.gitlab.decided]
    assert 500 in told
    assert len(told) == len(set(told)) == 101  # one more was seen once the latest waited no more


def test_a_deployment_is_decided_as_whom_the_configuration_says(walk: Walk) -> None:
    terms = walk.answerer.terms
    assert terms.gitlab is not None
    as_whom = {("group/serving", "production"): replace(TARGET, represented_as="Quality")}
    walk.answerer.terms = replace(terms, gitlab=replace(terms.gitlab, deployments=as_whom))
    walk.gitlab.blocked[("group/serving", "production")] = [41]
    walk.approve()
    walk.guard()
    assert walk.gitlab.as_whom == ["Quality"]


def test_deployments_of_a_rejected_tier_are_rejected(walk: Walk) -> None:
    walk.gitlab.blocked[("group/serving", "production")] = [41]
    walk.api.record("w8a8", harm=200)
    walk.guard()
    assert [status for _, _, status, _ in walk.gitlab.decided] == ["rejected"]


def test_an_outage_of_gitlab_decides_nothing_and_is_asked_once_a_run(walk: Walk) -> None:
    walk.gitlab.blocked[("group/serving", "production")] = [41]
    walk.approve()
    walk.deliver()
    walk.gitlab.failures = [(502, {})]
    walk.guard()
    assert len(walk.gitlab.calls) == 1  # what it owes the check waits for the next run
    walk.guard(after=5)
    assert walk.statuses == ["passed"]
    assert walk.gitlab.decided == []
    walk.guard(after=30)
    assert len(walk.gitlab.decided) == 1


def test_a_deployment_that_gitlab_will_not_let_us_decide_is_asked_once(walk: Walk) -> None:
    walk.gitlab.blocked[("group/serving", "production")] = [41]
    walk.approve()
    walk.gitlab.answer = _refusing(walk.gitlab)  # type: ignore[method-assign]
    for _ in range(4):
        walk.guard(after=30)
    assert sum("/approval" in call for call in walk.gitlab.calls) == 1
    [kept] = of_tool(walk.api.db, GITLAB_DEPLOYMENT)
    assert kept.state is CallbackState.GIVEN_UP
    assert kept.problem.endswith("answered 403")


def _refusing(server: GitlabServer) -> Any:
    usual = server.answer

    def answer(method: str, path: str, headers: Any, body: Any) -> Any:
        return (403, {}, {}) if path.endswith("/approval") else usual(method, path, headers, body)

    return answer
