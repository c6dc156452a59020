"""A deployment protection rule from the signed webhook to the call back, against a server that counts."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from service.approval.desk import Desk
from service.store.outgoing.callbacks import CallbackState, of_tool
from service.store.outgoing.gate_terms import GITHUB, GateTarget, GateTerms, GithubTerms
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.dialects.pipeline_servers import GithubServer, serving
from tests.approval.live import MODEL, LiveApi, live_api
from workers.callbacks import Answerer, answer_callbacks, open_answerer

SECRET = "webhook secret"
RULE = "deployment_protection_rule"
APPROVAL = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Walk:
    """The API, the outbox and GitHub."""

    api: LiveApi
    github: GithubServer
    url: str
    answerer: Answerer

    def payload(self, **changes: Any) -> dict[str, Any]:
        return {
            "action": "requested",
            "environment": "production",
            "event": "push",
            "deployment_callback_url": f"{self.url}/repos/org/serving/actions/runs/31/{RULE}",
            "deployment": {"id": 404, "sha": "a" * 40},
            "repository": {"full_name": "org/serving"},
            "installation": {"id": 77},
            "sender": {"login": "octocat"},
            **changes,
        }

    def deliver(
        self,
        payload: Any,
        *,
        delivery: str = "d-1",
        secret: str = SECRET,
        event: str = RULE,
    ) -> httpx.Response:
        raw = json.dumps(payload, separators=(",", ": ")).encode()  # bytes that nobody would write again
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": delivery,
            "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), raw, "sha256").hexdigest(),
        }
        return self.api.client().post("/gates/github", content=raw, headers=headers)

    def guard(self, *, after: float = 0.0) -> None:
        """One run of the guard, so many seconds later."""
        self.api.clock.at += after
        answer_callbacks(self.answerer, now=self.api.clock.at)

    def approve(self) -> None:
        self.api.accept("w8a8")
        self.api.client("approve").put(APPROVAL, json={}).raise_for_status()

    @property
    def metrics(self) -> str:
        return self.api.client("read").get("/metrics").text

    @property
    def state(self) -> CallbackState:
        [only] = of_tool(self.api.db, GITHUB)
        return only.state


@pytest.fixture
def walk(sqlite_database: Database, captures: Captures, key: rsa.RSAPrivateKey) -> Iterator[Walk]:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    server = GithubServer(app="Iv1abc", key=key.public_key(), now=None)
    with serving(server) as url:
        terms = GateTerms(
            github=GithubTerms(
                url=url,
                app="Iv1abc",
                private_key=private,
                secret=SECRET,
                environments={("org/serving", "production"): GateTarget(model=MODEL, tier="w8a8")},
            )
        )
        with live_api(sqlite_database, captures, gates=terms) as api:
            question = Desk(config=api.config, db=api.db, captures=captures, now=api.clock).question
            answerer = open_answerer(api.db, api.config.ladders, question, terms)
            try:
                yield Walk(api, server, url, answerer)
            finally:
                answerer.close()


def test_a_run_waits_is_told_how_it_stands_and_goes_on_once_approved(walk: Walk) -> None:
    answer = walk.deliver(walk.payload())
    assert (answer.status_code, answer.json()) == (202, {"noted": "new"})
    assert walk.github.calls == []  # nothing is called within the request
    walk.guard()
    assert walk.github.decisions == []
    assert len(walk.github.reports) == 1
    assert walk.github.reports[0].startswith("`inconclusive: ")
    walk.approve()
    assert 'tiergate_callbacks{state="waiting",tool="github"} 1.0' in walk.metrics
    walk.guard(after=15)
    assert 'tiergate_callbacks{state="answered",tool="github"} 1.0' in walk.metrics
    [(environment, state, comment)] = walk.github.decisions
    assert (environment, state) == ("production", "approved")
    assert "was approved by test-approve" in comment
    assert walk.state is CallbackState.ANSWERED
    walk.guard(after=3600)
    assert len(walk.github.decisions) == 1


def test_an_environment_is_the_same_in_any_case_and_is_answered_by_its_own_name(walk: Walk) -> None:
    walk.approve()
    assert walk.deliver(walk.payload(environment="Production")).json() == {"noted": "new"}
    walk.guard()
    assert [(name, state) for name, state, _ in walk.github.decisions] == [("Production", "approved")]


def test_a_rejected_tier_rejects_the_run(walk: Walk) -> None:
    walk.api.record("w8a8", harm=200)
    walk.deliver(walk.payload())
    walk.guard()
    assert [state for _, state, _ in walk.github.decisions] == ["rejected"]


def test_what_nobody_decides_on_is_rejected_as_inconclusive_after_the_wait(walk: Walk) -> None:
    walk.deliver(walk.payload())
    walk.guard(after=86_399)
    assert walk.github.decisions == []
    walk.guard(after=15)
    [(_, state, comment)] = walk.github.decisions
    assert state == "rejected"
    assert comment.startswith("Nobody decided in time.\n\n`inconclusive: ")


def test_a_run_gets_ten_reports_at_most_and_only_new_ones(walk: Walk) -> None:
    walk.deliver(walk.payload())
    for minute in range(80):
        if minute % 5 == 0:
            walk.api.record("w8a8", clean=1, stratum=f"s{minute}")
        walk.guard(after=15 * 60)
    assert 3 < len(walk.github.reports) <= 10
    assert len(set(walk.github.reports)) == len(walk.github.reports)
    assert walk.github.decisions == []


def test_a_delivery_that_comes_again_is_answered_once(walk: Walk) -> None:
    walk.approve()
    assert walk.deliver(walk.payload()).json() == {"noted": "new"}
    assert walk.deliver(walk.payload()).json() == {"noted": "known"}
    # The delivery's id is not signed: a replay may carry any.
    assert walk.deliver(walk.payload(), delivery="d-2").json() == {"noted": "known"}
    assert walk.deliver(walk.payload(deployment={"id": 405}), delivery="d-1").json() == {"noted": "known"}
    walk.guard()
    assert walk.deliver(walk.payload(), delivery="d-3").json() == {"noted": "known"}
    walk.guard(after=600)
    assert len(walk.github.decisions) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hub-Signature-256": "sha256=" + "0" * 64},
        {"X-Hub-Signature-256": "0" * 64},
        {"X-Hub-Signature-256": "sha256=é".encode()},
        {"X-Hub-Signature": "sha1=" + "0" * 40},
    ],
)
def test_an_unsigned_request_is_refused_before_it_is_read(walk: Walk, headers: dict[str, Any]) -> None:
    told = {"Content-Type": "application/json", "X-GitHub-Event": "deployment_protection_rule", **headers}
    answer = walk.api.client().post("/gates/github", content=b"{", headers=told)
    assert answer.status_code == 401
    assert of_tool(walk.api.db, GITHUB) == []


def test_a_payload_of_a_big_repository_is_taken_and_one_without_end_is_not(walk: Walk) -> None:
    big = walk.payload(repository={"full_name": "org/serving", "topics": ["x" * 100] * 5000})
    assert walk.deliver(big).json() == {"noted": "new"}
    endless = walk.payload(repository={"full_name": "org/serving", "topics": ["x" * 100] * 20_000})
    assert walk.deliver(endless, delivery="d-2").status_code == 413


def test_another_secret_or_one_changed_byte_is_refused(walk: Walk) -> None:
    assert walk.deliver(walk.payload(), secret="guess").status_code == 401
    raw = json.dumps(walk.payload()).encode()
    signature = hmac.new(SECRET.encode(), raw, "sha256").hexdigest()
    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": f"sha256={signature}"}
    changed = raw.replace(b"production", b"productioN")
    assert walk.api.client().post("/gates/github", content=changed, headers=headers).status_code == 401


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "{api}.evil.example/repos/org/serving/actions/runs/1/deployment_protection_rule",
        "{api}/repos/org/other/actions/runs/1/deployment_protection_rule",
        "{api}/repos/org/serving/actions/runs/1/deployment_protection_rule?x=1",
        "{api}/repos/org/serving/actions/runs/../../../x/deployment_protection_rule",
        "{api}@evil.example/repos/org/serving/actions/runs/1/deployment_protection_rule",
    ],
)
def test_a_callback_url_that_is_not_ours_is_refused_and_never_called(walk: Walk, url: str) -> None:
    answer = walk.deliver(walk.payload(deployment_callback_url=url.format(api=walk.url)))
    assert (answer.status_code, answer.json()["code"]) == (422, "foreign_callback")
    walk.guard()
    assert walk.github.calls == []


def test_what_is_no_gate_of_ours_is_refused_and_other_events_are_ignored(walk: Walk) -> None:
    other = walk.deliver(walk.payload(environment="staging"))
    assert (other.status_code, other.json()["code"]) == (422, "not_configured")
    assert walk.deliver({"zen": "Keep it logically awesome."}, event="ping").json() == {"noted": "ignored"}
    for broken in (walk.payload(installation={}), walk.payload(environment=""), walk.payload(repository=[])):
        assert walk.deliver(broken, delivery="d-9").status_code == 422
    assert walk.deliver([1]).status_code == 400
    assert of_tool(walk.api.db, GITHUB) == []


def test_an_outage_of_github_is_waited_out_with_growing_pauses(walk: Walk) -> None:
    walk.approve()
    walk.deliver(walk.payload())
    walk.github.failures = [(503, {}), (429, {"retry-after": "120"}), (502, {})]
    walk.guard()
    assert len(walk.github.calls) == 1
    walk.guard(after=1)  # the pause is not over
    assert len(walk.github.calls) == 1
    walk.guard(after=5)
    walk.guard(after=60)  # it said 120 s
    assert len(walk.github.calls) == 2
    walk.guard(after=61)
    walk.guard(after=21)
    assert [state for _, state, _ in walk.github.decisions] == ["approved"]


def test_it_is_given_up_after_ten_attempts_and_begun_again_by_a_redelivery(walk: Walk) -> None:
    walk.approve()
    walk.deliver(walk.payload())
    walk.github.failures = [(500, {})] * 10
    for _ in range(15):
        walk.guard(after=600)
    assert len(walk.github.calls) == 10
    assert walk.state is CallbackState.GIVEN_UP
    assert walk.deliver(walk.payload()).json() == {"noted": "again"}
    walk.guard()
    assert [state for _, state, _ in walk.github.decisions] == ["approved"]


def test_a_refusal_is_not_repeated_and_a_redirect_not_followed(walk: Walk) -> None:
    walk.approve()
    for number, refusal in enumerate(((404, {}), (307, {"location": f"{walk.url}/elsewhere"}))):
        walk.github.failures, walk.github.calls = [refusal], []
        walk.deliver(walk.payload(deployment={"id": number + 1}), delivery=f"d-{number}")
        walk.guard()
        walk.guard(after=3600)
        assert len(walk.github.calls) == 1
    assert {each.state for each in of_tool(walk.api.db, GITHUB)} == {CallbackState.GIVEN_UP}


def test_a_token_that_ended_early_is_asked_for_anew_and_one_that_is_wrong_is_not_twice(walk: Walk) -> None:
    walk.deliver(walk.payload())
    walk.guard()
    assert len(walk.github.reports) == 1
    walk.github.token = "ghs_2"  # the App was installed anew: what the guard has kept is worth nothing
    walk.approve()
    walk.guard(after=15)
    assert [state for _, state, _ in walk.github.decisions] == ["approved"]
    walk.deliver(walk.payload(deployment={"id": 405}), delivery="d-2")
    walk.github.failures, walk.github.calls = [(401, {}), (401, {})], []
    walk.guard(after=15)
    assert len(walk.github.calls) == 2  # the token that was kept, and the App, which is no App any more
    assert CallbackState.GIVEN_UP in {each.state for each in of_tool(walk.api.db, GITHUB)}


def test_an_answer_is_sent_by_whoever_comes_after_a_guard_that_died(walk: Walk) -> None:
    walk.approve()
    walk.deliver(walk.payload())
    dying = open_answerer(walk.api.db, walk.answerer.ladders, walk.answerer.question, walk.answerer.terms)
    assert dying.github is not None
    dying.github.decide = partial(_die)  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        answer_callbacks(dying, now=walk.api.clock.at)
    dying.close()
    walk.guard(after=1)
    assert walk.github.decisions == []  # taken by the one that died, for a minute
    walk.guard(after=60)
    assert len(walk.github.decisions) == 1


def _die(*args: object, **named: object) -> None:
    raise SystemExit


def test_no_secret_is_in_what_is_kept(walk: Walk) -> None:
    walk.deliver(walk.payload())
    walk.github.failures = [(500, {})]
    walk.approve()
    walk.guard()
    [kept] = of_tool(walk.api.db, GITHUB)
    assert kept.problem.endswith("answered 500")
    assert not any(word in repr(kept) for word in ("ghs_", "PRIVATE", SECRET, "Bearer"))
