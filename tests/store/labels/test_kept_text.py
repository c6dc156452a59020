"""What is kept of a pair opens with its key and its name alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.store.labels.kept_text import AnswerText, Call, PairText, Turn, open_text, seal_text
from service.store.redis.capture import Keyring, SealBroken

TEXT = PairText(
    turns=(Turn(role="system", text="Be brief."), Turn(role="user", text="Wie geht's? 你好 \0 \x1b[31m")),
    asked='JSON that satisfies {"type": "object"}',
    baseline=AnswerText(text="Fine.", finish_reason="stop"),
    candidate=AnswerText(refusal="No.", calls=(Call(name="f", arguments='{"a": 1}'),), fault=""),
)


def test_it_opens_as_it_was(keyring: Keyring) -> None:
    assert open_text("item", seal_text("item", TEXT, keyring), keyring) == TEXT
    faulty = replace(TEXT, candidate=AnswerText(fault="cut_off"))
    assert open_text("item", seal_text("item", faulty, keyring), keyring) == faulty


def test_nothing_of_it_can_be_read_and_no_two_seals_are_alike(keyring: Keyring) -> None:
    sealed = seal_text("item", TEXT, keyring)
    assert b"Fine" not in sealed
    assert b"brief" not in sealed
    assert sealed != seal_text("item", TEXT, keyring)


def test_an_older_key_still_opens(keyring: Keyring) -> None:
    before = Keyring(current="k1", keys={"k1": keyring.keys["k1"]})
    assert open_text("item", seal_text("item", TEXT, before), keyring) == TEXT


def test_another_item_another_key_or_altered_bytes_do_not(keyring: Keyring) -> None:
    sealed = seal_text("item", TEXT, keyring)
    for name, blob, keys in (
        ("other", sealed, keyring),
        ("item", sealed[:-1] + bytes([sealed[-1] ^ 1]), keyring),
        ("item", sealed, Keyring(current="k2", keys={"k2": bytes(32)})),
        ("item", sealed, Keyring(current="k9", keys={"k9": bytes(32)})),
        ("item", b"", keyring),
        ("item", b"\x07\x01k", keyring),
        ("item", sealed[:10], keyring),
    ):
        with pytest.raises(SealBroken, match="the text of item"):
            open_text(name, blob, keys)
