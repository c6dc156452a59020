"""JSON Web Tokens of a real issuer: right ones are worth what the configuration says, all others nothing."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from service.approval.access import MAX_ID_TOKEN, Scope
from service.approval.errors import Problem
from service.approval.failures import MOST_FAILURES, WINDOW_SECONDS
from service.approval.id_tokens import LEEWAY_SECONDS, IdTokens
from service.store.access.issuer_terms import ClaimRule
from service.store.decided import decisions
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.issuer import AUDIENCE, DISCOVERY, KEYS, SUBJECT, Issuer, jwk_of, part, rsa_key, signed
from tests.approval.live import MODEL, Clock, LiveApi, live_api

VERDICT = f"/api/v1/models/{MODEL}/tiers/w8a8/verdict"
APPROVAL = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"
GATE = f"/gates/plain/models/{MODEL}/tiers/w8a8"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    started = Issuer()
    yield started
    started.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(issuer: Issuer, clock: Clock) -> IdTokens:
    return IdTokens((issuer.terms(),), clock)


@pytest.fixture
def api(issuer: Issuer, sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    """Its subject approves; `my-org` reads one model that is not there."""
    rules = (
        ClaimRule(claim="sub", equals=SUBJECT, scope="approve", models=frozenset({MODEL})),
        ClaimRule(claim="owner", equals="my-org", scope="read", models=frozenset({"other"})),
    )
    with live_api(sqlite_database, captures, issuers=(issuer.terms(*rules),)) as running:
        running.accept("w8a8")
        yield running


def refused(door: IdTokens, token: str) -> Problem:
    with pytest.raises(Problem) as caught:
        door.caller_of(token)
    return caught.value


def test_a_right_token_is_its_issuer_and_its_subject(door: IdTokens, issuer: Issuer, clock: Clock) -> None:
    caller = door.caller_of(issuer.token(clock()))
    assert caller.name == f"{issuer.url} {SUBJECT}"
    assert (caller.scope, caller.models) == (Scope.APPROVE, None)


@pytest.mark.parametrize("kind", ["RS256", "ES256", "EdDSA"])
def test_each_algorithm_of_the_list_is_taken(kind: str, issuer: Issuer, clock: Clock) -> None:
    made = {
        "RS256": rsa_key,
        "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
        "EdDSA": ed25519.Ed25519PrivateKey.generate,
    }
    issuer.keys = {"first": made[kind]()}
    assert IdTokens((issuer.terms(),), clock).caller_of(issuer.token(clock())).scope is Scope.APPROVE


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ["somebody", AUDIENCE]},
        {"nbf": None},
        {"exp": 1_700_000_000 - 59},
        {"iat": 1_700_000_059, "nbf": 1_700_000_059.5},
        {"jti": "1", "groups": ["a"], "unknown": {"deep": [1]}},
    ],
)
def test_what_an_issuer_may_say_differently_is_taken(
    changes: dict[str, object], door: IdTokens, issuer: Issuer, clock: Clock
) -> None:
    assert door.caller_of(issuer.token(clock(), **changes)).scope is Scope.APPROVE


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"aud": "somebody"}, "it is for 'somebody', not for 'tiergate'"),
        ({"aud": ["somebody"]}, "not for 'tiergate'"),
        ({"aud": "tiergate-2"}, "not for 'tiergate'"),
        ({"aud": None}, "not for 'tiergate'"),
        ({"aud": {"tiergate": 1}}, "not for 'tiergate'"),
        ({"exp": 1_700_000_000 - LEEWAY_SECONDS}, "it has expired"),
        ({"exp": None}, "it does not say when (`exp`)"),
        ({"exp": "1800000000"}, "it does not say when (`exp`)"),
        ({"exp": True}, "it does not say when (`exp`)"),
        ({"exp": float("inf")}, "it does not say when (`exp`)"),
        ({"exp": float("nan")}, "it does not say when (`exp`)"),
        ({"exp": 10**400}, "it does not say when (`exp`)"),
        ({"iat": None}, "it does not say when (`iat`)"),
        ({"iat": 1_700_000_061}, "it is not good yet"),
        ({"nbf": 1_700_000_061}, "it is not good yet"),
        ({"nbf": "now"}, "it does not say when (`nbf`)"),
        ({"sub": None}, "it names nobody"),
        ({"sub": ""}, "it names nobody"),
        ({"sub": [SUBJECT]}, "it names nobody"),
        ({"sub": "a\nb"}, "it names nobody"),
        ({"sub": "a" * 1001}, "it names nobody"),
        ({"iss": "https://evil.example"}, "its issuer is none of those"),
        ({"iss": None}, "its issuer is none of those"),
        ({"iss": ["x"]}, "its issuer is none of those"),
    ],
)
def test_a_signed_token_with_wrong_claims_is_refused(
    changes: dict[str, object], why: str, door: IdTokens, issuer: Issuer, clock: Clock
) -> None:
    found = refused(door, issuer.token(clock(), **changes))
    assert (found.status, found.code) == (401, "unauthorized")
    assert why in found.message
    assert 'error="invalid_token"' in found.headers["WWW-Authenticate"]
    assert found.hint


def test_an_issuer_with_a_slash_more_is_another_one(door: IdTokens, issuer: Issuer, clock: Clock) -> None:
    assert "its issuer" in refused(door, issuer.token(clock(), iss=issuer.url + "/")).message


def unsigned(issuer: Issuer, now: float) -> str:
    return f"{part({'alg': 'none', 'kid': 'first'})}.{part(issuer.claims(now))}."


def stripped(issuer: Issuer, now: float) -> str:
    return issuer.token(now).rpartition(".")[0] + "."


def tampered(issuer: Issuer, now: float) -> str:
    head, _, signature = issuer.token(now, sub="somebody").split(".")
    return f"{head}.{part(issuer.claims(now))}.{signature}"


def by_another_key(issuer: Issuer, now: float) -> str:
    head = {"alg": "ES256", "kid": "first"}
    return signed(head, issuer.claims(now), ec.generate_private_key(ec.SECP256R1()))


def with_its_own_key(issuer: Issuer, now: float) -> str:
    own = ec.generate_private_key(ec.SECP256R1())
    return signed({"alg": "ES256", "kid": "first", "jwk": jwk_of(own, "first")}, issuer.claims(now), own)


def of_another_algorithm(issuer: Issuer, now: float) -> str:
    return signed({"alg": "RS256", "kid": "first"}, issuer.claims(now), issuer.keys["first"])


@pytest.mark.parametrize(
    "forge", [unsigned, stripped, tampered, by_another_key, with_its_own_key, of_another_algorithm]
)
def test_a_forged_token_is_refused(
    forge: Callable[[Issuer, float], str], door: IdTokens, issuer: Issuer, clock: Clock
) -> None:
    assert refused(door, forge(issuer, clock())).status == 401


@pytest.mark.parametrize("form", ["pem", "der", "jwk"])
@pytest.mark.parametrize("algorithm", ["HS256", "hs256", "RS256", "none"])
def test_a_public_key_is_never_the_secret_of_an_hmac(
    form: str, algorithm: str, issuer: Issuer, clock: Clock
) -> None:
    issuer.keys = {"first": rsa_key()}
    public = rsa_key().public_key()
    secret = {
        "pem": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "der": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "jwk": str(jwk_of(rsa_key(), "first")["n"]).encode(),
    }[form]
    said = f"{part({'alg': algorithm, 'kid': 'first'})}.{part(issuer.claims(clock()))}"
    mac = base64.urlsafe_b64encode(hmac.digest(secret, said.encode(), sha256)).rstrip(b"=").decode()
    assert refused(IdTokens((issuer.terms(),), clock), f"{said}.{mac}").status == 401


def test_a_token_does_not_say_where_its_key_is(door: IdTokens, issuer: Issuer, clock: Clock) -> None:
    evil = Issuer()
    try:
        head = {"jku": evil.url + KEYS, "x5u": evil.url + KEYS, "x5c": ["x"]}
        token = signed({"alg": "ES256", "kid": "first", **head}, issuer.claims(clock()), evil.keys["first"])
        assert refused(door, token).status == 401
        assert evil.asked == []
        # A right token is not spoiled by them either.
        assert door.caller_of(issuer.token(clock(), head=head)).scope is Scope.APPROVE
        assert evil.asked == []
    finally:
        evil.stop()


@pytest.mark.parametrize(
    "kid",
    [
        "../../etc/passwd",
        "' OR 1=1 --",
        "http://169.254.169.254/",
        "",
        "x" * 300,
        5,
        None,
        ["first"],
        {"a": 1},
    ],
)
def test_the_id_of_a_key_is_a_name_and_nothing_else(
    kid: object, door: IdTokens, issuer: Issuer, clock: Clock
) -> None:
    token = issuer.token(clock(), head={"kid": kid})
    assert refused(door, token).status == 401
    assert set(issuer.asked) <= {DISCOVERY, KEYS}


@pytest.mark.parametrize(
    "head",
    [{"crit": ["exp"], "exp": 1}, {"b64": False}, {"typ": "logout+jwt"}, {"typ": 1}, {"alg": ["ES256"]}],
)
def test_a_header_that_asks_for_more_is_refused(
    head: dict[str, object], door: IdTokens, issuer: Issuer, clock: Clock
) -> None:
    assert refused(door, issuer.token(clock(), head=head)).status == 401
    assert issuer.asked == []


@pytest.mark.parametrize(
    "token",
    [
        "a.b.c",
        f"{part('[]')}.{part('[]')}.x",
        f"{part('{')}.{part('{}')}.x",
        f"{part('[' * 5000)}.{part('{}')}.x",
        f"{part('{}')}.{part('1')}.x",
        f"{part('{}')}.{part('null')}.x",
        f"{part('{}')}.{part('{}')}.",
    ],
)
def test_what_is_no_token_is_refused(token: str, door: IdTokens) -> None:
    assert refused(door, token).status == 401


def test_the_first_rule_that_fits_counts_also_in_a_list(issuer: Issuer, clock: Clock) -> None:
    rules = (
        ClaimRule(claim="groups", equals="leads", scope="approve", models=frozenset({"m"})),
        ClaimRule(claim="owner", equals="my-org", scope="read"),
    )
    door = IdTokens((issuer.terms(*rules),), clock)
    both = door.caller_of(issuer.token(clock(), groups=["staff", "leads"], owner="my-org"))
    assert (both.scope, both.models) == (Scope.APPROVE, frozenset({"m"}))
    assert door.caller_of(issuer.token(clock(), owner="my-org")).scope is Scope.READ
    for nothing in ({}, {"groups": "leaders"}, {"groups": {"leads": 1}}, {"owner": "my-organisation"}):
        found = refused(door, issuer.token(clock(), **nothing))
        assert (found.status, found.code) == (403, "insufficient_scope")


def shown(api: LiveApi, issuer: Issuer, **changes: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {issuer.token(api.clock(), **changes)}"}


def test_it_approves_and_the_log_has_its_name(api: LiveApi, issuer: Issuer) -> None:
    client = api.client(**shown(api, issuer))
    assert client.get(VERDICT).json()["decision"] == "accept"
    assert client.put(APPROVAL, json={}).status_code == 200
    assert client.get(GATE).status_code == 200
    approved = [entry.actor for entry in decisions.read(api.db, MODEL) if entry.action == "approve"]
    assert approved == [f"{issuer.url} {SUBJECT}"]


def test_it_is_for_its_models_alone(api: LiveApi, issuer: Issuer) -> None:
    read = api.client(**shown(api, issuer, sub="somebody", owner="my-org"))
    assert read.get(GATE).status_code == 403
    for path in (VERDICT, "/api/v1/models", "/metrics"):
        answer = read.get(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "model_not_allowed"), path
    assert api.client(**shown(api, issuer)).get("/api/v1/models").status_code == 403
    assert read.put(APPROVAL, json={}).status_code == 403


def test_a_tool_that_knows_a_url_alone_may_show_it_as_a_password(api: LiveApi, issuer: Issuer) -> None:
    basic = base64.b64encode(f"any:{issuer.token(api.clock())}".encode()).decode()
    assert api.client(Authorization=f"Basic {basic}").get(GATE).status_code != 401


def test_a_wrong_one_is_refused_where_none_is_needed_and_never_repeated(api: LiveApi, issuer: Issuer) -> None:
    headers = shown(api, issuer, aud="somebody")
    answer = api.client(**headers).get(VERDICT)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert headers["Authorization"].split(".")[2] not in answer.text


def test_one_that_is_too_long_is_refused_before_anything_is_fetched(api: LiveApi, issuer: Issuer) -> None:
    padded = shown(api, issuer, padding="x" * MAX_ID_TOKEN)
    answer = api.client(**padded).get(VERDICT)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert issuer.asked == []
    assert api.client(**shown(api, issuer, padding="x" * 4000)).get(VERDICT).status_code == 200


def test_wrong_ones_are_counted_and_outages_are_not(api: LiveApi, issuer: Issuer) -> None:
    issuer.down = True
    right = api.client(**shown(api, issuer))
    told = {(answer.status_code, answer.json()["code"]) for answer in (right.get(VERDICT) for _ in range(20))}
    assert told == {(503, "issuer_down")}
    assert "retry-after" in right.get(VERDICT).headers
    # Tokens of ours need no issuer.
    assert api.client("read").get(VERDICT).status_code == 200
    issuer.down = False
    api.clock.at += WINDOW_SECONDS
    wrong = api.client(**shown(api, issuer, aud="somebody"))
    assert [wrong.get(VERDICT).status_code for _ in range(MOST_FAILURES + 1)] == [401] * MOST_FAILURES + [429]


def test_those_that_are_right_and_worth_nothing_keep_nobody_out(api: LiveApi, issuer: Issuer) -> None:
    """Whoever may run a job at the issuer gets one with our audience; its neighbours' are new each time."""
    for number in range(2 * MOST_FAILURES):
        stranger = api.client(**shown(api, issuer, sub="somebody", jti=str(number)))
        assert stranger.get(VERDICT).status_code == 403
    assert api.client(**shown(api, issuer, jti="first")).get(VERDICT).status_code == 200


def test_without_issuers_it_is_a_token_like_any_wrong_one(sqlite_api: LiveApi, issuer: Issuer) -> None:
    answer = sqlite_api.client(**shown(sqlite_api, issuer)).get(VERDICT)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert issuer.asked == []
