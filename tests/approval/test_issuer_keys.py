"""Keys are fetched from where the configuration says, seldom, and are kept for a bounded time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from service.approval.issuer_keys import (
    FRESH_SECONDS,
    KEPT_SECONDS,
    LOOK_SECONDS,
    MOST_WAITING,
    IssuerDown,
    IssuerKeys,
)
from tests.approval.issuer import DISCOVERY, KEYS, Issuer, rsa_key
from tests.approval.live import Clock

FIRST, SECOND = ("first", "ES256"), ("second", "ES256")


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    started = Issuer()
    yield started
    started.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(issuer: Issuer, clock: Clock) -> IssuerKeys:
    return IssuerKeys(issuer.terms(), clock)


def complaint(keys: IssuerKeys) -> str:
    with pytest.raises(IssuerDown) as caught:
        keys.find(FIRST)
    return str(caught.value)


def test_they_are_fetched_once_for_many(keys: IssuerKeys, issuer: Issuer) -> None:
    with ThreadPoolExecutor(MOST_WAITING) as pool:
        found = list(pool.map(lambda _: keys.find(FIRST), range(50)))
    assert all(found)
    assert issuer.asked == [DISCOVERY, KEYS]


def test_a_place_of_the_configuration_needs_no_discovery(issuer: Issuer, clock: Clock) -> None:
    keys = IssuerKeys(issuer.terms(jwks_uri=f"{issuer.url}{KEYS}"), clock)
    assert keys.find(FIRST) is not None
    assert issuer.asked == [KEYS]


def test_a_rotation_is_seen_with_the_first_token_of_the_new_key(
    keys: IssuerKeys, issuer: Issuer, clock: Clock
) -> None:
    assert keys.find(FIRST) is not None
    issuer.keys = {"second": ec.generate_private_key(ec.SECP256R1())}
    clock.at += LOOK_SECONDS
    assert keys.find(SECOND) is not None
    assert keys.find(FIRST) is None, "what the issuer has withdrawn is not a key any more"


def test_ids_that_nobody_has_cause_one_look_in_ten_seconds(
    keys: IssuerKeys, issuer: Issuer, clock: Clock
) -> None:
    assert keys.find(FIRST) is not None
    clock.at += LOOK_SECONDS
    issuer.asked.clear()
    assert [keys.find((f"no such {number}", "ES256")) for number in range(100)] == [None] * 100
    assert issuer.asked == [DISCOVERY, KEYS]
    clock.at += LOOK_SECONDS
    assert keys.find(("no such", "ES256")) is None
    assert len(issuer.asked) == 4


def test_a_key_is_for_the_algorithm_of_its_kind_alone(issuer: Issuer, clock: Clock) -> None:
    issuer.keys = {"first": rsa_key()}
    keys = IssuerKeys(issuer.terms(), clock)
    assert keys.find(("first", "RS256")) is not None
    assert keys.find(("first", "ES256")) is None


def test_a_key_that_was_withdrawn_is_gone_within_an_hour(
    keys: IssuerKeys, issuer: Issuer, clock: Clock
) -> None:
    assert keys.find(FIRST) is not None
    issuer.keys = {}
    clock.at += FRESH_SECONDS - 1
    assert keys.find(FIRST) is not None
    clock.at += 1
    assert keys.find(FIRST) is None


def test_known_keys_outlive_an_outage_of_a_day_and_no_more(
    keys: IssuerKeys, issuer: Issuer, clock: Clock
) -> None:
    assert keys.find(FIRST) is not None
    issuer.down = True
    clock.at += KEPT_SECONDS
    assert keys.find(FIRST) is not None
    with pytest.raises(IssuerDown):
        keys.find(SECOND)  # it may be new: nobody can say that it is wrong
    clock.at += 1
    with pytest.raises(IssuerDown):
        keys.find(FIRST)
    asked = len(issuer.asked)
    with pytest.raises(IssuerDown):
        keys.find(FIRST)
    assert len(issuer.asked) == asked, "the outage is not made worse"
    issuer.down = False
    clock.at += LOOK_SECONDS
    assert keys.find(FIRST) is not None


def test_a_clock_that_is_set_back_does_not_keep_them_for_longer(
    keys: IssuerKeys, issuer: Issuer, clock: Clock
) -> None:
    assert keys.find(FIRST) is not None
    issuer.down = True
    clock.at -= 10 * KEPT_SECONDS
    assert keys.find(FIRST) is not None
    clock.at += KEPT_SECONDS + 1
    with pytest.raises(IssuerDown):
        keys.find(FIRST)


@pytest.mark.parametrize(
    ("path", "status", "body", "why"),
    [
        (KEYS, 500, b"", "answers 500"),
        (KEYS, 302, b"/elsewhere", "answers 302"),
        (KEYS, 200, b"x" * 10_000_000, "answers more than 256 KiB"),
        (KEYS, 200, b'{"keys": [' + b" " * 10_000_000 + b"]}", "answers more than 256 KiB"),
        (KEYS, 200, b"<html>", "is no JSON"),
        (KEYS, 200, b"[" * 100_000, "is no JSON"),
        (KEYS, 200, b"[]", "no list of `keys`"),
        (KEYS, 200, b'{"keys": "first"}', "no list of `keys`"),
        (DISCOVERY, 404, b"", "answers 404"),
        (DISCOVERY, 200, b"[]", "is not of that issuer"),
        (DISCOVERY, 200, b'{"issuer": "https://evil.example"}', "is not of that issuer"),
    ],
)
def test_what_is_no_key_set_is_an_outage(
    path: str, status: int, body: bytes, why: str, keys: IssuerKeys, issuer: Issuer
) -> None:
    issuer.answers[path] = (status, body)
    assert why in complaint(keys)
    assert "/elsewhere" not in issuer.asked


@pytest.mark.parametrize(
    "place", ["http://169.254.169.254/keys", "http://127.0.0.1:1/keys", "//x", "http://[", 5]
)
def test_discovery_leads_to_no_other_host(place: object, keys: IssuerKeys, issuer: Issuer) -> None:
    document = {"issuer": issuer.url, "jwks_uri": place}
    issuer.answers[DISCOVERY] = (200, json.dumps(document).encode())
    assert "`jwks_uri`" in complaint(keys)
    assert issuer.asked == [DISCOVERY]


def test_one_that_does_not_answer_is_given_up(issuer: Issuer, clock: Clock) -> None:
    issuer.silent = True
    keys = IssuerKeys(issuer.terms(fetch_seconds=0.2), clock)
    assert complaint(keys) == "no answer within 0.2 s"


def test_few_wait_for_one_that_is_slow(issuer: Issuer, clock: Clock) -> None:
    issuer.silent = True
    keys = IssuerKeys(issuer.terms(fetch_seconds=0.5), clock)
    with ThreadPoolExecutor(30) as pool:
        told = list(pool.map(lambda _: complaint(keys), range(30)))
    assert len(issuer.asked) <= 1, "one looks for all"
    assert set(told) <= {
        "no answer within 0.5 s",
        "its keys are being fetched, and enough requests wait for them",
    }


def test_keys_that_we_have_do_not_wait_for_one_that_is_slow(
    issuer: Issuer, clock: Clock, keys: IssuerKeys
) -> None:
    assert keys.find(FIRST) is not None
    with keys._turn:  # as if a fetch were under way
        clock.at += FRESH_SECONDS
        assert keys.find(FIRST) is not None
