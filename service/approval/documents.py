"""`/docs`: the OpenAPI document as one page, made here. No script and nothing from elsewhere.

FastAPI's own page loads Swagger UI from a CDN, which a site without internet cannot, and the bundle on PyPI
(`swagger-ui-bundle`) stopped at Swagger UI 4.15 of 2022. What readers need is what stands in the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from service.approval.problem_codes import TITLES

PAGES = Path(__file__).parent / "pages"
POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
PATHS = ("/docs", "/docs/style.css", "/openapi.json")

Schema = Mapping[str, Any]
"""A node of an OpenAPI document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLine:
    """One field of a JSON object, `depth` levels down."""

    name: str
    kind: str
    required: bool
    description: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method on one path."""

    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[FieldLine, ...]
    body: tuple[FieldLine, ...]
    answer: tuple[FieldLine, ...]
    example: str
    """JSON of a successful answer."""
    statuses: Mapping[str, str]

    @property
    def curl(self) -> str:
        """A command to try it with."""
        words = ["curl", '-H "Authorization: Bearer $TIERGATE_TOKEN"']
        if self.method != "GET":
            words.append(f"-X {self.method}")
        if self.body:
            words.append("-H 'Content-Type: application/json' -d '{}'")
        return " ".join([*words, f'"$TIERGATE_URL{self.path}"'])


def documentation(app: FastAPI) -> list[Route]:
    """The routes of the page, its style and the OpenAPI document."""
    environment = Environment(
        loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("docs.html")
    style = (PAGES / "style.css").read_bytes()
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}

    def docs(request: Request) -> Response:
        document = app.openapi()
        text = template.render(
            about=document["info"], operations=list(operations(document)), problems=sorted(TITLES.items())
        )
        return HTMLResponse(text, headers=headers)

    def docs_style(request: Request) -> Response:
        return Response(style, media_type="text/css", headers=headers)

    def openapi(request: Request) -> Response:
        return Response(json.dumps(app.openapi(), allow_nan=False), media_type="application/json")

    return [Route(path, endpoint) for path, endpoint in zip(PATHS, (docs, docs_style, openapi), strict=True)]


def operations(document: Schema) -> Iterator[Operation]:
    """Everything that the document offers, in its order."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            statuses = operation["responses"]
            answer = _json_schema(next(told for status, told in statuses.items() if status.startswith("2")))
            yield Operation(
                method=method.upper(),
                path=path,
                summary=operation.get("summary", ""),
                description=operation.get("description", ""),
                parameters=tuple(
                    FieldLine(
                        name=parameter["name"],
                        kind=_kind(parameter.get("schema", {}), document),
                        required=parameter.get("required", False),
                        description=parameter.get("description", "") or f"in the {parameter['in']}",
                        depth=0,
                    )
                    for parameter in operation.get("parameters", ())
                ),
                body=tuple(_fields(_json_schema(operation.get("requestBody", {})), document, 0)),
                answer=tuple(_fields(answer, document, 0)),
                example=json.dumps(example_of(answer, document), indent=2) if answer else "",
                statuses={status: told.get("description", "") for status, told in statuses.items()},
            )


DEEPEST = 6
"""Levels of a schema that are spelled; ours have four."""

DEEPEST_EXAMPLE = 20
"""Levels of an example, which must fit its schema to the last; a schema that holds itself ends here."""


def _json_schema(holder: Schema) -> Schema:
    schema: Schema = holder.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _resolve(schema: Schema, document: Schema) -> Schema:
    """The schema itself, through a `$ref` into the document, keeping a description beside it."""
    while "$ref" in schema:
        target: Any = document
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        schema = {**target, **{key: node for key, node in schema.items() if key != "$ref"}}
    return schema


def _alternatives(schema: Schema) -> list[Schema]:
    """What a value may be, null left out."""
    choices = schema.get("anyOf", [schema])
    return [choice for choice in choices if choice.get("type") != "null"]


def _kind(schema: Schema, document: Schema) -> str:
    schema = _resolve(schema, document)
    kinds = []
    for choice in _alternatives(schema):
        choice = _resolve(choice, document)
        if "enum" in choice or "const" in choice:
            kinds.append(" | ".join(map(str, choice.get("enum", [choice.get("const")]))))
        elif choice.get("type") == "array":
            kinds.append(f"list of {_kind(choice['items'], document)}")
        else:
            kinds.append(str(choice.get("type", "any")))
    nullable = any(choice.get("type") == "null" for choice in schema.get("anyOf", ()))
    return " | ".join(kinds) + (" | null" if nullable else "")


def _fields(schema: Schema, document: Schema, depth: int) -> Iterator[FieldLine]:
    schema = _resolve(schema, document)
    if depth >= DEEPEST:
        return
    if schema.get("type") == "array":
        yield from _fields(schema["items"], document, depth)
        return
    for choice in _alternatives(schema):
        choice = _resolve(choice, document)
        if choice.get("type") == "array":
            yield from _fields(choice["items"], document, depth)
        required = choice.get("required", ())
        for name, field in choice.get("properties", {}).items():
            field = _resolve(field, document)
            yield FieldLine(
                name=name,
                kind=_kind(field, document),
                required=name in required,
                description=field.get("description", ""),
                depth=depth,
            )
            yield from _fields(field, document, depth + 1)


def example_of(schema: Schema, document: Schema) -> Any:
    """A value that fits the schema, made of the examples of its fields."""
    return _example(schema, document, 0)


def _example(schema: Schema, document: Schema, depth: int) -> Any:
    schema = _resolve(schema, document)
    if depth > DEEPEST_EXAMPLE:
        return None
    if schema.get("examples"):
        return schema["examples"][0]
    choices = _alternatives(schema)
    choice = _resolve(choices[0], document) if choices else {}
    if choice.get("examples"):
        return choice["examples"][0]
    if "enum" in choice or "const" in choice:
        return choice.get("enum", [choice.get("const")])[0]
    match choice.get("type"):
        case "object":
            if "properties" in choice:
                return {
                    name: _example(field, document, depth + 1) for name, field in choice["properties"].items()
                }
            names = _resolve(choice.get("propertyNames", {}), document).get("enum", ["name"])
            values = choice.get("additionalProperties")
            schema = values if isinstance(values, dict) else {}
            return {name: _example(schema, document, depth + 1) for name in names}
        case "array":
            return [_example(choice["items"], document, depth + 1)]
        case "string":
            return "text"
        case "integer" | "number":
            above, below = choice.get("exclusiveMinimum", -1), choice.get("exclusiveMaximum")
            return choice.get("minimum", above + 1 if below is None else (above + below) / 2)
        case "boolean":
            return False
        case _:
            return None
