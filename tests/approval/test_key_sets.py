"""Which keys of a set are taken, and for which algorithm."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from service.approval.key_sets import MOST_KEYS, NoKeySet, public_keys
from tests.approval.issuer import jwk_of, rsa_key

CURVED = jwk_of(ec.generate_private_key(ec.SECP256R1()), "a")
EDWARDS = jwk_of(ed25519.Ed25519PrivateKey.generate(), "b")


def names(*keys: object) -> set[tuple[str, str]]:
    return set(public_keys({"keys": list(keys)}))


def test_each_kind_of_key_has_one_algorithm() -> None:
    assert names(CURVED, EDWARDS, jwk_of(rsa_key(), "c")) == {("a", "ES256"), ("b", "EdDSA"), ("c", "RS256")}


def test_two_kinds_may_share_an_id() -> None:
    assert names(CURVED, {**EDWARDS, "kid": "a"}) == {("a", "ES256"), ("a", "EdDSA")}


@pytest.mark.parametrize(
    "change",
    [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"alg": "ES384"},
        {"alg": "none"},
        {"kid": None},
        {"kid": ""},
        {"kid": "x" * 1000},
        {"kid": ["a"]},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": ["EC"]},
        {"crv": "P-384"},
        {"crv": {"P-256": 1}},
        {"x": "AAAA"},
        {"x": "!"},
        {"x": 5},
        {"y": None},
    ],
)
def test_a_key_for_something_else_or_a_broken_one_is_passed_over(change: dict[str, Any]) -> None:
    assert names({**CURVED, **change}, EDWARDS) == {("b", "EdDSA")}


@pytest.mark.parametrize("entry", [None, 1, "key", [], {}])
def test_what_is_no_key_is_passed_over(entry: object) -> None:
    assert names(entry, EDWARDS) == {("b", "EdDSA")}


@pytest.mark.parametrize("change", [{"n": "AQAB"}, {"n": "!"}, {"n": 5}, {"e": "AA"}, {"e": None}])
def test_a_weak_or_broken_rsa_key_is_passed_over(change: dict[str, Any]) -> None:
    assert names({**jwk_of(rsa_key(), "c"), **change}) == set()


def test_an_rsa_key_of_1024_bits_is_passed_over() -> None:
    assert names(jwk_of(rsa_key(1024), "c")) == set()


def test_a_private_key_that_was_published_by_mistake_verifies_and_no_more() -> None:
    found = public_keys({"keys": [{**CURVED, "d": "AAAA"}]})
    assert isinstance(found["a", "ES256"], ec.EllipticCurvePublicKey)


def test_a_set_is_read_to_a_bound() -> None:
    many = [{**CURVED, "kid": f"{number}"} for number in range(MOST_KEYS + 10)]
    assert len(names(*many)) == MOST_KEYS


@pytest.mark.parametrize("document", [None, [], {}, {"keys": {}}, {"keys": None}, "keys"])
def test_what_is_no_set_is_said_to_be_none(document: object) -> None:
    with pytest.raises(NoKeySet):
        public_keys(document)
