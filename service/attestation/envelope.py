"""DSSE v1: a payload with its type under Ed25519 signatures. Pure.

What is signed is PAE(type, payload) = "DSSEv1" SP LEN(type) SP type SP LEN(payload) SP payload, so the bytes
that are read are those that were signed, and a signature for one type is none for another.
Source: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

IN_TOTO = "application/vnd.in-toto+json"


class EnvelopeUnreadable(ValueError):
    """This is no DSSE envelope; says what is missing."""


class NotSigned(ValueError):
    """No signature of the envelope is one of the given key over its payload."""


def key_id(key: Ed25519PublicKey) -> str:
    """sha256 of the key's SubjectPublicKeyInfo (DER), hex: a hint which key to try, and no proof."""
    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def seal(payload: bytes, key: Ed25519PrivateKey, *, kind: str = IN_TOTO) -> dict[str, object]:
    """The envelope of a payload, as JSON."""
    signature = key.sign(_encoded(kind, payload))
    return {
        "payloadType": kind,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {"keyid": key_id(key.public_key()), "sig": base64.b64encode(signature).decode()},
        ],
    }


def unseal(envelope: str, key: Ed25519PublicKey, *, kind: str = IN_TOTO) -> bytes:
    """The payload, once a signature of it was verified. Raises EnvelopeUnreadable, NotSigned."""
    payload, found, signatures = _read(envelope)
    if found != kind:
        raise EnvelopeUnreadable(f"its payload is of type {found!r}, not {kind!r}")
    signed = _encoded(found, payload)
    for signature in signatures:
        try:
            key.verify(signature, signed)
        except InvalidSignature:
            continue
        return payload
    raise NotSigned("no signature is of this key: another one signed, or something was altered since")


def _encoded(kind: str, payload: bytes) -> bytes:
    named = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(named), named, len(payload), payload)


def _read(envelope: str) -> tuple[bytes, str, list[bytes]]:
    try:
        document = json.loads(envelope)
        kind, signatures = document["payloadType"], document["signatures"]
        if not isinstance(document, Mapping) or not isinstance(kind, str) or not isinstance(signatures, list):
            raise TypeError("a field of it is of another type")
        return _bytes(document["payload"]), kind, [_bytes(each["sig"]) for each in signatures]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise EnvelopeUnreadable(f"this is no DSSE envelope: {error}") from error


def _bytes(text: object) -> bytes:
    """Either alphabet of base64 is allowed by DSSE."""
    if not isinstance(text, str):
        raise TypeError("payload and sig are base64 texts")
    try:
        return base64.b64decode(text.translate({ord("-"): "+", ord("_"): "/"}), validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from error
