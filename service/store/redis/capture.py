"""A stored exchange, and the seal that keeps it private outside the proxy.

A sealed capture is `version, key id, nonce, AES-GCM(zstd(head, request body, response body))`. The
capture's id and the clear header are authenticated with it, so that one capture cannot stand in for
another.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_VERSION = 1
_NONCE = 12
_MOST_REMEMBERED = 256  # characters that clients and backends chose; longer ones are not kept in memory
_LEVEL = 1  # JSON halves at any level; higher ones cost the proxy more than they save Redis


class Ending(StrEnum):
    """How the serving tier's answer ended; an error status with a complete body is `complete`."""

    COMPLETE = "complete"
    CENSORED = "censored"
    """The client hung up first; says nothing about the tier."""
    CUT_OFF = "cut_off"
    """The backend ended in the middle of its answer."""
    TIMEOUT = "timeout"
    """The proxy gave up waiting for the backend."""
    UNREACHABLE = "unreachable"
    """No backend took the request."""


@dataclass(slots=True, kw_only=True)
class Capture:
    """One exchange as it went over the wire, without credentials. Not frozen: a frozen one costs thrice."""

    id: str
    """From `capture_id`, never from a client."""
    model: str
    tier: str
    """The tier that served it."""
    path: str
    request_type: str = "application/json"
    """Media type of the request."""
    request_encoding: str = ""
    """Its content encoding, empty for none."""
    request_body: bytes
    status: int | None = None
    """None when no answer began."""
    response_type: str = ""
    response_encoding: str = ""
    response_body: bytes = b""
    ending: Ending
    started_at: float
    """Unix seconds."""
    first_byte_seconds: float | None = None
    total_seconds: float | None = None
    tenant: str
    """Keyed hash of the API key, empty when there was none."""
    conversation: str | None = None
    """Explicit id if the request has one."""
    expects: str = ""
    """What the request's header says that its answer is to be: json, jsonl, none, or nothing."""
    stratum: str


def capture_id(instance: str, sequence: int, model: str) -> str:
    """The id of the capture of an instance's `sequence`-th request (from 1), if that becomes one.

    It tells its instance and model; gaps between numbers are requests that were not captured.
    """
    return f"{instance}-{sequence}-{model_mark(model)}"


@lru_cache(maxsize=1024)  # the proxy makes an id per request
def model_mark(model: str) -> str:
    """Eight hex digits for a model: enough for the ledger to keep models apart when only ids are left."""
    return sha256(model.encode()).hexdigest()[:8]


def mark_of(capture_id: str) -> str:
    """The model mark in an id, empty when the id does not come from `capture_id`."""
    parts = capture_id.rsplit("-", 2)
    return parts[2] if len(parts) == 3 and len(parts[2]) == 8 else ""


