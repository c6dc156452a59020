"""What a request says its answer must be, in each engine's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.exchange import Endpoint, Format, Guide, GuideKind
from service.wire import parse_request
from service.wire.formats import Asked, read_format, read_formats
from service.wire.shapes import WrongShape

SCHEMA = {"type": "object"}
BY_SCHEMA = Asked(format=Format.JSON_SCHEMA, schema=SCHEMA, constrained=True)


def guided(kind: GuideKind, written: str = "", *choices: str) -> Asked:
    return Asked(constrained=True, guide=Guide(kind=kind, written=written, choices=choices))


CHOICE, REGEX, GRAMMAR = GuideKind.CHOICE, GuideKind.REGEX, GuideKind.GRAMMAR
TAG = guided(GuideKind.STRUCTURAL_TAG)
ANY_JSON = Asked(format=Format.JSON_SCHEMA, schema=True, constrained=True)


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({}, Asked()),
        ({"response_format": {"type": "text"}}, Asked()),
        ({"response_format": None, "structured_outputs": None}, Asked()),
        ({"response_format": {"type": "json_object"}}, Asked(format=Format.JSON_OBJECT, constrained=True)),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, BY_SCHEMA),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
            BY_SCHEMA,
        ),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, ANY_JSON),
        ({"response_format": {"type": "json_schema"}}, ANY_JSON),
        ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, BY_SCHEMA),
        ({"response_format": {"type": "json_schema", "json_schema": SCHEMA}}, BY_SCHEMA),
        ({"response_format": {"type": "structural_tag", "structures": []}}, TAG),
        ({"structured_outputs": {"json": SCHEMA}}, BY_SCHEMA),
        ({"structured_outputs": {"json": '{"type": "object"}'}}, BY_SCHEMA),
        ({"structured_outputs": {"json_object": True}}, Asked(format=Format.JSON_OBJECT, constrained=True)),
        ({"structured_outputs": {"regex": "a+"}}, guided(REGEX, "a+")),
        ({"structured_outputs": {"choice": ["a", "b"]}}, guided(CHOICE, "", "a", "b")),
        ({"guided_json": SCHEMA}, BY_SCHEMA),
        ({"guided_regex": "a"}, guided(REGEX, "a")),
        ({"guided_choice": ["a", 1, True]}, guided(CHOICE, "", "a", "1", "true")),
        ({"guided_choice": "a"}, guided(CHOICE)),
        ({"regex": "a"}, guided(REGEX, "a")),
        ({"ebnf": "a"}, guided(GRAMMAR, "a")),
        ({"guided_grammar": {"a": 1}}, guided(GRAMMAR)),
        ({"structural_tag": "{}"}, guided(GuideKind.STRUCTURAL_TAG, "{}")),
        ({"response_format": {"type": "grammar", "grammar": "a"}}, guided(GRAMMAR, "a")),
        ({"response_format": {"type": "regex", "pattern": "a"}}, guided(REGEX, "a")),
        ({"structured_outputs": {"json_object": False}}, Asked()),
        ({"structured_outputs": {"whitespace_pattern": "x"}}, Asked(constrained=True)),
        ({"guided_grammar": "root ::= x"}, guided(GRAMMAR, "root ::= x")),
        ({"grammar": "root ::= x"}, guided(GRAMMAR, "root ::= x")),
        ({"json_schema": SCHEMA}, BY_SCHEMA),
        ({"guided_json": SCHEMA, "response_format": {"type": "text"}}, BY_SCHEMA),
        (
            {"grammar": "x", "response_format": {"type": "json_object"}},
            Asked(format=Format.JSON_OBJECT, constrained=True),
        ),
    ],
)
def test_every_engine_s_words_are_understood(body: dict[str, Any], asked: Asked) -> None:
    assert read_formats(body, body.get("response_format")) == asked


@pytest.mark.parametrize(
    "body",
    [
        {"response_format": {"type": "yaml"}},
        {"response_format": "json"},
        {"response_format": {"type": 3}},
        {"guided_json": "{not json"},
        {"guided_json": 5},
        {"structured_outputs": []},
    ],
)
def test_what_no_engine_knows_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(WrongShape):
        read_formats(body, body.get("response_format"))


def test_a_boolean_schema_is_a_schema() -> None:
    assert read_format({"type": "json_schema", "schema": False}).schema is False


@pytest.mark.parametrize("endpoint", list(Endpoint))
def test_an_engine_s_own_keys_are_read_on_every_endpoint(endpoint: Endpoint) -> None:
    prompts = {
        Endpoint.COMPLETIONS: {"prompt": "x"},
        Endpoint.RESPONSES: {"input": "x"},
    }
    asked = prompts.get(endpoint, {"messages": [{"role": "user", "content": "x"}]})
    body = {"model": "m", **asked, "structured_outputs": {"choice": ["a", "b"]}}
    request = parse_request(endpoint, json.dumps(body).encode())
    assert request.guide == Guide(kind=GuideKind.CHOICE, choices=("a", "b"))
    by_schema = {"model": "m", **asked, "guided_json": SCHEMA}
    assert parse_request(endpoint, json.dumps(by_schema).encode()).schema == SCHEMA
