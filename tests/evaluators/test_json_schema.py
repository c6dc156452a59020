"""JSON Schema without network, backtracking or unbounded work."""

from __future__ import annotations

import inspect
import json
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.json_schema import MAX_STEPS, MOST_KEPT, UnsupportedSchema, Violation, compile_schema
from evaluators.strict_json import TooMuch
from tests.patience import here


def violation(schema: Any, value: Any) -> Violation | None:
    return compile_schema(schema).violation(value, chars=len(json.dumps(value)))


def unsupported(schema: Any) -> str:
    with pytest.raises(UnsupportedSchema) as raised:
        compile_schema(schema)
    return str(raised.value)


# --- the public suite ---

DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
UNSUPPORTED = {
    "draft2020-12": {
        # documents elsewhere, which the suite serves on localhost:1234 and we never fetch
        "dynamicRef.json: reference": 13,
        "optional/cross-draft.json: reference": 1,
        "refRemote.json: reference": 31,
        # meta-schemas of their own
        "optional/format-assertion.json: $schema": 4,
        "vocabulary.json: $schema": 5,
        # names would be matched by backtracking
        "unevaluatedProperties.json: unevaluatedProperties": 29,
    },
    "draft7": {"optional/cross-draft.json: reference": 2, "refRemote.json: reference": 23},
}


