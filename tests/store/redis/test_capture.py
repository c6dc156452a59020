"""Sealing: what goes in comes out, and nothing else opens."""

from __future__ import annotations

import base64
import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.store.redis.capture import (
    Capture,
    Ending,
    Keyring,
    SealBroken,
    _of_kind,
    capture_id,
    mark_of,
    model_mark,
    seal_all,
    unseal,
)


def seal(capture: Capture, keyring: Keyring) -> bytes:
    [sealed] = seal_all((capture,), keyring)
    return sealed


OPTIONAL_SECONDS = st.none() | st.floats(0, 1e6, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(
    request=st.binary(max_size=2000),
    response=st.binary(max_size=2000),
    text=st.text(max_size=40),
    status=st.none() | st.integers(100, 599),
    ending=st.sampled_from(Ending),
    first=OPTIONAL_SECONDS,
    conversation=st.none() | st.text(max_size=20),
)
def test_an_opened_capture_equals_the_sealed_one(
    request, response, text, status, ending, first, conversation
):
    keyring = Keyring(current="k", keys={"k": bytes(16)})
    capture = Capture(
        id="i-1-abcdef01",
        model=text,
        tier=text,
        path=text,
        request_type=text,
        request_encoding=text,
        request_body=request,
        status=status,
        response_type=text,
        response_encoding=text,
        response_body=response,
        ending=ending,
        started_at=1.25,
        first_byte_seconds=first,
        total_seconds=first,
        tenant=text,
        conversation=conversation,
        stratum=text,
    )
    assert unseal(capture.id, seal(capture, keyring), keyring) == capture


SEALED_BEFORE = (
    "AQFrf6hXmQrrC+hm39iMThGbedUw1E2ryq6TCCEeSLLrZffFz+Qa0CJFVp3O5n+3/ZSFgBzH0Qu2H1v19J93PZeIOgGx2l4j"
    "6M7obPJvH961MqcjiCAZ0OnoxlRizqgFOty0zvZ3Wu+x50VB8farj0zuWn/wpCpEpOdFeKG7SvgyMO9qec6D/kuT59XkuRPR"
    "77ZVNuWYah0UatT5W1j87de2ZL1Q2TPhPxDEzYXGYL0xt7DPvUaGFtUpz0NKEUuDci8naf43XIb2jR7BxCCkKd7ZGdw3HCCX"
    "XCK3X+pzVtwocBhgSu01eaSZYqRr0kBXzzqbKct+p0Tlq3fT"
)
"""By the first release of the format, whose head was encoded whole."""


def test_a_capture_sealed_before_heads_were_put_together_opens():
    opened = unseal(
        "i-1-abcdef01", base64.b64decode(SEALED_BEFORE), Keyring(current="k", keys={"k": bytes(16)})
    )
    assert (opened.status, opened.conversation, opened.response_body) == (200, "é", b'{"a":1}')
    assert (opened.started_at, opened.first_byte_seconds, opened.total_seconds) == (1000.5, 0.25, None)


def test_what_is_sealed_together_opens_one_by_one_and_no_nonce_comes_twice(capture_of, keyring):
    captures = [capture_of(f"c{number}", stratum=f"s{number % 3}") for number in range(100)]
    blobs = seal_all(captures, keyring)
    assert [unseal(each.id, blob, keyring) for each, blob in zip(captures, blobs, strict=True)] == captures
    header = 2 + len(keyring.current)
    assert len({blob[header : header + 12] for blob in blobs}) == 100


def test_a_header_that_a_client_made_long_is_sealed_and_not_remembered(capture_of, keyring):
    remembered = _of_kind.cache_info().currsize
    for number in range(10):
        capture = capture_of(request_type=f"application/json; x={number}" + "y" * 1000)
        assert unseal("c1", seal(capture, keyring), keyring) == capture
    assert _of_kind.cache_info().currsize == remembered


def test_a_sealed_capture_shows_nothing_of_its_content(capture_of, keyring):
    capture = capture_of(tenant="acme", stratum="long")
    blob = seal(capture, keyring)
    for secret in (b"secret", b"prompt", b"choices", b"acme", b"long", b"bf16"):
        assert secret not in blob


def test_the_same_capture_sealed_twice_differs(capture_of, keyring):
    assert seal(capture_of(), keyring) != seal(capture_of(), keyring)


def test_compression_comes_before_encryption(capture_of, keyring):
    capture = capture_of(request_body=b"the same words again " * 5000)
    assert len(seal(capture, keyring)) < 2000


def test_a_capture_cannot_stand_in_for_another(capture_of, keyring):
    blob = seal(capture_of("c1"), keyring)
    with pytest.raises(SealBroken, match="c2 does not open"):
        unseal("c2", blob, keyring)


def test_any_altered_byte_breaks_the_seal(capture_of, keyring):
    blob = seal(capture_of(request_body=b"x", response_body=b"y"), keyring)
    for place in range(len(blob)):
        altered = blob[:place] + bytes((blob[place] ^ 1,)) + blob[place + 1 :]
        with pytest.raises(SealBroken):
            unseal("c1", altered, keyring)


def test_any_truncation_breaks_the_seal(capture_of, keyring):
    blob = seal(capture_of(), keyring)
    for size in (0, 1, 2, 5, 20, len(blob) - 1):
        with pytest.raises(SealBroken):
            unseal("c1", blob[:size], keyring)


def test_an_old_key_still_opens_after_rotation_and_no_longer_after_its_removal(capture_of):
    old = Keyring(current="a", keys={"a": bytes(32)})
    rotated = Keyring(current="b", keys={"a": bytes(32), "b": bytes(range(32))})
    removed = Keyring(current="b", keys={"b": bytes(range(32))})
    blob = seal(capture_of(), old)
    assert unseal("c1", blob, rotated) == capture_of()
    with pytest.raises(SealBroken, match=r"sealed with key 'a'; the keyring has \['b'\]"):
        unseal("c1", blob, removed)


def test_another_key_under_the_same_id_does_not_open(capture_of):
    blob = seal(capture_of(), Keyring(current="a", keys={"a": bytes(32)}))
    with pytest.raises(SealBroken, match="the key, the id or the bytes differ"):
        unseal("c1", blob, Keyring(current="a", keys={"a": bytes(range(32))}))


def test_threads_may_seal_at_once(capture_of, keyring):
    captures = [capture_of(f"c{number}", request_body=bytes([number]) * 50_000) for number in range(32)]
    with ThreadPoolExecutor(8) as pool:
        blobs = list(pool.map(lambda capture: seal(capture, keyring), captures))
    assert [unseal(each.id, blob, keyring) for each, blob in zip(captures, blobs, strict=True)] == captures


@pytest.mark.parametrize(
    ("current", "keys", "complaint"),
    [
        ("b", {"a": bytes(32)}, "'b' is not among the keys"),
        ("a", {"a": bytes(31)}, "31 bytes; AES needs"),
        ("", {"": bytes(32)}, "1 to 255 bytes"),
        ("x" * 256, {"x" * 256: bytes(32)}, "1 to 255 bytes"),
    ],
)
def test_a_keyring_that_cannot_work_is_refused(current, keys, complaint):
    with pytest.raises(ValueError, match=complaint):
        Keyring(current=current, keys=keys)


def test_a_keyring_does_not_print_its_keys():
    assert "\\x07" not in repr(Keyring(current="a", keys={"a": b"\x07" * 32}))


def test_the_id_of_a_capture_tells_its_model_and_nothing_else(capture_of):
    made = capture_id("5f0c", 12, "qwen3-32b")
    assert made == f"5f0c-12-{model_mark('qwen3-32b')}"
    assert mark_of(made) == model_mark("qwen3-32b") != model_mark("other")
    assert "qwen" not in made
    assert mark_of("something else") == ""


def test_every_field_of_a_capture_survives(capture_of, keyring):
    capture = capture_of(conversation="x", status=None, ending=Ending.CUT_OFF, first_byte_seconds=None)
    opened = unseal("c1", seal(capture, keyring), keyring)
    assert dataclasses.asdict(opened) == dataclasses.asdict(capture)
    assert isinstance(opened.ending, Ending)


def test_what_the_answer_is_to_be_is_kept_where_a_request_said_so(capture_of, keyring):
    for told in ("", "jsonl"):
        assert unseal("c1", seal(capture_of(expects=told), keyring), keyring).expects == told
