"""The published JSON Schema is current, and says of a file what the loader says of its keys and forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import evaluators
from service.settings.schema import json_schema
from tests.settings.test_example import TEXT, switched_on

KNOWN = [each.name for each in (*evaluators.ALL, *evaluators.ASKED_FOR)]
PUBLISHED = Path(__file__).parents[2] / "docs" / "tiergate.schema.json"


def test_the_committed_copy_is_current() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json_schema(KNOWN), (
        "run: tiergate schema -o docs/tiergate.schema.json"
    )


def test_it_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(KNOWN))


@pytest.mark.parametrize("text", [TEXT, switched_on(TEXT)])
def test_it_accepts_the_example(text: str) -> None:
    # YAML 1.1 would make `off` a truth value; the example has none.
    jsonschema.Draft202012Validator(json_schema(KNOWN)).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "change",
    [
        {"modles": {}},
        {"mirror": {"sample": "five"}},
        {"mirror": {"capture": {"ttl": "6"}}},
        {"proxy": {"listen": "8080"}},
        {"policy": {"criteria": {"structured": {}}}},
        {"policy": {"gates": {"slo": "maybe"}}},
        {"models": {}},
    ],
)
def test_it_refuses_what_the_loader_refuses(change: dict[str, Any], minimal: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(KNOWN))
    assert validator.is_valid(minimal)
    assert not validator.is_valid(minimal | change)


def test_defaults_have_the_form_that_people_write() -> None:
    def visit(part: object) -> None:
        if isinstance(part, dict):
            if "default" in part and part["default"] is not None:
                resolver_free = {key: each for key, each in part.items() if key != "default"}
                if "$ref" not in json.dumps(resolver_free):
                    jsonschema.Draft202012Validator(resolver_free).validate(part["default"])
            for each in part.values():
                visit(each)
        elif isinstance(part, list):
            for each in part:
                visit(each)

    visit(json_schema(KNOWN))
