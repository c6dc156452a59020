"""What was asked and answered in one pair, as people judge it, and the seal that keeps it private in SQL.

Sealed as captures are: `version, key id, nonce, AES-GCM(zstd(JSON))`, bound to the id of its item and to this
purpose, so that neither another item nor a capture can stand in for it. It names no model, tier or backend.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from service.store.redis.capture import Keyring, seal_bytes, unseal_bytes

_PURPOSE = b"adjudication/"


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
    return seal_bytes(plain, keyring, bound=_PURPOSE + item_id.encode(), level=3)


def open_text(item_id: str, blob: bytes, keyring: Keyring) -> PairText:
    """The text in `blob`; SealBroken says why not."""
    plain = unseal_bytes(f"the text of item {item_id}", blob, keyring, bound=_PURPOSE + item_id.encode())
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