@pytest.mark.parametrize("draft", list(DRAFTS))
def test_the_suite_agrees_wherever_the_schema_is_supported(draft: str, suites: Path) -> None:
    folder = suites / "json-schema-test-suite" / "tests" / draft
    disagreements: list[str] = []
    refused: Counter[str] = Counter()
    agreed = 0
    for file in sorted(folder.rglob("*.json")):
        name = str(file.relative_to(folder))
        # what is optional in the draft is asserted by us; elsewhere the suite expects annotations
        asserted = name.startswith("optional/format/") or name == "optional/content.json"
        for group in json.loads(file.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": DRAFTS[draft], **schema}
            for case in group["tests"]:
                try:
                    found = compile_schema(schema, formats=asserted).violation(
                        case["data"], chars=len(json.dumps(case["data"]))
                    )
                except UnsupportedSchema as error:
                    refused[f"{name}: {str(error).split()[0]}"] += 1
                    continue
                agreed += 1
                if (found is None) is not case["valid"]:
                    disagreements.append(f"{name}: {group['description']}: {case['description']}")
    assert disagreements == []
    assert dict(refused) == UNSUPPORTED[draft]
    assert agreed > 1600


def test_the_page_lists_what_is_unsupported_with_its_files_and_how_many_cases() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evaluators.md").read_text(encoding="utf-8")
    table = page.partition("| unsupported | files of the suite |")[2].partition("\n\n")[0]
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    told = {
        name: int(count)
        for place, name in enumerate(DRAFTS)
        for count in [sum(int(row[2].strip(" |").split(" / ")[place]) for row in rows)]
    }
    assert told == {draft: sum(UNSUPPORTED[draft].values()) for draft in DRAFTS}
    for counted in UNSUPPORTED.values():
        for case in counted:
            assert f"`{case.partition('.json')[0]}`" in table


# --- no network ---


def test_no_reference_is_ever_fetched() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.3)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/schema.json"
        for schema in (
            {"$ref": url},
            {"properties": {"a": {"$ref": url + "#/x"}}},
            {"$id": url, "properties": {"a": {"$ref": "other.json"}}},
            {"$dynamicRef": url},
            {"$schema": url},
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": {"$ref": url}},
            {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": url},
        ):
            unsupported(schema)
        with pytest.raises(TimeoutError):
            listening.accept()


def test_a_reference_that_leads_nowhere_is_unsupported_before_any_answer_is_seen() -> None:
    assert "reference" in unsupported({"properties": {"a": {"$ref": "#/$defs/none"}}})
    assert "reference" in unsupported({"$defs": {"a": {"$ref": "#none"}}, "type": "object"})


def test_references_within_the_schema_and_to_published_meta_schemas_resolve() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#b"}, "b": {"$anchor": "b", "type": "string"}}}
    assert violation(schema, "x") is None
    assert violation(schema, 3) is not None
    assert violation({"$ref": "http://json-schema.org/draft-07/schema#"}, {"type": "strin"}) is not None


def test_a_reference_behind_an_unknown_keyword_is_checked_too() -> None:
    schema = {"$ref": "#/x/a", "x": {"a": {"pattern": "(?=a)"}}}
    assert "look-around" in unsupported(schema)


# --- drafts and formats ---


def test_the_draft_is_the_one_that_is_named_else_2020_12() -> None:
    tuple_of_7 = {"items": [{"type": "string"}], "$schema": "http://json-schema.org/draft-07/schema#"}
    assert violation(tuple_of_7, [3]) == Violation(pointer="/0", reason="3 is not of type 'string'")
    assert "not a valid schema" in unsupported({"items": [{"type": "string"}]})
    assert violation({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}, {}) is None
    assert "not a draft we know" in unsupported({"$schema": "https://example.com/mine"})
    assert "not a draft we know" in unsupported(
        {"$defs": {"a": {"$id": "x:y", "$schema": "https://example.com/m"}}}
    )


def test_formats_are_asserted() -> None:
    assert violation({"format": "date"}, "2024-02-30") is not None
    assert violation({"format": "date"}, "2024-02-29") is None
    assert violation({"format": "date"}, 3) is None
    assert violation({"format": "of our own"}, "x") is None
    assert compile_schema({"format": "date"}, formats=False).violation("x", chars=3) is None


def test_content_is_asserted_by_draft_7_alone() -> None:
    schema = {"contentEncoding": "base64", "contentMediaType": "application/json"}
    seven = {**schema, "$schema": "http://json-schema.org/draft-07/schema#"}
    assert violation(seven, "e30=") is None
    assert violation(seven, "e30") is not None
    assert violation(seven, "é") is not None
    assert violation(seven, "e3s=") is not None
    assert violation(seven, 3) is None
    assert violation(schema, "%%") is None


def test_dependencies_are_still_judged_by_later_drafts() -> None:
    assert violation({"dependencies": {"a": ["b"]}}, {"a": 1}) is not None


def test_boolean_schemas_and_whole_doubles() -> None:
    assert violation(True, 3) is None
    assert violation(False, 3) is not None
    assert violation({"type": "integer"}, 3.0) is None
    assert violation({"type": "integer"}, 10**400) is None
    assert violation({"multipleOf": 0.01}, 10**400) is None
    assert violation({"multipleOf": 0.01}, 0.07) is None
    assert violation({"multipleOf": 0.01}, 0.075) is not None
    assert violation({"multipleOf": 2}, "x") is None


@pytest.mark.parametrize(
    "schema",
    [
        3,
        "x",
        [],
        {"type": "objekt"},
        {"properties": []},
        {"pattern": "("},
        {"minimum": "x"},
        {"a": float("nan"), "type": 3},
    ],
)
def test_what_is_no_schema_is_unsupported(schema: Any) -> None:
    assert unsupported(schema)


def test_a_schema_that_is_not_json_is_unsupported() -> None:
    loop: dict[str, Any] = {}
    loop["properties"] = {"a": loop}
    assert "Circular" in unsupported(loop)


# --- what a violation says ---


def test_a_violation_points_at_its_place() -> None:
    schema = {"properties": {"a/b": {"items": {"properties": {"c~": {"type": "string"}}}}}}
    assert violation(schema, {"a/b": [{}, {"c~": 3}]}) == Violation(
        pointer="/a~1b/1/c~0", reason="3 is not of type 'string'"
    )
    assert violation({"required": ["x"]}, {}) == Violation(pointer="", reason="'x' is a required property")


def test_patterns_names_and_uniqueness_are_judged_by_us_and_say_so() -> None:
    schema = {
        "properties": {"a": {"pattern": "^x$"}},
        "patternProperties": {"^n_": {"type": "number"}},
        "additionalProperties": False,
    }
    assert violation(schema, {"a": "x", "n_1": 3}) is None
    assert violation(schema, "not an object") is None
    assert violation(schema, {"a": "y"}) == Violation(pointer="/a", reason="'y' does not match '^x$'")
    assert violation(schema, {"n_1": "x"}) == Violation(pointer="/n_1", reason="'x' is not of type 'number'")
    assert violation(schema, {"b": 1}) == Violation(
        pointer="", reason="additional property 'b' is not allowed"
    )
    more = {"additionalProperties": {"type": "string"}}
    assert violation(more, {"b": 1}) == Violation(pointer="/b", reason="1 is not of type 'string'")
    assert violation({"uniqueItems": True}, [1, {"a": [1]}, {"a": [1.0]}]) is not None
    assert violation({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}, None, 0, False]) is None
    assert violation({"uniqueItems": False}, [1, 1]) is None
    assert violation({"uniqueItems": True}, "aa") is None


# --- bounds ---


def doubling(levels: int) -> dict[str, Any]:
    """2**levels evaluations of one value."""
    parts: dict[str, Any] = {f"a{levels}": {"type": "string"}}
    for level in range(levels):
        following = {"$ref": f"#/$defs/a{level + 1}"}
        parts[f"a{level}"] = {"anyOf": [{"allOf": [following, {"type": "null"}]}, following]}
    return {"$defs": parts, "$ref": "#/$defs/a0"}


def test_a_schema_bomb_runs_out_of_steps_and_is_the_schema_s_fault() -> None:
    began = time.process_time()
    with pytest.raises(UnsupportedSchema, match="too many steps"):
        violation(doubling(40), 3)
    took = time.process_time() - began
    assert took < here(5)


def test_an_honest_schema_that_takes_too_many_steps_is_a_huge_answer_s_fault() -> None:
    schema = {"items": {"allOf": [{"minimum": -1}] * 30}}
    with pytest.raises(TooMuch, match=f"more than {MAX_STEPS} steps"):
        violation(schema, list(range(100_000)))


