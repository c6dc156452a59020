"""Logging in at a real issuer by authorization code: what leads to somebody, and all that does not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from service.approval.access import Caller, Scope
from service.approval.code_logins import ERRAND_SECONDS, CodeLogins, Errand
from service.approval.errors import Problem
from service.approval.issuer_keys import LOOK_SECONDS
from tests.approval.issuer import AUTHORIZE, CLIENT, DISCOVERY, SUBJECT, TOKEN, Issuer
from tests.approval.live import Clock

BACK = "https://tiergate.example/login/oidc/back"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(clock: Clock) -> Iterator[Issuer]:
    started = Issuer()
    started.now = clock
    yield started
    started.stop()


@pytest.fixture
def logins(issuer: Issuer, clock: Clock) -> CodeLogins:
    return CodeLogins((issuer.login_terms(),), clock)


def left(logins: CodeLogins, issuer: Issuer) -> tuple[Errand, dict[str, str]]:
    """An errand, and what a browser brings back from it."""
    errand, there = logins.begin(issuer.url, BACK)
    answer = httpx.get(there, trust_env=False)
    place = urlsplit(answer.headers["location"])
    assert place._replace(query="").geturl() == BACK
    return errand, dict(parse_qsl(place.query))


def refused(logins: CodeLogins, errand: Errand, brought: Mapping[str, str], back: str = BACK) -> Problem:
    with pytest.raises(Problem) as caught:
        logins.finish(errand, brought, back)
    return caught.value


def test_who_logs_in_is_the_issuer_and_the_subject(logins: CodeLogins, issuer: Issuer) -> None:
    errand, brought = left(logins, issuer)
    caller = logins.finish(errand, brought, BACK)
    assert caller == Caller(name=f"{issuer.url} {SUBJECT}", scope=Scope.APPROVE)
    assert logins.offered == [(issuer.url, "Staff")]


def test_the_browser_takes_along_what_the_standard_wants(issuer: Issuer, clock: Clock) -> None:
    logins = CodeLogins((issuer.login_terms(scopes=("groups",)),), clock)
    errand, there = logins.begin(issuer.url, BACK)
    place = urlsplit(there)
    asked = dict(parse_qsl(place.query))
    assert place._replace(query="").geturl() == issuer.url + AUTHORIZE
    assert (asked["response_type"], asked["client_id"], asked["redirect_uri"]) == ("code", CLIENT, BACK)
    assert (asked["scope"], asked["code_challenge_method"]) == ("openid groups", "S256")
    assert (asked["state"], asked["nonce"]) == (errand.state, errand.nonce)
    assert errand.verifier not in there
    assert len(errand.verifier) >= 43


def test_a_code_is_good_once(logins: CodeLogins, issuer: Issuer) -> None:
    errand, brought = left(logins, issuer)
    logins.finish(errand, brought, BACK)
    problem = refused(logins, errand, brought)
    assert (problem.status, problem.code) == (403, "login_refused")
    assert "invalid_grant: no such code" in problem.message


def test_a_code_is_worth_nothing_without_its_verifier(logins: CodeLogins, issuer: Issuer) -> None:
    errand, brought = left(logins, issuer)
    assert "invalid_grant" in refused(logins, replace(errand, verifier="x" * 64), brought).message


@pytest.mark.parametrize(
    ("changes", "code", "why"),
    [
        ({"state": "another"}, "login_not_begun", "of another log-in"),
        ({"state": ""}, "login_not_begun", "of another log-in"),
        ({"code": ""}, "login_refused", "sent no code"),
        ({"code": "x" * 5000}, "login_refused", "sent no code"),
        ({"iss": "https://evil.example"}, "login_refused", "of another issuer"),
        (
            {"error": "access_denied", "error_description": "not you"},
            "login_refused",
            "access_denied: not you",
        ),
    ],
)
def test_what_is_not_of_the_errand_is_refused_before_the_issuer_is_asked(
    changes: dict[str, str], code: str, why: str, logins: CodeLogins, issuer: Issuer
) -> None:
    errand, brought = left(logins, issuer)
    problem = refused(logins, errand, {**brought, **changes})
    assert (problem.code, TOKEN in issuer.asked) == (code, False)
    assert why in problem.message


def test_an_errand_that_took_too_long_is_refused(logins: CodeLogins, issuer: Issuer, clock: Clock) -> None:
    errand, brought = left(logins, issuer)
    clock.at += ERRAND_SECONDS + 1
    assert refused(logins, errand, brought).code == "login_not_begun"


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        ({"aud": "tiergate"}, 401, "not for 'tiergate dashboard'"),
        ({"aud": [CLIENT, "another"]}, 401, "`azp`"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, 401, "`azp`"),
        ({"azp": "another"}, 401, "`azp`"),
        ({"nonce": "another"}, 401, "`nonce`"),
        ({"nonce": None}, 401, "`nonce`"),
        ({"iss": "https://evil.example"}, 401, "none of those in api.oidc"),
        ({"exp": 1}, 401, "it has expired"),
        ({"sub": "somebody"}, 403, "worth nothing here"),
    ],
)
def test_an_id_token_that_is_not_of_the_errand_is_refused(
    said: dict[str, Any], status: int, why: str, logins: CodeLogins, issuer: Issuer
) -> None:
    errand, brought = left(logins, issuer)
    issuer.said = said
    problem = refused(logins, errand, brought)
    assert problem.status == status
    assert why in problem.message


def test_several_audiences_are_taken_with_our_client_as_the_authorized_party(
    logins: CodeLogins, issuer: Issuer
) -> None:
    errand, brought = left(logins, issuer)
    issuer.said = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert logins.finish(errand, brought, BACK).scope is Scope.APPROVE


def test_an_id_token_of_a_log_in_is_no_token_for_the_api(issuer: Issuer, clock: Clock) -> None:
    with pytest.raises(Problem, match="not for 'tiergate'"):
        CodeLogins((issuer.login_terms(),), clock)._id_tokens.caller_of(issuer.token(clock(), aud=CLIENT))


def test_one_that_is_down_is_said_to_be_and_not_asked_again_at_once(
    logins: CodeLogins, issuer: Issuer, clock: Clock
) -> None:
    issuer.answers[DISCOVERY] = (500, b"")
    for _ in range(3):
        with pytest.raises(Problem, match="answers 500") as caught:
            logins.begin(issuer.url, BACK)
        assert (caught.value.status, caught.value.code) == (503, "issuer_down")
    assert issuer.asked == [DISCOVERY]
    issuer.answers = {}
    clock.at += LOOK_SECONDS
    assert logins.begin(issuer.url, BACK)


def test_discovery_leads_to_no_other_host(logins: CodeLogins, issuer: Issuer) -> None:
    places = {
        "authorization_endpoint": "https://evil.example/authorize",
        "token_endpoint": issuer.url + TOKEN,
    }
    issuer.answers[DISCOVERY] = (200, json.dumps({"issuer": issuer.url, **places}).encode())
    with pytest.raises(Problem, match="`authorization_endpoint`"):
        logins.begin(issuer.url, BACK)


def test_an_answer_that_is_no_grant_is_an_outage(logins: CodeLogins, issuer: Issuer) -> None:
    for status, body in ((200, b"<html>"), (200, b"[]"), (302, b"/elsewhere"), (200, b"x" * 300_000)):
        errand, brought = left(logins, issuer)
        issuer.answers[TOKEN] = (status, body)
        assert refused(logins, errand, brought).status == 503
    assert "/elsewhere" not in issuer.asked


def test_an_issuer_where_nobody_logs_in_is_not_found(issuer: Issuer, clock: Clock) -> None:
    logins = CodeLogins((issuer.terms(),), clock)
    assert logins.offered == []
    with pytest.raises(Problem) as caught:
        logins.begin(issuer.url, BACK)
    assert caught.value.status == 404