class SealBroken(ValueError):
    """A sealed capture cannot be opened: other key, other capture, or altered bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """AES keys by id. New captures are sealed with `current`; the others still open what they sealed."""

    current: str
    keys: Mapping[str, bytes] = field(repr=False)
    """16, 24 or 32 bytes each."""
    _ciphers: Mapping[str, AESGCM] = field(init=False, repr=False, compare=False)
    _header: bytes = field(init=False, repr=False, compare=False)
    """What a capture sealed with `current` begins with, in the clear."""

    def __post_init__(self) -> None:
        if self.current not in self.keys:
            raise ValueError(f"the capture key {self.current!r} is not among the keys {sorted(self.keys)}")
        for key_id, key in self.keys.items():
            if not 1 <= len(key_id.encode()) <= 255:
                raise ValueError(f"a capture key id has 1 to 255 bytes, got {key_id!r}")
            if len(key) not in (16, 24, 32):
                raise ValueError(f"capture key {key_id!r} has {len(key)} bytes; AES needs 16, 24 or 32")
        ciphers = {key_id: AESGCM(key) for key_id, key in self.keys.items()}
        object.__setattr__(self, "_ciphers", ciphers)
        current = self.current.encode()
        object.__setattr__(self, "_header", bytes((_VERSION, len(current))) + current)


_local = threading.local()  # zstd contexts are costly to make and not to be shared between threads


def seal_all(captures: Sequence[Capture], keyring: Keyring) -> list[bytes]:
    """Compress and encrypt each by itself; safe in any thread.

    A nonce is 96 random bits, drawn at once for all. Under one key no nonce may come twice: after 2^32
    captures the odds that one did are 1 in 8 billion, and NIST SP 800-38D wants another key by then, which
    is after seven weeks at 1,000 captures/s. Nothing is counted that a fork or a restored snapshot of the
    machine could count twice.
    """
    try:
        compress = _local.compressor.compress
    except AttributeError:
        _local.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        compress = _local.compressor.compress
    header = keyring._header
    encrypt = keyring._ciphers[keyring.current].encrypt
    nonces = os.urandom(_NONCE * len(captures))
    sealed = []
    for number, capture in enumerate(captures):
        nonce = nonces[number * _NONCE : (number + 1) * _NONCE]
        head = _head(capture)
        plain = b"".join((len(head).to_bytes(4, "big"), head, capture.request_body, capture.response_body))
        secret = encrypt(nonce, compress(plain), header + capture.id.encode())
        sealed.append(header + nonce + secret)
    return sealed


def seal_bytes(plain: bytes, keyring: Keyring, *, bound: bytes, level: int = _LEVEL) -> bytes:
    """Anything else, sealed as captures are; it opens where `bound` is the same."""
    header, nonce = keyring._header, os.urandom(_NONCE)
    packed = zstandard.ZstdCompressor(level=level).compress(plain)
    return header + nonce + keyring._ciphers[keyring.current].encrypt(nonce, packed, header + bound)


def unseal_bytes(what: str, blob: bytes, keyring: Keyring, *, bound: bytes) -> bytes:
    """What was sealed with `bound`; SealBroken, which begins with `what`, says why not."""
    if len(blob) < 2 or blob[0] != _VERSION:
        raise SealBroken(f"{what} is not sealed in a format this version knows")
    end = 2 + blob[1]
    header, nonce, secret = blob[:end], blob[end : end + _NONCE], blob[end + _NONCE :]
    key_id = header[2:].decode(errors="replace")
    cipher = keyring._ciphers.get(key_id)
    if cipher is None:
        raise SealBroken(f"{what} is sealed with key {key_id!r}; the keyring has {sorted(keyring.keys)}")
    try:
        return zstandard.ZstdDecompressor().decompress(cipher.decrypt(nonce, secret, header + bound))
    except (InvalidTag, ValueError, zstandard.ZstdError) as error:
        raise SealBroken(
            f"{what} does not open with key {key_id!r}: the key, the id or the bytes differ"
        ) from error


def _head(capture: Capture) -> bytes:
    """Everything of a capture but its id and bodies, as JSON.

    Put together from parts: the whole dictionary encoded anew costs as much as compressing a short exchange.
    """
    kind = (
        capture.model,
        capture.tier,
        capture.path,
        capture.request_type,
        capture.request_encoding,
        capture.status,
        capture.response_type,
        capture.response_encoding,
        capture.ending,
        capture.stratum,
    )
    first, total = capture.first_byte_seconds, capture.total_seconds
    foreign = len(capture.request_type) + len(capture.request_encoding) + len(capture.response_type)
    return (
        f"{_of_kind(*kind) if foreign < _MOST_REMEMBERED else _of_kind.__wrapped__(*kind)}"
        f',"tenant":{_quoted(capture.tenant)}'
        f',"conversation":{"null" if capture.conversation is None else json.dumps(capture.conversation)}'
        f"{_expects(capture.expects)}"
        f',"started_at":{capture.started_at!r}'
        f',"first_byte_seconds":{"null" if first is None else repr(first)}'
        f',"total_seconds":{"null" if total is None else repr(total)}'
        f',"request_bytes":{len(capture.request_body)}}}'
    ).encode()


def _expects(told: str) -> str:
    return f',"expects":{json.dumps(told)}' if told else ""


@lru_cache(maxsize=1024)
def _of_kind(
    model: str,
    tier: str,
    path: str,
    request_type: str,
    request_encoding: str,
    status: int | None,
    response_type: str,
    response_encoding: str,
    ending: Ending,
    stratum: str,
) -> str:
    """The part of a head that many captures have in common, without its closing brace."""
    return json.dumps(
        {
            "model": model,
            "tier": tier,
            "path": path,
            "request_type": request_type,
            "request_encoding": request_encoding,
            "status": status,
            "response_type": response_type,
            "response_encoding": response_encoding,
            "ending": ending,
            "stratum": stratum,
        },
        separators=(",", ":"),
    )[:-1]


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)


def unseal(capture_id: str, blob: bytes, keyring: Keyring) -> Capture:
    """The capture in `blob`; SealBroken says why not."""
    plain = unseal_bytes(f"capture {capture_id}", blob, keyring, bound=capture_id.encode())
    split = 4 + int.from_bytes(plain[:4], "big")
    head = json.loads(plain[4:split])
    request_end = split + head.pop("request_bytes")
    return Capture(
        id=capture_id,
        request_body=plain[split:request_end],
        response_body=plain[request_end:],
        **{**head, "ending": Ending(head["ending"])},
    )
