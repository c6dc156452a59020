"""The model is found without parsing the body, and exactly where a parser finds it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.proxy.entry.scan import ModelName, Trouble, find_model, form_model, renamed
from service.proxy.entry.surface import Surface
from service.wire.formats import GUIDES
from tests.patience import here

FORM = b"multipart/form-data; boundary=b"

KEYS = st.sampled_from(
    ["model", "m\\u006fdel", "\\u006d\\u006F\\u0064\\u0065\\u006c", "models", "x", '\\"model', "Model"]
)
TEXTS = st.sampled_from(
    [
        '"m"',
        '"qw\\u0065n"',
        '"模型"',
        '"the \\"model\\": \\"x\\" is"',
        '"\\\\"',
        '"{[model"',
        '"model"',
        '"\\ud83d"',
        '""',
    ]
)


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    space = st.sampled_from(["", " ", "\n", "\t \r\n"])
    member = st.builds(lambda key, a, b, value: f'"{key}"{a}:{b}{value}', KEYS, space, space, values)
    return st.builds(
        lambda members, a: a + "{" + a + f",{a}".join(members) + a + "}", st.lists(member), space
    )


SCALARS = TEXTS | st.sampled_from(["1", "-1.5e3", "null", "true", "NaN", "1" * 5000])
BODIES = objects(
    st.recursive(
        SCALARS,
        lambda inner: objects(inner) | st.lists(inner).map(lambda items: "[" + ",".join(items) + "]"),
        max_leaves=8,
    )
)


def as_a_parser_sees_it(body: str) -> list[Any]:
    """Every value of a top-level `model`, by the full parser."""
    pairs = json.loads(body, object_pairs_hook=list, parse_int=len, strict=False)  # of any length
    return [value for key, value in pairs if key == "model"]


@given(BODIES)
@example('{"model":"a","m\\u006fdel":"b"}')
@example('{"x":{"model":"a"},"model":"b"}')
@example('{"x":"\\"model\\":","model" : "b"}')
@example('{"x":"a\\"model"}')
@example('{"a\\"model":"x"}')
@example('{"a\\"model":"x","model":"b"}')
@example('{"model":"model","x":"model"}')
@example('{"x":[1,{"y":"z"}],"model":"b","z":[{"a":{}}]}')
def test_the_scan_agrees_with_a_full_parser(body: str) -> None:
    values = as_a_parser_sees_it(body)
    raw = body.encode("utf-8", "surrogatepass")
    found = find_model(raw)
    assert Surface(raw).model == found
    if len(values) > 1:
        assert found is Trouble.DUPLICATE
    elif values and isinstance(values[0], str):
        assert isinstance(found, ModelName)
        assert found.name == values[0]
    else:
        assert found is None


@given(BODIES, st.sampled_from(["n", 'a "quoted" name', "模型", "back\\slash"]))
def test_renaming_changes_the_model_and_nothing_else(body: str, name: str) -> None:
    raw = body.encode("utf-8", "surrogatepass")
    found = find_model(raw)
    if not isinstance(found, ModelName):
        return
    after = renamed(raw, found, name)
    assert after[: found.start] == raw[: found.start]
    assert after.endswith(raw[found.end :])
    assert as_a_parser_sees_it(after.decode("utf-8", "surrogatepass")) == [name]


@given(st.binary(max_size=200) | BODIES.map(lambda body: body.encode("utf-8", "surrogatepass")[:-3]))
@example(b'{"model"')
@example(b'{"model":')
@example(b'{"model":"')
@example(b'{"a":1,,"model":"m","model":"n"}')
def test_what_is_no_json_never_raises(body: bytes) -> None:
    find_model(body)
    form_model(body, b"multipart/form-data; boundary=b")
    surface = Surface(body)
    assert surface.streams in (True, False)
    assert surface.wants_structure in (True, False)


@pytest.mark.parametrize("part", [b"[[],", b'"a",', b'{"model":1},'])
def test_breadth_is_bounded(part: bytes) -> None:
    assert find_model(b'{"m\\u006f":[' + part * 250_000) is Trouble.TOO_COMPLEX


def test_depth_is_no_matter() -> None:
    nested = b"[" * 50_000 + b'"model","model"' + b"]" * 50_000
    found = find_model(b'{"a":' + nested + b',"model":"m"}')
    assert isinstance(found, ModelName)
    assert found.name == "m"


@pytest.mark.parametrize(
    "part", [b"1,", b'"",', b'"\\"",', b"[],", b"{", b'"', b'\\"', b'"model",', b"\\u006d"]
)
def test_a_hostile_body_is_looked_at_in_no_time(part: bytes) -> None:
    body = b'{"model":"a","x":[' + part * (8_000_000 // len(part)) + b'],"model":"b"}'
    started = time.process_time()
    Surface(body)
    Surface(body[14:])
    took = time.process_time() - started
    assert took < here(0.5)


def test_a_model_behind_megabytes_is_found() -> None:
    body = json.dumps({"messages": [{"content": 'x"\\' * 1_000_000}], "model": "m"}).encode()
    found = find_model(body)
    assert isinstance(found, ModelName)
    assert found.name == "m"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'["model"]', b'"model"', b"{}", b'{"a":"model"}', b"null", b"\xff"]
)
def test_bodies_without_a_model_have_none(body: bytes) -> None:
    assert find_model(body) is None


def test_a_form_s_model_is_its_field() -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nmodel\r\n'
        b'--b\r\nContent-Disposition: form-data; name="model"\r\nContent-Type: text/plain\r\n\r\n'
        b"whisper-1\r\n--b--\r\n"
    )
    for received in (body, b"a preamble\r\n" + body):
        found = form_model(received, b'multipart/form-data; charset=utf-8; Boundary="b"')
        assert isinstance(found, ModelName)
        assert found.name == "whisper-1"
        assert renamed(received, found, "w") == received.replace(b"whisper-1", b"w")
    assert form_model(b"--b--\r\n", FORM) is None
    assert form_model(body, b"multipart/form-data; boundary=other") is None
    assert form_model(body, b"multipart/form-data") is None


def test_what_a_file_contains_is_no_field_of_its_form() -> None:
    part = b'Content-Disposition: form-data; name="model"\r\n\r\n%b\r\n'
    file = b'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n--c\r\n' + part % b"other"
    found = form_model(b"--b\r\n" + file + b"--b\r\n" + part % b"m" + b"--b--\r\n", FORM)
    assert isinstance(found, ModelName)
    assert found.name == "m"


def test_a_form_with_two_models_is_refused() -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
    assert form_model(part + part + b"--b--\r\n", FORM) is Trouble.DUPLICATE


@pytest.mark.parametrize(
    "part",
    [
        b"Content-Disposition: form-data; name=model\r\n",
        b"\r\n--b",
        b"--b\r\n\r\n",
        b"\r\n--b\r\nContent-Disposition: form-data; name=model\r\n",
        b";" + b" " * 100,
    ],
)
def test_a_hostile_form_is_read_in_no_time(part: bytes) -> None:
    """It is read between two chunks of everybody's streams."""
    started = time.process_time()
    form_model(b"--b\r\n" + part * (4_000_000 // len(part)), FORM)
    took = time.process_time() - started
    assert took < here(0.5)


def test_a_byte_order_mark_hides_no_model() -> None:
    for body in (b'{"model":"m"}', b'{"a":{"model":1},"model":"m"}'):
        found = find_model(b"\xef\xbb\xbf" + body)
        assert isinstance(found, ModelName)
        assert found.name == "m"
        assert renamed(b"\xef\xbb\xbf" + body, found, "n") == b"\xef\xbb\xbf" + body.replace(b'"m"', b'"n"')


@pytest.mark.parametrize(
    ("body", "streams", "structured"),
    [
        (b'{"stream":true}', True, False),
        (b'{"stream" : true,"response_format":{"type":"json_object"}}', True, True),
        (b'{"stream":false,"tools":[]}', False, True),
        (b'{"text":{"format":{"type":"json_schema"}}}', False, True),
        (b'{"guided_json":{}}', False, True),
        (b'{"messages":[{"content":"\\"stream\\":true \\"tools\\""}]}', False, False),
    ],
)
def test_labels_are_read_off_the_surface(body: bytes, streams: bool, structured: bool) -> None:
    surface = Surface(body)
    assert (surface.streams, surface.wants_structure) == (streams, structured)


@pytest.mark.parametrize("key", [*GUIDES, "response_format", "output_format", "tools", "functions"])
def test_whatever_the_dialects_constrain_answers_by_is_structured(key: str) -> None:
    assert Surface(b'{"model":"m","%b":{}}' % key.encode()).wants_structure


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_a_body_that_some_readers_would_guess_to_be_json_is_refused(coding: str) -> None:
    body = '{"model":"m"}'.encode(coding)
    assert json.loads(body) == {"model": "m"}, "Python's reader is one of them"
    assert Surface(body).model is Trouble.NOT_UTF8