def test_endless_recursion_is_the_schema_s_fault_and_depth_the_answer_s() -> None:
    with pytest.raises(UnsupportedSchema, match="recurses"):
        violation({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, 3)
    tree = {
        "$defs": {"t": {"allOf": [{"allOf": [{"allOf": [{"items": {"$ref": "#/$defs/t"}}]}]}]}},
        "$ref": "#/$defs/t",
    }
    deep: list[Any] = []
    for _ in range(120):
        deep = [deep]
    with pytest.raises(TooMuch, match="too deep for its schema"):
        violation(tree, deep)
    shallow: list[Any] = [[[[]]]]
    assert violation(tree, shallow) is None


def test_a_stack_that_is_nearly_full_refuses_a_schema_only_for_the_moment() -> None:
    schema: dict[str, Any] = {"title": "for a full stack"}
    for _ in range(40):
        schema = {"not": schema}

    def down(levels: int) -> None:
        if levels:
            down(levels - 1)
        else:
            unsupported(schema)

    room = sys.getrecursionlimit() - len(inspect.stack())
    down(room - 60)
    assert compile_schema(schema)


def test_what_only_draft_3_hides_from_the_check_is_unsupported_when_it_is_met() -> None:
    three = "http://json-schema.org/draft-03/schema#"
    hidden = {"$schema": three, "type": [{"type": "string", "pattern": "(?=a)"}]}
    with pytest.raises(UnsupportedSchema, match="look-around"):
        violation(hidden, "x")
    with pytest.raises(UnsupportedSchema, match="nowhere"):
        violation({"$schema": three, "type": [{"$ref": "#/nowhere"}]}, "x")
    assert violation({"$schema": three, "divisibleBy": 2, "dependencies": {"a": "b"}}, 3) is not None


def test_size_and_depth_of_a_schema_are_bounded() -> None:
    assert "characters" in unsupported({"enum": ["x" * 600_000]})
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"not": deep}
    assert "nested deeper" in unsupported(deep)


def test_a_catastrophic_pattern_is_harmless() -> None:
    schema = {"pattern": "^(a+)+$", "patternProperties": {"(x+x+)+y": {}}, "additionalProperties": True}
    assert violation(schema, "a" * 50_000 + "!") is not None
    assert violation(schema, {"x" * 50_000: 1}) is None


def test_a_large_pattern_on_a_long_text_is_not_matched() -> None:
    schema = {"items": {"pattern": "(.*a.{400}){2}z"}}
    with pytest.raises(UnsupportedSchema, match="10000 characters"):
        violation(schema, ["a" * 10_000])
    with pytest.raises(TooMuch, match="30000 characters"):
        violation(schema, ["a" * 30_000])


def test_no_more_schemas_are_kept_than_a_bounded_number() -> None:
    first = {"title": "the first of many"}
    kept = compile_schema(first)
    assert compile_schema(first) is kept
    for number in range(MOST_KEPT):
        compile_schema({"title": f"another, {number}"})
    assert compile_schema(first) is not kept


def test_a_hundred_thousand_unique_items_are_compared_in_linear_time() -> None:
    began = time.process_time()
    assert violation({"uniqueItems": True}, [{"a": n} for n in range(100_000)]) is None
    took = time.process_time() - began
    assert took < here(5)


def test_patterns_beyond_re2_are_unsupported_wherever_they_stand() -> None:
    assert "look-around" in unsupported({"properties": {"a": {"items": {"pattern": "^(?!x)"}}}})
    assert "back-references" in unsupported({"patternProperties": {r"(a)\1": {}}})
    assert "unevaluatedProperties" in unsupported(
        {"unevaluatedProperties": False, "patternProperties": {"a": {}}}
    )
    assert violation({"properties": {"pattern": {"const": "(?!x)"}}}, {"pattern": "(?!x)"}) is None


def test_compiled_schemas_are_kept_and_so_are_refusals() -> None:
    schema = {"type": "object", "title": "kept"}
    assert compile_schema(schema) is compile_schema(dict(schema))
    assert compile_schema(schema) is not compile_schema(schema, formats=False)
    assert unsupported({"type": "kept"}) == unsupported({"type": "kept"})


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
schemas = st.recursive(
    st.one_of(
        st.booleans(),
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["object", "array", "string", "integer", "number", "null"]),
                "pattern": st.sampled_from(["^a", "[0-9]+$"]),
                "format": st.sampled_from(["email", "uri", "date", "idn-hostname", "regex", "uri-template"]),
                "minimum": st.integers(-5, 5),
                "multipleOf": st.sampled_from([1, 0.01, 3]),
                "uniqueItems": st.booleans(),
                "enum": st.lists(values, min_size=1, max_size=2),
            },
        ),
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.text(max_size=3), inner, max_size=2),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "contains": inner,
        },
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(schemas, values)
def test_no_value_makes_a_supported_schema_raise(schema: Any, value: Any) -> None:
    violation(schema, value)
