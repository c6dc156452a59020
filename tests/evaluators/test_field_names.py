"""Fields are named as the request's schema names them, and never as an answer does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.exchange import Answer, Format, Request, Tool, ToolCall
from evaluators.field_agreement import MOST_NAMES, FieldAgreement
from evaluators.field_names import field_name

ORDER: dict[str, Any] = {
    "$defs": {"line": {"properties": {"sku": {}, "price/net": {"type": "number"}}}},
    "properties": {
        "id": {"type": "string"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "who": {"anyOf": [{"type": "null"}, {"properties": {"name": {}}}]},
        "notes": {"additionalProperties": {"properties": {"text": {}}}},
        "next": {"$ref": "#"},
    },
}


@pytest.mark.parametrize(
    ("pointer", "name"),
    [
        ("", "/"),
        ("/id", "/id"),
        ("/lines", "/lines"),
        ("/lines/7", "/lines/*"),
        ("/lines/7/sku", "/lines/*/sku"),
        ("/lines/0/price~1net", "/lines/*/price~1net"),
        ("/who/name", "/who/name"),
        ("/notes/John Smith/text", "/notes/*/text"),
        ("/John Smith", "/*"),
        ("/John Smith/id", "/*/*"),
        ("/next/next/id", "/next/next/id"),
        ("/id/below", "/id/*"),
    ],
)
def test_a_pointer_keeps_the_names_of_the_schema_alone(pointer: str, name: str) -> None:
    assert field_name(ORDER, pointer) == name


@pytest.mark.parametrize(
    "schema", [None, True, {}, {"properties": 5}, {"$ref": "http://x/y"}, {"$ref": "#/no"}]
)
def test_without_a_schema_that_lists_it_no_name_is_kept(schema: Any) -> None:
    assert field_name(schema, "/secret/1") == "/*/*"


@given(st.lists(st.text(alphabet="abc~/01", max_size=4), max_size=20))
def test_what_an_answer_says_never_becomes_a_name(tokens: list[str]) -> None:
    pointer = "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)
    assert set(field_name({"properties": {"zz": {}}}, pointer)) <= set("/*")


def test_a_schema_that_refers_in_circles_or_is_very_broad_ends() -> None:
    circle: dict[str, Any] = {"allOf": [{"$ref": "#"}] * 1000, "properties": {"a": {"$ref": "#"}}}
    assert field_name(circle, "/a" * 40) == "/a" * 12


def details(request: Request, baseline: Answer, candidate: Answer) -> set[tuple[str, str, int]]:
    return {(*each,) for each in FieldAgreement().compare(request, baseline, candidate)[1].details}


def test_each_field_of_a_pair_is_counted_by_how_it_differs(make_request: Callable[..., Request]) -> None:
    request = make_request(format=Format.JSON_SCHEMA, schema=ORDER)
    baseline = Answer(text='{"id":"a","lines":[{"sku":1},{"sku":2},{"sku":3}],"extra":1}')
    candidate = Answer(text='{"id":"b","lines":[{"sku":1},{"sku":"2"}],"extra":1}')
    assert details(request, baseline, candidate) == {
        ("/id", "value", 1),
        ("/lines/*/sku", "agrees", 1),
        ("/lines/*/sku", "type", 1),
        ("/lines/*", "missing", 1),
        ("/*", "agrees", 1),
    }


def test_arguments_are_counted_under_the_tool_that_was_offered(make_request: Callable[..., Request]) -> None:
    tool = Tool(name="weather", parameters={"properties": {"city": {}, "days": {}}})
    request = make_request(tools=(tool,))

    def calling(name: str, arguments: str) -> Answer:
        return Answer(tool_calls=(ToolCall(name=name, arguments=arguments),))

    assert details(
        request, calling("weather", '{"city":"Rome","days":2}'), calling("weather", '{"city":"Oslo"}')
    ) == {
        ("/weather", "agrees", 1),
        ("/weather/city", "value", 1),
        ("/weather/days", "missing", 1),
    }
    assert details(request, calling("John Smith", "{}"), calling("John Smith", "{}")) == {("/*", "agrees", 2)}


def test_the_names_of_one_pair_are_bounded(make_request: Callable[..., Request]) -> None:
    names = [f"n{at:03}" for at in range(90)]
    request = make_request(format=Format.JSON_SCHEMA, schema={"properties": {name: {} for name in names}})
    answer = Answer(text="{" + ",".join(f'"{name}":1' for name in names) + "}")
    assert len(details(request, answer, answer)) == MOST_NAMES
