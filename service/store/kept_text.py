"""What was asked and answered in one pair, as people judge it, and the seal that keeps it private in SQL.

Sealed as captures are: `version, key id, nonce, AES-GCM(zstd(JSON))`, bound to the id of its item and to this
purpose, so that neither another item nor a capture can stand in for it. It names no model, tier or backend.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.store.capture import Keyring, SealBroken

_VERSION = 1
_NONCE = 12
_PURPOSE = b"adjudication/"
MOST_BYTES = 16 * 1024 * 1024
"""Of one opened text; `workers.keeping` keeps far less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of the request."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of an answer."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerText:
    """What one side wrote; whose it is, it does not say."""

    text: str = ""
    refusal: str = ""
    """The refusal field, when the engine says so itself."""
    calls: tuple[Call, ...] = ()
    finish_reason: str = ""
    fault: str = ""
    """Why there is no answer; empty when there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairText:
    """Everything that is kept of a pair to judge it by."""

    turns: tuple[Turn, ...]
    asked: str = ""
    """What the answer was to be, besides what the turns say: a schema, or the value to be recalled."""
    baseline: AnswerText
    candidate: AnswerText


def seal_text(item_id: str, text: PairText, keyring: Keyring) -> bytes:
    """Compress and encrypt, with the keyring's current key."""
    # Escaped, so that half a surrogate pair of a client or a model is kept as it came.
    plain = json.dumps(asdict(text), separators=(",", ":")).encode("ascii")
    key_id = keyring.current.encode()
    header = bytes((_VERSION, len(key_id))) + key_id
    nonce = os.urandom(_NONCE)
    packed = zstandard.ZstdCompressor(level=3).compress(plain)
    return (
        header
        + nonce
        + AESGCM(keyring.keys[keyring.current]).encrypt(nonce, packed, header + _PURPOSE + item_id.encode())
    )


def open_text(item_id: str, blob: bytes, keyring: Keyring) -> PairText:
    """The text in `blob`; SealBroken says why not."""
    if len(blob) < 2 or blob[0] != _VERSION:
        raise SealBroken(f"the text of item {item_id} is not sealed in a format this version knows")
    end = 2 + blob[1]
    header, nonce, secret = blob[:end], blob[end : end + _NONCE], blob[end + _NONCE :]
    key_id = header[2:].decode(errors="replace")
    key = keyring.keys.get(key_id)
    if key is None:
        raise SealBroken(
            f"the text of item {item_id} is sealed with key {key_id!r}; the keyring has "
            f"{sorted(keyring.keys)}"
        )
    try:
        packed = AESGCM(key).decrypt(nonce, secret, header + _PURPOSE + item_id.encode())
        plain = zstandard.ZstdDecompressor().decompress(packed, max_output_size=MOST_BYTES)
    except (InvalidTag, ValueError, zstandard.ZstdError) as error:
        raise SealBroken(
            f"the text of item {item_id} does not open with key {key_id!r}: the key, the id or the bytes "
            "differ"
        ) from error
    document = json.loads(plain)
    return PairText(
        turns=tuple(Turn(**turn) for turn in document["turns"]),
        asked=document["asked"],
        baseline=_answer(document["baseline"]),
        candidate=_answer(document["candidate"]),
    )


def _answer(document: dict[str, object]) -> AnswerText:
    calls = document.pop("calls")
    assert isinstance(calls, list), "we wrote a list"
    told = {name: str(value) for name, value in document.items()}
    return AnswerText(**told, calls=tuple(Call(**call) for call in calls))
