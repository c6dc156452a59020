"""DSSE: what we seal, others open; what others would not open, neither do we."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from service.attestation.envelope import (
    IN_TOTO,
    EnvelopeUnreadable,
    NotSigned,
    key_id,
    seal,
    unseal,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key()
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()


def test_a_payload_comes_out_as_it_went_in() -> None:
    assert unseal(json.dumps(seal(b'{"a": 1}', KEY)), PUBLIC) == b'{"a": 1}'


def test_the_signature_is_over_the_documented_bytes() -> None:
    sealed = seal(b"hello", KEY)
    (signature,) = sealed["signatures"]  # type: ignore[misc]
    PUBLIC.verify(base64.b64decode(signature["sig"]), b"DSSEv1 28 application/vnd.in-toto+json 5 hello")
    assert signature["keyid"] == key_id(PUBLIC)


@given(st.binary(max_size=200))
def test_securesystemslib_opens_what_we_seal(payload: bytes) -> None:
    envelope = Envelope.from_dict(json.loads(json.dumps(seal(payload, KEY))))
    accepted = envelope.verify([SSlibKey.from_crypto(PUBLIC, key_id(PUBLIC))], 1)
    assert set(accepted) == {key_id(PUBLIC)}
    assert (envelope.payload, envelope.payload_type) == (payload, IN_TOTO)
    with pytest.raises(VerificationError):
        envelope.verify([SSlibKey.from_crypto(OTHER, key_id(PUBLIC))], 1)


def test_we_open_what_securesystemslib_seals() -> None:
    envelope = Envelope(b"payload", IN_TOTO, {})
    envelope.sign(CryptoSigner(KEY, SSlibKey.from_crypto(PUBLIC)))
    assert unseal(json.dumps(envelope.to_dict()), PUBLIC) == b"payload"


def altered(**changes: object) -> str:
    return json.dumps(seal(b"payload", KEY) | changes)


@pytest.mark.parametrize(
    "envelope",
    [
        altered(payload=base64.b64encode(b"Payload").decode()),
        altered(signatures=[]),
        altered(signatures=[{"keyid": key_id(PUBLIC), "sig": base64.b64encode(bytes(64)).decode()}]),
        altered(signatures=[{"keyid": key_id(PUBLIC), "sig": ""}]),
    ],
)
def test_an_altered_envelope_is_not_opened(envelope: str) -> None:
    with pytest.raises(NotSigned):
        unseal(envelope, PUBLIC)


def test_another_key_opens_nothing() -> None:
    with pytest.raises(NotSigned, match="another one signed"):
        unseal(altered(), OTHER)


def test_one_good_signature_among_others_suffices() -> None:
    good = seal(b"payload", KEY)["signatures"][0]  # type: ignore[index]
    bad = {"keyid": good["keyid"], "sig": base64.b64encode(bytes(64)).decode()}
    assert unseal(altered(signatures=[bad, good]), PUBLIC) == b"payload"


def test_a_payload_of_another_type_is_not_taken_for_one_of_this() -> None:
    sealed = json.dumps(seal(b"payload", KEY, kind="text/plain"))
    with pytest.raises(EnvelopeUnreadable, match="text/plain"):
        unseal(sealed, PUBLIC)
    with pytest.raises(NotSigned):
        unseal(json.dumps(json.loads(sealed) | {"payloadType": IN_TOTO}), PUBLIC)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", "[" * 5000, altered(payload=1), altered(payload="%"), altered(signatures=[1])],
)
def test_what_is_no_envelope_is_told(text: str) -> None:
    with pytest.raises(EnvelopeUnreadable, match="no DSSE envelope"):
        unseal(text, PUBLIC)
